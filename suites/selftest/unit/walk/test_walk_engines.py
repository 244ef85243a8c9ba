"""The engines of a walk: the scout's process, and the kernel's ZFS that decides after it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from suites.selftest.unit.conftest import fake_tool
from suites.selftest.unit.facts.shelf_logs import SECTOR, explicit
from torture.errors import HarnessError
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import Event, Kind, RecordedDisk, Recording
from torture.features.walk.engines import native_engine
from torture.features.walk.engines.engine import Engine, GaveUp, Ranges, Recovered, Scout
from torture.features.walk.engines.engines import Engines
from torture.features.walk.engines.kernel_engine import KernelEngine
from torture.features.walk.engines.native_engine import NativeEngine

_MIB = 1024 * 1024
_STATE = CrashState(recording=Path("life-1"), cut=0, seed=0, disks={"data0": explicit()})
_GOOD = Recovered(is_imported=True, content="a" * 32)
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
