"""The engines of a walk: the scout's process, and the kernel's ZFS that decides after it.

All recoveries of a state count: by either engine, the first and the second, ended or hung.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suites.selftest.unit.conftest import fake_tool
from suites.selftest.unit.facts.shelf_logs import SECTOR, explicit
from torture.errors import HarnessError
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import Event, Kind, RecordedDisk, Recording
from torture.features.walk.documents import WalkDocument
from torture.features.walk.engines import native_engine
from torture.features.walk.engines.engine import Engine, GaveUp, Ranges, Recovered, Scout
from torture.features.walk.engines.engines import Engines
from torture.features.walk.engines.kernel_engine import KernelEngine
from torture.features.walk.engines.native_engine import NativeEngine
from torture.features.walk.recoveries import How, Recoveries, Recovery, worst_of
from torture.features.walk.walk_values import PoolHealth, StateVerdict, Times
from torture.machines.lab.machine import GuestDied
from torture.oracles.verdict.guarantee import Verdict
from torture.trials.trial.shared.resident import StorageFailed

_MIB = 1024 * 1024
_STATE = CrashState(recording=Path("life-1"), cut=0, seed=0, disks={"data0": explicit()})
_GOOD = Recovered(is_imported=True, content="a" * 32, health=PoolHealth())
_ANSWER = (
    '{"import": 0, "volume": 0, "export": 0, "content": "%s", "bytes": 1, "import_us": 1, '
    '"volume_us": 1, "read_us": 1, "export_us": 1, "state": 7, "errors": 0}'
)


class Played:
    """An engine with given ends of its recoveries; a failure is raised."""

    def __init__(self, *ends: Recovered | HarnessError, proof: Recovered | None = None) -> None:
        self.ends = list(ends)
        self.proof = proof
        self.ranges = Ranges.whole(_MIB)
        self.copied = 0
        self.is_closed = False

    def take_ranges(self, ranges: Ranges) -> None:
        self.ranges = ranges

    def recover(self, state: CrashState) -> Recovered:
        del state
        end = self.ends.pop(0)
        if isinstance(end, HarnessError):
            raise end
        return end

    def proven(self, state: CrashState) -> Recovered | None:
        del state
        return self.proof

    def copy_volume(self, into: Path) -> None:
        self.copied += 1
        into.write_bytes(bytes(_MIB))

    def close(self) -> None:
        self.is_closed = True


def engines_of(
    kernel: Engine, scout: Scout | None, scratch: Path, *, written: set[int] | None = None
) -> Engines:
    return Engines(
        start_kernel=lambda _first: kernel,
        start_scout=None if scout is None else lambda: scout,
        first=lambda: _STATE,
        written=written,
        scratch=scratch,
    )


def test_both_engines_read_the_same_parts(tmp_path: Path) -> None:
    """Also where the scout cannot recover the first state: else all contents would differ."""
    for first_of_scout in (_GOOD, GaveUp("ended")):
        kernel, scout = Played(_GOOD, _GOOD), Played(first_of_scout, _GOOD)
        engines = engines_of(kernel, scout, tmp_path, written={3})
        assert (engines.scout(), engines.kernel()) == (scout, kernel)
        assert kernel.ranges == scout.ranges == Ranges.of_grains({3})


def test_refused_and_unreadable_volumes_are_alike() -> None:
    unreadable = Recovered(is_imported=True, volume_errno=5, content="c")
    assert unreadable.is_like(Recovered(is_imported=True, volume_errno=52, content="d"))
    assert not unreadable.is_like(Recovered(is_imported=True, content="c"))
    refused = Recovered(is_imported=False, reason="one or more devices is unavailable")
    assert refused.is_like(Recovered(is_imported=False, reason="I/O error"))
    assert not refused.is_like(_GOOD)


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    folder = tmp_path / "life-1"
    folder.mkdir()
    (folder / "data").write_bytes(b"x" * SECTOR)
    events = (
        Event(seq=0, time_ns=0, kind=Kind.BEGIN, reference=1),
        Event(seq=1, time_ns=0, kind=Kind.WRITE_SUBMIT, disk=0, length=SECTOR),
    )
    disk = RecordedDisk(name="data0", size=_MIB, sector=SECTOR, physical_sector=SECTOR)
    return Recording(folder=folder, disks=(disk,), events=events)


def begun(recording: Recording, script: str) -> NativeEngine:
    """The engine over a program in shell, which reads the commands."""
    folder = recording.folder.parent
    fake_tool(
        folder / "bin", "program", f"while read -r verb rest; do case $verb in {script} esac; done"
    )
    return NativeEngine(
        folder / "bin" / "program",
        recording,
        disks=[ShelfDisk(serial="data0", size_mib=1)],
        folder=folder / "engine",
    )


_READS = "reads) printf '\\0%.0s' 1 2 3 4 5 6 7 8 > $rest; echo '{}';;"
"""Of each recovery: page 0 of disk 0."""
_LOADED = f"load) echo '{{}}';; {_READS}"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_engine, "_STATE_DEADLINE_S", 1)


def test_the_programs_answer_is_the_recovery(recording: Recording) -> None:
    log = recording.folder.parent / "commands"
    script = f"{_LOADED} recover) echo '{_ANSWER % ('a' * 32)}';; patch) echo $rest >> {log};;"
    surviving = CrashState(recording=recording.folder, cut=1, seed=0, disks={"data0": explicit(1)})
    with closing(begun(recording, script)) as engine:
        assert engine.recover(surviving).content == "a" * 32
        assert engine.proven(surviving) == engine.recover(surviving)
        assert engine.proven(_STATE) is None
        engine.take_ranges(Ranges.whole(SECTOR))
        assert engine.proven(surviving) is None, "its mark was made by other parts"
    assert log.read_text() == f"0 0 0 {SECTOR} 0\n" * 2


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("echo 'VERIFY failed' >&2; exit 1", "VERIFY failed"),
        ("sleep 9", "hung"),
        ("exit 0", "ended"),
    ],
)
def test_the_next_state_has_another_process(recording: Recording, end: str, words: str) -> None:
    """An assertion of the library ends its process. A deadline ends one that hangs."""
    once = recording.folder.parent / "once"
    script = (
        f"{_LOADED} recover) if [ -e {once} ]; then echo '{_ANSWER % ('a' * 32)}'; "
        f"else : > {once}; {end}; fi;;"
    )
    with closing(begun(recording, script)) as engine:
        with pytest.raises(GaveUp, match=words) as failure:
            engine.recover(_STATE)
        assert str(engine.log) in failure.value.hint
        with pytest.raises(GaveUp):
            engine.copy_volume(recording.folder / "image")
        assert engine.recover(_STATE).is_imported


def test_an_engine_that_cannot_begin_is_the_machinerys_failure(recording: Recording) -> None:
    with pytest.raises(HarnessError, match="no label") as failure:
        begun(recording, "load) echo 'data0 has no label of tank' >&2; exit 2;;")
    assert not isinstance(failure.value, GaveUp)


def test_another_answer_is_the_machinerys_failure(recording: Recording) -> None:
    with (
        closing(begun(recording, f"{_LOADED} recover) echo Killed;;")) as engine,
        pytest.raises(HarnessError, match="unreadable"),
    ):
        engine.recover(_STATE)


def test_a_closed_engine_leaves_no_process(recording: Recording) -> None:
    pid = recording.folder.parent / "pid"
    engine = begun(recording, f"load) echo $$ > {pid}; echo '{{}}';;")
    engine.close()
    engine.close()
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_the_memory_is_that_of_the_nas_which_recovers_all_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scout spares the NAS, whose memory then says nothing."""
    nas = KernelEngine.__new__(KernelEngine)
    monkeypatch.setattr(nas, "_must", lambda _script: "593000\n", raising=False)
    monkeypatch.setattr(nas, "recover", lambda _state: _GOOD)
    alone = engines_of(nas, None, tmp_path)
    assert alone.nas_available_mib() is None, "it has not started"
    assert alone.kernel() is nas
    assert alone.nas_available_mib() == 579
    scouted = engines_of(nas, Played(), tmp_path)
    scouted.kernel()
    assert scouted.nas_available_mib() is None


# All recoveries of a state count: by either engine, the first and the second, ended or hung.

_OTHER = Recovered(is_imported=True, content="c" * 32, health=PoolHealth())
_OLD = Recovered(is_imported=True, content="b" * 32, health=PoolHealth())
_SICK = Recovered(is_imported=True, content="a" * 32, health=PoolHealth(errors=1))
_REFUSED = Recovered(is_imported=False, reason="I/O error")
_MACHINE: Any = SimpleNamespace(name="nas", spec=SimpleNamespace(console_log="its.log"))
_HUNG = StorageFailed("it hung", machine=_MACHINE)
_CRASHED = GuestDied("a panic", machine=_MACHINE, kernel_crashed=True)
_KILLED = GuestDied("its QEMU is gone", machine=_MACHINE, kernel_crashed=False)


def _verdict(verdict: Verdict, *reasons: str) -> StateVerdict:
    lost = 0 if verdict in (Verdict.INTACT, Verdict.INCONCLUSIVE) else 1
    return StateVerdict(verdict=verdict, acknowledged=5, lost=lost, reasons=reasons)


def _judged(_state: CrashState, end: Recovered, _engine: Engine | None) -> StateVerdict:
    if end.refusal:
        return _verdict(Verdict.POOL_LOST)
    if end.health is not None and end.health.errors:
        return _verdict(Verdict.CORRUPTED)
    return _verdict(Verdict.ROLLED_BACK if end.content == _OLD.content else Verdict.INTACT)


def _recoveries(
    tmp_path: Path, *, kernel: Played, scout: Played | None = None, judge: Any = _judged
) -> Recoveries:
    engines = engines_of(kernel, scout, tmp_path)
    if scout is not None:
        engines.scout()
    return Recoveries(
        engines,
        judge=judge,
        is_known=lambda _end: True,
        hung=lambda _state, reason: _verdict(Verdict.UNAVAILABLE, reason),
        times=Times(),
    )


def _counts(document: WalkDocument) -> dict[str, int]:
    names = (
        "repeated", "differing", "proofs_repeated", "proofs_differing", "compared", "disagreeing",
        "given_up",
    )  # fmt: skip
    return {name: count for name in names if (count := getattr(document, name))}


def test_an_intact_state_of_the_library_needs_no_kernel(tmp_path: Path) -> None:
    recoveries = _recoveries(tmp_path, kernel=Played(), scout=Played(_GOOD))
    (found,) = recoveries.of(_STATE)
    assert (found.verdict.verdict, found.how) == (Verdict.INTACT, How.LIBRARY)
    assert _counts(recoveries.document) == {}


@pytest.mark.parametrize(
    ("by_scout", "by_kernel", "verdict", "disagreeing"),
    [
        (_OLD, _OLD, Verdict.ROLLED_BACK, 0),
        (_OLD, _GOOD, Verdict.ROLLED_BACK, 1),
        (_OLD, _REFUSED, Verdict.POOL_LOST, 1),
        (_REFUSED, _GOOD, Verdict.POOL_LOST, 1),
        (_REFUSED, _REFUSED, Verdict.POOL_LOST, 0),
        (_SICK, _GOOD, Verdict.CORRUPTED, 1),
        (_SICK, _SICK, Verdict.CORRUPTED, 0),
        (_OLD, _HUNG, Verdict.UNAVAILABLE, 1),
        (_OLD, _CRASHED, Verdict.UNAVAILABLE, 1),
    ],
)
def test_the_library_never_decides_a_loss_alone_and_none_is_forgotten(
    by_scout: Recovered,
    by_kernel: Recovered | HarnessError,
    verdict: Verdict,
    disagreeing: int,
    tmp_path: Path,
) -> None:
    recoveries = _recoveries(tmp_path, kernel=Played(by_kernel), scout=Played(by_scout))
    found = recoveries.of(_STATE)
    assert [recovery.how for recovery in found] == [How.LIBRARY, How.KERNEL]
    assert worst_of(found).verdict is verdict
    assert (recoveries.document.compared, recoveries.document.disagreeing) == (1, disagreeing)


@pytest.mark.parametrize("has_scout", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "verdict", "differing"),
    [
        (_GOOD, _GOOD, Verdict.INTACT, 0),
        (_GOOD, _OTHER, Verdict.INTACT, 1),
        (_GOOD, _OLD, Verdict.ROLLED_BACK, 1),
        (_OLD, _GOOD, Verdict.ROLLED_BACK, 1),
        (_GOOD, _SICK, Verdict.CORRUPTED, 1),
        (_REFUSED, _GOOD, Verdict.POOL_LOST, 1),
    ],
)
def test_a_second_recovery_does_not_replace_the_first(
    first: Recovered,
    second: Recovered,
    verdict: Verdict,
    differing: int,
    has_scout: bool,
    tmp_path: Path,
) -> None:
    played = Played(first, second)
    recoveries = (
        _recoveries(tmp_path, kernel=Played(_GOOD), scout=played)
        if has_scout
        else _recoveries(tmp_path, kernel=played)
    )
    found = recoveries.of(_STATE, again=True)
    assert worst_of(found).verdict is verdict
    assert found[0].end == first
    assert (recoveries.document.repeated, recoveries.document.differing) == (1, differing)


@pytest.mark.parametrize("failure", [_HUNG, _CRASHED])
def test_a_state_that_hangs_or_crashes_a_machine_is_unavailable(
    failure: HarnessError, tmp_path: Path
) -> None:
    """Also if the same state comes back at the second try. The next state has another NAS."""
    kernel = Played(failure, _GOOD, _GOOD)
    recoveries = _recoveries(tmp_path, kernel=kernel)
    found = recoveries.of(_STATE, again=True)
    assert worst_of(found).verdict is Verdict.UNAVAILABLE
    assert worst_of(found).reasons == (str(failure).splitlines()[0],)
    assert (recoveries.document.differing, kernel.is_closed) == (1, True)
    (later,) = recoveries.of(_STATE)
    assert later.verdict.verdict is Verdict.INTACT


def test_a_clients_hang_is_no_intact_state_either(tmp_path: Path) -> None:
    """The look at the library's content hangs, and that at the kernel's does not."""
    looks = iter((_HUNG, None))

    def judge(state: CrashState, end: Recovered, engine: Engine | None) -> StateVerdict:
        if (failure := next(looks)) is not None:
            raise failure
        return _judged(state, end, engine)

    recoveries = _recoveries(tmp_path, kernel=Played(_GOOD), scout=Played(_GOOD), judge=judge)
    assert worst_of(recoveries.of(_STATE)).verdict is Verdict.UNAVAILABLE
    assert recoveries.document.disagreeing == 1


def test_a_machine_that_is_killed_says_nothing_of_a_state(tmp_path: Path) -> None:
    for recoveries in (
        _recoveries(tmp_path, kernel=Played(_KILLED)),
        _recoveries(tmp_path, kernel=Played(_KILLED), scout=Played(_OLD)),
    ):
        with pytest.raises(GuestDied):
            recoveries.of(_STATE)


@pytest.mark.parametrize("by_kernel", [_GOOD, _OLD])
def test_the_kernel_recovers_a_state_that_the_library_cannot(
    by_kernel: Recovered, tmp_path: Path
) -> None:
    recoveries = _recoveries(tmp_path, kernel=Played(by_kernel), scout=Played(GaveUp("ended")))
    (found,) = recoveries.of(_STATE)
    assert (found.end, found.how) == (by_kernel, How.KERNEL)
    assert _counts(recoveries.document) == {"given_up": 1}


def test_a_proof_needs_no_recovery_unless_it_is_a_loss(tmp_path: Path) -> None:
    recoveries = _recoveries(tmp_path, kernel=Played(), scout=Played(proof=_GOOD))
    (found,) = recoveries.of(_STATE, again=True)
    assert (found.how, found.verdict.verdict) == (How.PROOF, Verdict.INTACT)
    recoveries = _recoveries(tmp_path, kernel=Played(_GOOD), scout=Played(proof=_OLD))
    found, by_kernel = recoveries.of(_STATE)
    assert worst_of((found, by_kernel)).verdict is Verdict.ROLLED_BACK
    assert _counts(recoveries.document) == {"compared": 1, "disagreeing": 1}


def test_a_proof_of_a_content_that_nobody_looked_at_is_recovered(tmp_path: Path) -> None:
    recoveries = _recoveries(tmp_path, kernel=Played(), scout=Played(_GOOD, proof=_GOOD))
    recoveries._is_known = lambda _end: False
    (found,) = recoveries.of(_STATE)
    assert found.how is not How.PROOF


@pytest.mark.parametrize(
    ("shown", "differing"), [(_GOOD, 0), (_OTHER, 1), (_OLD, 1), (_REFUSED, 1)]
)
def test_a_proof_is_compared_with_a_recovery(
    shown: Recovered, differing: int, tmp_path: Path
) -> None:
    recoveries = _recoveries(tmp_path, kernel=Played(), scout=Played(shown))
    proof = Recovery(state=_STATE, how=How.PROOF, end=_GOOD, verdict=_verdict(Verdict.INTACT))
    assert recoveries.proof_checked(proof).end == shown
    expected = {"proofs_repeated": 1} | ({"proofs_differing": 1} if differing else {})
    assert _counts(recoveries.document) == expected


def test_anything_unknown_outranks_an_intact_recovery_and_no_damage() -> None:
    intact, unknown, repaired = (
        Recovery(state=_STATE, how=How.LIBRARY, end=_GOOD, verdict=_verdict(verdict))
        for verdict in (Verdict.INTACT, Verdict.INCONCLUSIVE, Verdict.REPAIRED)
    )
    assert worst_of((intact, unknown)).verdict is Verdict.INCONCLUSIVE
    assert worst_of((unknown, repaired, intact)).verdict is Verdict.REPAIRED
