"""Two nights compared: one with fewer conclusive trials than the last may have lost data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import AuditDocument
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import TrialRecord
from torture.report.figures.versus import Versus, compare_runs

CELLS = [Cell.parse(f"iscsi-always-noslog-{filesystem}-bothdie") for filesystem in ("ext4", "xfs")]
TRIALS = 40
"""Of both cells together."""

IsUnresolved = Callable[[int, TrialRecord], bool]


def night(folder: Path, unresolved: IsUnresolved, *, is_empty: bool = False) -> Path:
    """A night of safe cells; of which trials nothing is known, by number."""

    def judged(number: int, record: TrialRecord) -> TrialRecord:
        record = changed(record, verdict=Verdict.INTACT, lost=0, error=None)
        if not unresolved(number, record):
            return record
        at_work = 0 if is_empty else 1
        audit = AuditDocument(under_way=at_work, acknowledged_lately=at_work)
        cut = replace(record.cut, disks={}, hit=False, audit=audit)
        return changed(record, verdict=Verdict.INCONCLUSIVE, cut=cut)

    records = make_records(TRIALS, cells=CELLS, seed=1)
    return write_run(folder, [judged(number, record) for number, record in enumerate(records)])


@pytest.fixture
def against(tmp_path: Path) -> Callable[..., Versus]:
    """A night without inconclusive trials, and this one."""
    old = night(tmp_path / "old", lambda _number, _record: False)

    def compare(unresolved: IsUnresolved, **more: bool) -> Versus:
        return compare_runs([old], [night(tmp_path / "new", unresolved, **more)])

    return compare


def test_a_night_with_fewer_conclusive_trials_of_a_cell_is_worse(
    against: Callable[..., Versus],
) -> None:
    versus = against(lambda number, record: record.cell == CELLS[1].name and number < 16)
    assert versus.worse == ()
    assert versus.has_failed
    assert "No configuration of 2 got significantly worse. More trials are incon" in versus.sentence
    assert "8/40 20 % [9.05-36 %], before 0/40" in versus.sentence
    assert f"most in {CELLS[1].name}" in versus.sentence


def test_a_night_without_conclusive_trials_has_not_passed(against: Callable[..., Versus]) -> None:
    versus = against(lambda _number, _record: True)
    assert versus.pairs == ()
    assert versus.has_failed
    assert versus.sentence.startswith("Nothing can be compared: ")


def test_more_trials_that_break_their_guarantee_and_lose_nothing_are_worse(
    tmp_path: Path,
) -> None:
    """The audit finds a flush that is missing where a cut need not have met it."""

    def of(broken: int) -> list[TrialRecord]:
        audit = AuditDocument(broken=1, under_way=1)
        return [
            changed(record, verdict=Verdict.INTACT, lost=0, error=None)
            if number >= broken
            else changed(
                record, verdict=Verdict.INTACT, lost=0, cut=replace(record.cut, audit=audit)
            )
            for number, record in enumerate(make_records(TRIALS, cells=CELLS, seed=1))
        ]

    old, new = (write_run(tmp_path / name, of(count)) for name, count in (("old", 1), ("new", 9)))
    versus = compare_runs([old], [new])
    assert versus.worse == ()
    assert versus.has_failed
    assert (
        "More trials are worse than theory guarantees, and not by chance: 9/40" in versus.sentence
    )
    assert not compare_runs([old], [old]).has_failed
    assert not compare_runs([new], [old]).has_failed


def test_some_trial_is_always_inconclusive(against: Callable[..., Versus]) -> None:
    versus = against(lambda number, _record: number < 4)
    assert (versus.pooled[1].new.events, versus.has_failed) == (4, False)
    assert "inconclusive" not in versus.sentence


def test_empty_cuts_are_known_to_have_taken_nothing(against: Callable[..., Versus]) -> None:
    versus = against(lambda number, _record: number < 20, is_empty=True)
    assert (versus.pooled[1].new.events, versus.has_failed) == (0, False)


def run_of(folder: Path, losses: dict[str, int], *, trials: int = 10, **more: Any) -> Path:
    """A run of these cells; so many trials of each lost data."""
    records = []
    for cell, lost in losses.items():
        made = make_records(trials, cells=[Cell.parse(cell)], seed=len(str(folder)))
        records += [
            changed(
                record,
                verdict=Verdict.ROLLED_BACK if number < lost else Verdict.INTACT,
                lost=3 if number < lost else 0,
                rollback_ms=100.0 if number < lost else None,
                error=None,
            )
            for number, record in enumerate(made)
        ]
    return write_run(folder, records, **more)


SAFE = CELLS[0].name
LOSSY = [
    f"iscsi-disabled-{slog}-{filesystem}-{fate}"
    for slog in ("noslog", "plp", "volatile", "mirror")
    for filesystem in ("ext4", "xfs", "btrfs", "raw")
    for fate in ("bothdie", "nasonly")
]


def test_one_broken_guarantee_is_enough_and_is_named_with_its_trial(tmp_path: Path) -> None:
    others = dict.fromkeys(LOSSY, 5)
    old = run_of(tmp_path / "old", others | {SAFE: 0})
    new = run_of(tmp_path / "new", others | {SAFE: 1})
    versus = compare_runs([old], [new])
    assert versus.worse == ()
    assert versus.has_failed
    [(cell, [trial])] = versus.breaches.items()
    assert cell == SAFE
    assert f"no old trial broke it: {SAFE}, in {trial}." in versus.sentence
    assert not compare_runs([new], [new]).has_failed, "no news"


def test_a_disaster_in_one_lossy_cell_of_many_is_seen(tmp_path: Path) -> None:
    silent = dict.fromkeys(LOSSY, 0)
    old = run_of(tmp_path / "old", silent)
    new = run_of(tmp_path / "new", silent | {LOSSY[3]: 6})
    versus = compare_runs([old], [new])
    assert [pair.first.cell for pair in versus.worse] == [LOSSY[3]]
    assert versus.breaches == {}, "theory allows it"
    assert len(versus.pairs) == len(LOSSY), "one rate per cell"
    back = compare_runs([new], [old])
    assert ([pair.first.cell for pair in back.better], back.has_failed) == ([LOSSY[3]], False)


def test_runs_that_stopped_at_an_answer_are_compared_by_their_own_intervals(
    tmp_path: Path,
) -> None:
    """By Fisher's test these counts would differ."""
    options = {"until": "upper<0.3"}
    old, few, many = (
        run_of(tmp_path / name, {LOSSY[0]: lost}, trials=20, options=options)
        for name, lost in (("old", 0), ("few", 6), ("many", 15))
    )
    fixed = run_of(tmp_path / "fixed", {LOSSY[0]: 0}, trials=20)
    assert not compare_runs([old], [few]).has_failed
    assert compare_runs([fixed], [run_of(tmp_path / "six", {LOSSY[0]: 6}, trials=20)]).has_failed
    for start in (old, fixed):
        versus = compare_runs([start], [many])
        assert [pair.first.cell for pair in versus.worse] == [LOSSY[0]]
        assert versus.pooled == ()
        assert "stopped at an answer" in " ".join(versus.remarks)


def broken_run(folder: Path, ends: dict[Verdict, int], *, broken_audits: int = 0) -> Path:
    """A run of ten trials of a safe cell; so many ended so, in the others nothing was lost."""
    verdicts = [verdict for verdict, count in ends.items() for _ in range(count)]
    records = make_records(10, cells=CELLS[:1], seed=len(str(folder)))
    audit = AuditDocument(broken=1, under_way=1)
    return write_run(
        folder,
        [
            changed(
                record,
                verdict=verdicts[number] if number < len(verdicts) else Verdict.INTACT,
                lost=0,
                error=None,
                cut=replace(record.cut, audit=audit)
                if number >= 10 - broken_audits
                else record.cut,
            )
            for number, record in enumerate(records)
        ],
    )


@pytest.mark.parametrize(
    ("ends", "broken_audits", "has_failed"),
    [
        ({Verdict.REPAIRED: 1}, 0, False),
        ({Verdict.REPAIRED: 2}, 0, False),
        ({Verdict.POOL_LOST: 1}, 0, True),
        ({Verdict.CORRUPTED: 1}, 0, True),
        ({Verdict.REPAIRED: 6}, 0, True),
        ({}, 1, True),
    ],
    ids=str,
)
def test_an_old_breach_hides_no_worse_one_and_no_higher_rate(
    ends: dict[Verdict, int], broken_audits: int, has_failed: bool, tmp_path: Path
) -> None:
    """One of ten trials of the old night was repaired: a documented finding of its cell."""
    old = broken_run(tmp_path / "old", {Verdict.REPAIRED: 1})
    new = broken_run(tmp_path / "new", ends, broken_audits=broken_audits)
    versus = compare_runs([old], [new])
    assert versus.has_failed is has_failed
    if ends == {Verdict.REPAIRED: 6}:
        assert [pair.first.cell for pair in versus.worse] == [f"{SAFE} (broken guarantees)"]
