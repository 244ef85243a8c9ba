"""The live line of a run: trials done and left, verdicts, and the time left at this host's rate."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import RUN_FILE, RunLayout, read_run_document
from torture.records.record.trials_file import read_records
from torture.trials.campaign.campaign import Campaign

_TRIALS_ENOUGH = 100
_HOUR_MS = 3_600_000
_DAYS_FROM_MINUTES = 3 * 1440


@dataclass(frozen=True, kw_only=True, slots=True)
class Speed:
    """Cuts an hour, and the number of trials and runs behind this figure."""

    per_hour: float
    trials: int
    runs: int

    def time_for(self, cuts: int) -> str:
        """The time for this number of cuts, e.g. `40 min`, `1 h 57 min`, `12 days`."""
        minutes = math.ceil(cuts / self.per_hour * 60)
        if minutes >= _DAYS_FROM_MINUTES:
            return f"{minutes / 1440:.0f} days"
        return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


def measured_speed(results: Path) -> Speed | None:
    """The speed of the newest runs below `results`, of 100 trials or more if there are; else None.

    A trial takes the sum of its stages. A run has as many trials under way as it has jobs. Trials
    without timings (their worker died) and replays do not count.
    """
    spent_ms, trials, runs = 0.0, 0, 0
    for jobs, durations_ms in _newest_first(results):
        spent_ms += sum(durations_ms) / jobs
        trials += len(durations_ms)
        runs += 1
        if trials >= _TRIALS_ENOUGH:
            break
    if spent_ms == 0:
        return None
    return Speed(per_hour=trials / spent_ms * _HOUR_MS, trials=trials, runs=runs)


def _newest_first(results: Path) -> Iterator[tuple[int, list[int]]]:
    """Each run's jobs and its trials' durations; skips folders that are no run."""
    for run_file in sorted(results.glob(f"*/{RUN_FILE}"), reverse=True):
        folder = run_file.parent
        if folder.is_symlink():  # `latest`
            continue
        document = read_run_document(folder)
        if document is None or document.jobs is None:
            continue
        records = read_records(RunLayout(folder=folder).trials_file).live
        durations_ms = [sum(record.timings.values()) for record in records if record.timings]
        if durations_ms:
            yield document.jobs, durations_ms


_PLAIN_LINE_EVERY_S = 15.0
_STYLES = {
    Verdict.INTACT: "green",
    Verdict.OFFLINE: "yellow",
    Verdict.ROLLED_BACK: "dark_orange",
    Verdict.CORRUPTED: "red",
    Verdict.UNREPAIRABLE: "bold red",
}
"""From best to worst: each style is also that of worse verdicts, up to the next one here."""
_STYLE_INCONCLUSIVE = "magenta"


class Progress:
    """Shows a campaign during a wait for it; without a terminal, prints plain lines now and then."""

    def __init__(self, campaign: Campaign, console: Console) -> None:
        self._campaign = campaign
        self._console = console
        # a dumb terminal cannot erase a line
        self._has_live_line = console.is_terminal and not console.is_dumb_terminal
        self._begun_s = time.monotonic()
        self._had_line = False
        self._remarks_shown = 0
        self._plain_after_s = self._begun_s + _PLAIN_LINE_EVERY_S

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the line while the block runs, and remove it afterwards."""
        if not self._has_live_line:
            yield
            return
        if not self._had_line:
            self._console.print()  # pytest's own line stays above
            self._had_line = True
        with Live(
            get_renderable=self.line, console=self._console, refresh_per_second=4, transient=True
        ):
            yield

    def beat(self) -> None:
        """Print new remarks, and a plain line when it is time and there is no live line.

        Callers call it often.
        """
        for remark in self._campaign.remarks[self._remarks_shown :]:
            self._console.print(remark, soft_wrap=True, highlight=False, markup=False)
            self._remarks_shown += 1
        now_s = time.monotonic()
        if self._has_live_line or now_s < self._plain_after_s:
            return
        self._plain_after_s = now_s + _PLAIN_LINE_EVERY_S
        self._console.print(self.line().plain, soft_wrap=True, highlight=False, markup=False)

    def line(self) -> Text:
        """The line, e.g. `12/60 trials  intact 7  corrupted 5  210/h  14 min left  [w0 check]`."""
        counts = self._campaign.verdicts
        elapsed_s = max(time.monotonic() - self._begun_s, 1e-9)
        ended = counts.total()
        new = ended - self._campaign.earlier
        per_hour = new / elapsed_s * 3600
        text = Text(f"{ended}/{self._campaign.total} trials")
        for verdict in Verdict:
            if counts[verdict]:
                text.append(f"  {verdict} {counts[verdict]}", style=_style_of(verdict))
        if new:
            left_s = (self._campaign.total - ended) / per_hour * 3600
            text.append(f"  {per_hour:.0f}/h  {_duration(left_s)} left")
        states = sorted(self._campaign.states.items())
        stages = "  ".join(f"w{number}: {state.stage}" for number, state in states)
        return text.append(f"  [{stages}]", style="dim")


def _style_of(verdict: Verdict) -> str:
    if verdict is Verdict.INCONCLUSIVE:
        return _STYLE_INCONCLUSIVE
    return [style for best, style in _STYLES.items() if best.badness <= verdict.badness][-1]


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"
