"""The live line: its text, and its silence without a terminal."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass, field
from typing import cast

import pytest
from rich.console import Console

from torture.oracles.verdict.guarantee import Verdict
from torture.trials.campaign.campaign import Campaign, WorkerState
from torture.trials.campaign.progress import Progress


@dataclass
class Outcome:
    """As much of a campaign as the line looks at."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    earlier: int = 0
    total: int = 4
    states: dict[int, WorkerState] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def _progress(outcome: Outcome, *, terminal: bool = False) -> tuple[Progress, io.StringIO]:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=120)
    return Progress(cast(Campaign, outcome), console), file


def test_the_line_shows_done_and_left_verdicts_rate_and_each_workers_stage() -> None:
    verdicts = (Verdict.INTACT, Verdict.INTACT, Verdict.CORRUPTED)
    outcome = Outcome(verdicts=Counter(verdicts), states={0: WorkerState(trial="t", stage="check")})
    line = _progress(outcome)[0].line().plain
    assert line.startswith("3/4 trials  intact 2  corrupted 1  ")
    assert "/h" in line
    assert "left" in line
    assert line.endswith("[w0: check]")


def test_the_rate_of_a_run_that_goes_on_is_that_of_its_new_trials() -> None:
    outcome = Outcome(verdicts=Counter({Verdict.INTACT: 3}), earlier=3)
    line = _progress(outcome)[0].line().plain
    assert line.startswith("3/4 trials  intact 3")
    assert "/h" not in line


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_a_style_by_its_place(verdict: Verdict) -> None:
    line = _progress(Outcome(verdicts=Counter([verdict])))[0].line()
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
    progress, file = _progress(Outcome(states={0: WorkerState(trial="t", stage="walk 20")}))
    for _ in range(60):
        now_s += 1.0
        progress.beat()
    assert file.getvalue().count("0/4 trials  [w0: walk 20]") == 4


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
    outcome = Outcome(remarks=("host a [tls] is out",))
    progress, file = _progress(outcome, terminal=terminal)
    progress.beat()
    outcome.remarks += ("host b is out",)
    progress.beat()
    progress.beat()
    assert file.getvalue().splitlines() == ["host a [tls] is out", "host b is out"]
