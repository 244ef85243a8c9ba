"""The walked recordings of each cell, from the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torture.facts.stats.rates import bound_in_words, interval_in_words, rate_of
from torture.features.walk.tasks import WALKED
from torture.report.reading.tally import Rows, Survey, SurveyKind
from torture.report.reading.text import printable

_NAME = "walks"
_COLUMNS = (
    "walks", "walks_inconclusive", "walks_broken",
    "walked_states", "walked_states_proven", "walked_states_lost",
)  # fmt: skip
_QUERY = """
SELECT
    cell,
    count(*) FILTER (badness >= 0 AND walked_states > 0) AS recordings,
    coalesce(sum(walked_states) FILTER (badness >= 0), 0) AS units,
    coalesce(sum(walked_states_proven) FILTER (badness >= 0), 0) AS proven,
    coalesce(sum(walked_states_by_library) FILTER (badness >= 0), 0) AS by_library,
    coalesce(sum(walked_states_lost) FILTER (badness >= 0), 0) AS lost,
    count(*) FILTER (badness >= 0 AND walked_states_lost > 0) AS recordings_lost,
    count(*) FILTER (broke_guarantee) AS broken,
    count(*) FILTER (badness < 0 AND walked_states > 0) AS inconclusive
FROM walks GROUP BY cell
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Walked(Survey):
    """The crash states of a cell's conclusive walks: no cuts, and in no rate of cuts."""

    kind: str = _NAME
    proven: int
    """The states without a recovery: an earlier one has read nothing else than these states have."""
    by_library: int
    """The states whose end is the word of OpenZFS's library alone."""

    @property
    def counts(self) -> dict[str, int]:
        """See `_COLUMNS`."""
        return {
            "walks": self.recordings,
            "walks_inconclusive": self.inconclusive,
            "walks_broken": self.broken,
            "walked_states": self.units,
            "walked_states_proven": self.proven,
            "walked_states_lost": self.lost,
        }

    @property
    def loss_in_words(self) -> str:
        """Its crash states."""
        return f"{self.lost:,} of {self.units:,} crash states"

    @property
    def in_words(self) -> str:
        """With the interval of the recordings: the states of one are no independent trials."""
        if not self.recordings:
            return f"none of {self.inconclusive} walks of its crash states was conclusive"
        rate = rate_of(self.recordings_lost, self.recordings)
        of = f"{self.recordings} recording" + ("" if self.recordings == 1 else "s")
        how = "recovered" if not self.proven else "recovered or proven"
        states = f"{self.units:,} {how} crash states"
        if self.by_library:
            states += f" ({self.by_library:,} of them by OpenZFS's library alone)"
        if self.inconclusive:
            of += f"; {self.inconclusive} more inconclusive"
        if not self.lost:
            bound = bound_in_words(rate.high)
            return (
                f"none of {states} lost anything ({of}; at most {bound} of recordings lose in one)"
            )
        share = interval_in_words(rate)
        return f"{self.lost:,} of {states} lost something ({of}; {share} of recordings lose in one)"


def _walked_by_cell(rows: Rows) -> dict[str, Walked]:
    names = (
        "recordings", "units", "proven", "by_library", "lost", "recordings_lost", "broken",
        "inconclusive",
    )  # fmt: skip
    return {cell: Walked(**dict(zip(names, of, strict=True))) for cell, *of in rows(_QUERY)}


def _notes(rows: Rows) -> tuple[str, ...]:
    """A sentence for each cell with losses of an older walk that may be of states that no cut leaves."""
    found = rows(
        "SELECT cell, sum(walked_states_lost), count(*) FROM walks WHERE walked_perhaps_illegal "
        "GROUP BY cell ORDER BY cell"
    )
    return tuple(
        f"{printable(cell)}: {lost:,} walked states lost something, and may be states that no cut "
        f"leaves. {'A walk' if walks == 1 else f'{walks:,} walks'} of an older suite dropped writes "
        "that a protected disk had completed; tools/replay decides again where the recording is kept"
        for cell, lost, walks in found
    )


def _together(counts: Mapping[str, int]) -> str:
    states, lost = counts["walked_states"], counts["walked_states_lost"]
    return f"{lost:,} of {states:,} walked crash states lost something" if states else ""


SURVEY = SurveyKind(
    name=_NAME,
    origin=WALKED,
    title="states lost",
    legend="states lost: crash states of walked recordings that lost something",
    columns=_COLUMNS,
    by_cell=_walked_by_cell,
    notes=_notes,
    together=_together,
)
