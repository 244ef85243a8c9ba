"""Workers that need no machines: each trial ends as the test says, in the thread that asked for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from suites.selftest.unit.made_records import trial_record
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.facts.stats.sequential import Until
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_records
from torture.records.schedules.protocol import Schedule
from torture.records.schedules.until import UntilSchedule
from torture.records.scoring.score import inconclusive
from torture.trials.campaign.campaign import Campaign
from torture.trials.campaign.keeping import EvidencePolicy
from torture.trials.campaign.run import Run
from torture.trials.plan.draw import draw_trials

ASKED = Cell.parse("iscsi-always-noslog-btrfs-nasonly")
OTHER = Cell.parse("iscsi-disabled-noslog-btrfs-nasonly")
THIRD = Cell.parse("iscsi-standard-noslog-btrfs-bothdie")
UNTIL = Until.parse("upper<0.3")
FEWEST = UNTIL.trials_at_best
DEADLINE_S = 30.0

VERDICTS = {
    ".": Verdict.INTACT, "L": Verdict.ROLLED_BACK, "C": Verdict.CORRUPTED,
    "?": Verdict.INCONCLUSIVE,
}  # fmt: skip
"""A letter an outcome. More letters: `M`, the machinery fails; `D`, the worker dies; `H`, it hangs."""


def record_of(spec: TrialSpec, outcome: str) -> TrialRecord:
    """The record of a trial that ended so."""
    if outcome == "M":
        return inconclusive(spec, zfs="", error="the machinery failed", timings={})
    return trial_record(
        trial=spec.trial,
        cell=spec.cell.name,
        axes=spec.cell.axes,
        seed=spec.seed,
        origin=spec.origin,
        repeats=spec.repeats,
        verdict=VERDICTS[outcome],
        guarantee=guarantee_of(spec.cell),
        lost=int(outcome in "LC"),
    )


@dataclass(kw_only=True)
class FakeSite:
    """A place for workers: what they do with each trial, and what became of them."""

    outcome: Callable[[TrialSpec], str] = lambda _spec: "."
    before_trial: Callable[[TrialSpec], None] = lambda _spec: None
    before_start: Callable[[int], None] = lambda _number: None
    """Called with the worker's number; raises what its start is to raise."""
    trial_deadline_s: float = 30.0
    begun: list[TrialSpec] = field(default_factory=list)
    deadlines_s: list[float] = field(default_factory=list)
    controllers: list[FakeController] = field(default_factory=list)
    is_closed: bool = False
    waits_s: float = 0.0
    failure: HarnessError | None = None
    remarks: tuple[str, ...] = ()
    own_slots: set[int] | None = None
    """The slots that the place says itself; None: as many as the user wishes."""

    def slots(self, jobs: int) -> frozenset[int]:
        return frozenset(range(jobs) if self.own_slots is None else self.own_slots)

    def controller(self, number: int, *, hear: Callable[[str], None]) -> FakeController:
        controller = FakeController(site=self, number=number, hear=hear)
        self.controllers.append(controller)
        return controller

    def close(self) -> None:
        self.is_closed = True


@dataclass(kw_only=True, eq=False)
class FakeController:
    """One worker; `ran` are the trials it was handed."""

    site: FakeSite
    number: int
    hear: Callable[[str], None]
    is_running: bool = False
    ran: list[TrialSpec] = field(default_factory=list)
    _killed: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self.site.before_start(self.number)
        self.is_running = True

    def run(self, spec: TrialSpec, *, deadline_s: float) -> TrialRecord:
        assert self.is_running, "a worker that is gone was handed a trial"
        self.ran.append(spec)
        self.site.begun.append(spec)
        self.site.deadlines_s.append(deadline_s)
        self.hear("load")
        self.site.before_trial(spec)
        outcome = self.site.outcome(spec)
        if outcome == "H":
            self._killed.wait(deadline_s)
        if outcome in "HD":
            self.kill()
            raise HarnessError("a worker died: it said nothing", hint="read w0.log")
        return record_of(spec, outcome)

    def kill(self) -> None:
        self.is_running = False
        self._killed.set()


def refusing(times: int) -> Callable[[int], None]:
    """A `before_start` that refuses so many times, whoever starts."""
    lock, left = threading.Lock(), [times]

    def refuse(_number: int) -> None:
        with lock:
            left[0] -= 1
            if left[0] >= 0:
                raise HarnessError("refused")

    return refuse


def specs_of(*cells: Cell, trials: int = 60) -> tuple[TrialSpec, ...]:
    return draw_trials(cells, trials=trials, run_seed=1, load_ms=500)


def until(*cells: Cell) -> UntilSchedule:
    return UntilSchedule(specs_of(*cells), UNTIL)


def campaign_of(
    folder: Path,
    schedule: Schedule,
    site: FakeSite,
    *,
    jobs: int = 2,
    keep: EvidencePolicy = EvidencePolicy.ALL,
    earlier: Sequence[TrialRecord] = (),
    longer_s: float = 0,
) -> Campaign:
    return Campaign(
        run=Run(folder=folder),
        schedule=schedule,
        site=site,
        jobs=jobs,
        keep=keep,
        earlier=earlier,
        longer_s=longer_s,
    )


def play(campaign: Campaign, *cells: Cell) -> tuple[TrialRecord, ...]:
    """Run until these cells are over; returns the records in the order they were written."""
    campaign.start()
    try:
        for cell in cells:
            assert campaign.wait_for(cell, timeout_s=DEADLINE_S), cell.name
    finally:
        campaign.stop()
    records = read_records(campaign.run.trials_file).records
    assert records == campaign.records
    return records
