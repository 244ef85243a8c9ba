"""The table of known bugs: two rows each, the affected side and the cleared one."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from torture.records.scoring.bug_outcome import BugOutcome, SideOutcome
from torture.records.scoring.detection import cuts_in_words

_COLUMNS = (
    "known bug",
    "side",
    "OpenZFS",
    "in",
    "detected [95 %]",
    "seen by",
    "lost",
    "cuts",
    "predicted",
)


def bug_table(outcomes: Sequence[BugOutcome]) -> Table:
    """The findings on each side, and their conclusion."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for column in _COLUMNS:
        table.add_column(column, no_wrap=column != "known bug")
    for outcome in outcomes:
        for row in rows_of(outcome):
            table.add_row(*row)
    return table


def rows_of(outcome: BugOutcome) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The cells of both rows."""
    bug = outcome.bug
    predicted = f"{bug.seen_by}, {bug.cuts}" + ("" if outcome.is_as_predicted else " (not so)")
    affected = (bug.words, "affected", *_seen(outcome.affected))
    cleared = (bug.source, "cleared", *_seen(outcome.cleared))
    return (
        (*affected, f"{cuts_in_words(outcome.affected.rate)} for 95 %", predicted),
        (*cleared, f"shown if there: {outcome.silence_in_words}", "nothing"),
    )


def _seen(side: SideOutcome) -> tuple[str, ...]:
    unknown = f" (and {side.inconclusive} inconclusive)" if side.inconclusive else ""
    return (
        side.zfs,
        side.cell,
        side.rate_in_words + unknown,
        side.seen_in_words,
        f"{side.lost} of {side.cuts}",
    )
