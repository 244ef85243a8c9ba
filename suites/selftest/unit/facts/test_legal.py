"""The judge of crash states: a state is one that a cut can leave, or the reason is said."""

from __future__ import annotations

import ast
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from suites.selftest.unit.facts.shelf_logs import SECTOR, SECTORS, Log, explicit, logs
from suites.selftest.unit.facts.test_recording_states import recording_of
from torture.errors import HarnessError
from torture.facts.recording import legal
from torture.facts.recording.crash_state import CrashState, DiskState, Policy, write_crash_state
from torture.facts.recording.disks import Persistence, ShelfDisk
from torture.facts.recording.events import RecordedDisk, Recording, ViewSource
from torture.facts.recording.legal import fates, require_legal, why_illegal
from torture.facts.recording.model import survivors, writes_until
from torture.facts.states.states import distinct_states
from torture.trials.plan.survivors import draw_disk_states

PLP, VOLATILE, LYING = Persistence.PLP, Persistence.VOLATILE, Persistence.LYING


def test_the_judge_of_states_knows_nothing_of_their_maker() -> None:
    tree = ast.parse(Path(legal.__file__).read_text())
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert modules
    assert not [
        module for module in modules if module and module.startswith("torture.facts.states")
    ]
    assert "torture.facts.recording.model" not in modules


@given(log=logs)
@settings(max_examples=examples(200), deadline=None)
def test_a_write_is_open_where_the_shelfs_specification_lets_the_view_decide(log: Log) -> None:
    for cut in range(log.last + 1):
        found = fates(log.events, disk=0, persistence=VOLATILE, cut=cut)
        writes = writes_until(log.events, disk=0, cut=cut)
        assert found.covered == {write.submission for write in writes if write.covered}
        assert found.open == {write.submission for write in writes if not write.covered}
        of_protected = fates(log.events, disk=0, persistence=PLP, cut=cut)
        assert of_protected.covered == found.covered
        assert of_protected.open == {
            write.submission for write in writes if write.completion is None
        }
        assert of_protected.kept == found.open - of_protected.open


@given(log=logs, seed=st.integers(0, 1 << 40), persistence=st.sampled_from([PLP, VOLATILE]))
@settings(max_examples=examples(200), deadline=None)
def test_the_states_that_a_trial_draws_are_legal(
    log: Log, seed: int, persistence: Persistence
) -> None:
    """Of any policy, as the shelf's specification applies it."""
    recording = recording_of(log)
    disks = [ShelfDisk(serial="data0", size_mib=1, persistence=persistence)]
    for draw in (1, 3):
        view = draw_disk_states(disks, seed=seed, draw=draw)["data0"]
        left = survivors(log.events, disk=0, sector=SECTOR, view=view, cut=log.last, seed=seed)
        drawn = CrashState(
            recording=recording.folder, cut=log.last, seed=seed, disks={"data0": view}
        )
        certain = {
            write.submission
            for write in writes_until(log.events, disk=0, cut=log.last, view=view)
            if write.covered
        }
        listed = explicit(*left.items(), *sorted(certain))
        as_list = replace(drawn, disks={"data0": listed})
        assert not why_illegal(recording, drawn, {"data0": persistence})
        assert not why_illegal(recording, as_list, {"data0": persistence})


def state_of(log: Log, view: DiskState, *, cut: int | None = None) -> CrashState:
    last = log.last if cut is None else cut
    return CrashState(recording=Path("life-1"), cut=last, seed=0, disks={"data0": view})


def story() -> tuple[Log, dict[str, int]]:
    """A write of each fate."""
    log = Log()
    writes = {"flushed": log.write(at=0, sectors=2)}
    log.flush()
    writes |= {"fua": log.write(at=1, sectors=2, fua=True), "cached": log.write(at=2, sectors=2)}
    writes |= {"in flight": log.submit(at=4, sectors=2), "failed": log.submit(at=6)}
    log.complete(writes["failed"], error=5)
    return log, writes


@pytest.mark.parametrize(
    ("survivors_", "of_volatile", "of_protected"),
    [
        ([], "", "not there"),
        (["cached"], "", ""),
        (["cached", "in flight"], "", ""),
        (["flushed", "fua", "cached"], "", ""),
        ([("cached", (1,))], "", "only a part"),
        ([("cached", (0, 1)), ("in flight", (0,))], "", ""),
        ([("flushed", (0,)), "cached"], "only a part", "only a part"),
        ([("in flight", (0, 2)), "cached"], "2 sectors", "2 sectors"),
        (["failed", "cached"], "had failed", "had failed"),
    ],
)
def test_a_state_is_legal_or_the_reason_is_said(
    survivors_: list[str | tuple[str, tuple[int, ...]]], of_volatile: str, of_protected: str
) -> None:
    log, writes = story()
    listed = [
        writes[one] if isinstance(one, str) else (writes[one[0]], one[1]) for one in survivors_
    ]
    state = state_of(log, explicit(*listed))
    for persistence, why in ((VOLATILE, of_volatile), (PLP, of_protected)):
        found = why_illegal(recording_of(log), state, {"data0": persistence})
        assert (why in found) if why else not found, (persistence, found)
        disks = [
            ShelfDisk(serial="data0", size_mib=1, persistence=persistence),
            ShelfDisk(serial="data1", size_mib=1, persistence=LYING),
        ]
        with pytest.raises(HarnessError, match="no cut at event") if why else nullcontext():
            require_legal(recording_of(log), state, disks)


@pytest.mark.parametrize(
    ("view", "of_volatile", "of_protected"),
    [
        (DiskState(policy=Policy.ALL), "", ""),
        (DiskState(policy=Policy.FLUSHED), "", "protected"),
        (DiskState(policy=Policy.TORN), "", "protected"),
        (DiskState(policy=Policy.LYING, lying_ms=700), "700 ms", "protected"),
        (DiskState(policy=Policy.SUBSET, lying_ms=700), "700 ms", "protected"),
    ],
)
def test_a_policy_fits_its_disk(view: DiskState, of_volatile: str, of_protected: str) -> None:
    log, _ = story()
    for persistence, why in ((VOLATILE, of_volatile), (PLP, of_protected)):
        found = why_illegal(recording_of(log), state_of(log, view), {"data0": persistence})
        assert (why in found) if why else not found, (persistence, found)


def test_writes_after_the_cut_and_unknown_events_are_no_part_of_a_state() -> None:
    log, writes = story()
    recording = recording_of(log)
    early = state_of(log, explicit(writes["cached"]), cut=writes["flushed"])
    assert "not submitted" in why_illegal(recording, early, {"data0": VOLATILE})
    beyond = state_of(log, explicit(), cut=log.last + 1)
    assert "no event" in why_illegal(recording, beyond, {"data0": VOLATILE})
    assert why_illegal(recording, beyond, {"data1": VOLATILE})
    assert "not there" in why_illegal(recording, state_of(log, explicit()), {"data1": VOLATILE})


def test_disks_that_lie_are_refused() -> None:
    log, _ = story()
    with pytest.raises(ValueError, match="lies"):
        why_illegal(recording_of(log), state_of(log, explicit()), {"data0": LYING})
    with pytest.raises(ValueError, match="data1"):
        distinct_states(
            recording_of(log), {"data0": PLP, "data1": LYING}, first=0, last=log.last, seed=1
        )


def test_a_state_amid_a_recovery_is_as_legal_as_the_one_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, writes = story()
    monkeypatch.setattr(legal, "load_recording", lambda _folder: recording_of(log))
    above = Log()
    recording = Recording(
        folder=tmp_path / "life-2",
        disks=(
            RecordedDisk(
                name="data0",
                size=SECTORS * SECTOR,
                sector=SECTOR,
                physical_sector=SECTOR,
                source=ViewSource(view=tmp_path / "cut.view.json", disk="data0"),
            ),
        ),
        events=tuple(above.events),
    )
    for view, why in (
        (explicit(writes["cached"]), ""),
        (explicit(), "began with"),
        (DiskState(policy=Policy.ALL), ""),
        (DiskState(policy=Policy.FLUSHED), "began with"),
    ):
        write_crash_state(tmp_path / "cut.view.json", state_of(log, view))
        found = why_illegal(recording, state_of(above, explicit()), {"data0": PLP})
        assert (why in found) if why else not found
