"""Whether a known bug was found in affected versions, and nothing in cleared ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torture.choices.faults.protocol import Sight
from torture.choices.knownbugs.protocol import KnownBug, Side
from torture.facts.stats.rates import Rate, interval_in_words, rate_of
from torture.records.record.trials import TrialRecord
from torture.records.scoring.detection import seen_by, share_for

_NEARLY_ALWAYS = 0.99


@dataclass(frozen=True, kw_only=True, slots=True)
class SideOutcome:
    """The results of one side's trials."""

    cell: str
    zfs: str
    """The version that its NAS ran."""
    cuts: int
    """Trials with a result: conclusive ones, and those in which a check found something."""
    shown: int
    """Of these, the trials that show the bug."""
    by: dict[Sight, int]
    """For each check, the number of these in which it found something."""
    otherwise: int
    """The number of others in which a check found something: another thing is wrong there."""
    lost: int
    """The number of trials that lost something acknowledged."""
    inconclusive: int
    errors: tuple[str, ...]
    """The causes of the inconclusive trials, each once."""

    @property
    def rate(self) -> Rate:
        """The rate of cuts that show the bug, with its interval."""
        return rate_of(self.shown, self.cuts)

    @property
    def rate_in_words(self) -> str:
        """E.g. `5 of 5 [47-100 %]`."""
        return f"{self.shown} of {self.cuts} [{interval_in_words(self.rate)}]"

    @property
    def seen_in_words(self) -> str:
        """E.g. `audit 6, data 4`."""
        said = [f"{sight} {self.by[sight]}" for sight in Sight if self.by[sight]]
        if self.otherwise:
            said.append(f"something else {self.otherwise}")
        return ", ".join(said) or "nothing"

    def as_json(self) -> dict[str, Any]:
        """The outcome as plain data, with the interval."""
        return {
            "cell": self.cell,
            "zfs": self.zfs,
            "cuts": self.cuts,
            "shown": self.shown,
            "low": self.rate.low,
            "high": self.rate.high,
            "otherwise": self.otherwise,
            "by": {sight.value: count for sight, count in self.by.items()},
            "lost": self.lost,
            "inconclusive": self.inconclusive,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class BugOutcome:
    """Both sides of a known bug."""

    bug: KnownBug
    affected: SideOutcome
    cleared: SideOutcome

    @property
    def is_found(self) -> bool:
        """Whether a cut of the affected side showed the bug."""
        return self.affected.shown > 0

    @property
    def is_clear(self) -> bool:
        """Whether cuts of the cleared side have results, and none of them shows the bug."""
        return self.cleared.cuts > 0 and self.cleared.shown == 0

    @property
    def is_as_predicted(self) -> bool:
        """Whether the predicted check saw it, and at least the predicted number of cuts can be needed."""
        is_seen = self.affected.by[self.bug.seen_by] > 0
        return is_seen and self.affected.rate.high >= share_for(self.bug.cuts)

    @property
    def share_of_silence(self) -> float:
        """The probability that the cleared side's cuts would have shown the bug, if it were there.

        By the lower bound of the affected side's rate.
        """
        return float(1 - (1 - self.affected.rate.low) ** self.cleared.cuts)

    @property
    def silence_in_words(self) -> str:
        """E.g. `at least 97 %`, rounded down."""
        if self.share_of_silence > _NEARLY_ALWAYS:
            return f"more than {_NEARLY_ALWAYS * 100:g} %"
        return f"at least {int(self.share_of_silence * 100)} %"

    def as_json(self) -> dict[str, Any]:
        """The outcome as plain data, with the intervals."""
        return {
            "bug": self.bug.name,
            "words": self.bug.words,
            "source": self.bug.source,
            "affected": self.affected.as_json(),
            "cleared": self.cleared.as_json(),
            "predicted": {"by": self.bug.seen_by.value, "cuts": self.bug.cuts},
            "would_have_been_seen": self.share_of_silence,
        }


def side_outcome(bug: KnownBug, side: Side, records: Sequence[TrialRecord]) -> SideOutcome:
    """Count a side's trials; the version is the one that their NAS reported, if it did."""
    sights = [seen_by(record) for record in records]
    judged = list(zip(sights, records, strict=True))
    shown = [
        seen
        for seen, record in judged
        if seen and any(bug.sign in reason for reason in ("", *record.reasons))
    ]
    versions = sorted({record.zfs for record in records if record.zfs}) or [side.version]
    errors = (record.error for record in records if record.error and not record.is_conclusive)
    return SideOutcome(
        cell=side.chosen_cell.name,
        zfs=", ".join(versions),
        cuts=sum(bool(seen) or record.is_conclusive for seen, record in judged),
        shown=len(shown),
        by={sight: sum(sight in seen for seen in shown) for sight in Sight},
        otherwise=sum(map(bool, sights)) - len(shown),
        lost=sum(record.is_loss for record in records),
        inconclusive=sum(not record.is_conclusive for record in records),
        errors=tuple(dict.fromkeys(error.splitlines()[0] for error in errors)),
    )
