"""The live line: its text, and its silence without a terminal."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import cast

import pytest
from rich.console import Console

from suites.selftest.unit.made_records import trial_record
from torture.choices.matrix.cells import cells_of
from torture.choices.matrix.guarantees import guarantee_of
from torture.facts.axes.sweeps import Matrix
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord
from torture.trials.campaign.campaign import Campaign, WorkerState
from torture.trials.campaign.progress import Progress

_CELL = cells_of(Matrix.QUICK)[0]


@dataclass
class Outcome:
    """As much of a campaign as the line looks at."""

    records: tuple[TrialRecord, ...] = ()
    earlier: tuple[TrialRecord, ...] = ()
    total: int = 4
    states: dict[int, WorkerState] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def _record(number: int, verdict: Verdict) -> TrialRecord:
    return trial_record(
        trial=f"trial-{number}",
        cell=_CELL.name,
        axes=_CELL.axes,
        seed=number,
        verdict=verdict,
        guarantee=guarantee_of(_CELL),
    )


def _progress(outcome: Outcome, *, terminal: bool = False) -> tuple[Progress, io.StringIO]:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=120)
    return Progress(cast(Campaign, outcome), console), file


def test_the_line_shows_done_and_left_verdicts_rate_and_each_workers_stage() -> None:
    verdicts = (Verdict.INTACT, Verdict.INTACT, Verdict.CORRUPTED)
    records = tuple(_record(number, verdict) for number, verdict in enumerate(verdicts))
    outcome = Outcome(records=records, states={0: WorkerState(trial="t", stage="check")})
    line = _progress(outcome)[0].line().plain
    assert line.startswith("3/4 trials  intact 2  corrupted 1  ")
    assert "/h" in line
    assert "left" in line
    assert line.endswith("[w0: check]")


def test_the_rate_of_a_run_that_goes_on_is_that_of_its_new_trials() -> None:
    records = tuple(_record(number, Verdict.INTACT) for number in range(3))
    line = _progress(Outcome(records=records, earlier=records))[0].line().plain
    assert line.startswith("3/4 trials  intact 3")
    assert "/h" not in line


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_a_style_by_its_place(verdict: Verdict) -> None:
    line = _progress(Outcome(records=(_record(0, verdict),)))[0].line()
    styles = {line.plain[span.start : span.end].split()[0]: span.style for span in line.spans}
    if verdict is Verdict.INCONCLUSIVE:
        assert styles[verdict] == "magenta"
    elif verdict.is_corruption:
        assert "red" in str(styles[verdict])
    else:
        assert styles[verdict] == {
            Verdict.INTACT: "green", Verdict.ROLLED_BACK: "dark_orange",
        }.get(verdict, "yellow")  # fmt: skip


def test_before_the_first_trial_it_guarantees_no_rate() -> None:
    line = _progress(Outcome())[0].line().plain
    assert line.startswith("0/4 trials")
    assert "/h" not in line


def test_plain_lines_come_now_and_then_not_at_every_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr("torture.trials.campaign.progress.time.monotonic", lambda: now_s)
    progress, file = _progress(Outcome())
    for _ in range(60):
        now_s += 1.0
        progress.beat()
    assert file.getvalue().count("0/4 trials") == 4


def test_a_terminal_gets_a_line_that_goes_away_and_no_plain_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    progress, file = _progress(Outcome(), terminal=True)
    with progress.shown():
        progress.beat()
    assert "0/4 trials" in file.getvalue()
    assert "\x1b[2K" in file.getvalue()


def test_a_terminal_that_can_take_nothing_back_gets_plain_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    now_s = 1000.0
    monkeypatch.setattr("torture.trials.campaign.progress.time.monotonic", lambda: now_s)
    progress, file = _progress(Outcome(), terminal=True)
    with progress.shown():
        now_s += 60.0
        progress.beat()
    assert file.getvalue().count("0/4 trials") == 1
    assert "\x1b[2K" not in file.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_each_remark_of_the_place_is_printed_once(terminal: bool) -> None:
    outcome = Outcome(remarks=("host a is out",))
    progress, file = _progress(outcome, terminal=terminal)
    progress.beat()
    outcome.remarks += ("host b is out",)
    progress.beat()
    progress.beat()
    assert file.getvalue().splitlines() == ["host a is out", "host b is out"]
