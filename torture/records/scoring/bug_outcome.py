"""Whether a known bug was found where it is, and nothing where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torture.choices.faults.protocol import Sight
from torture.choices.knownbugs.protocol import KnownBug, Side
from torture.facts.stats.rates import Rate, interval_in_words, rate_of
from torture.records.record.trials import TrialRecord
from torture.records.scoring.detection import cuts_for, seen_by, share_for

_NEARLY_ALWAYS = 0.99


@dataclass(frozen=True, kw_only=True, slots=True)
class SideOutcome:
    """What became of one side's trials."""

    cell: str
    zfs: str
    """The version that its NAS ran."""
    cuts: int
    """Those that say something: conclusive ones, and those in which a check had something to say."""
    shown: int
    """Of these the ones that show the bug."""
    by: dict[Sight, int]
    """In how many of those each check had something to say."""
    otherwise: int
    """In how many others one had: something else is wrong there."""
    lost: int
    """In how many something acknowledged was gone."""
    inconclusive: int
    errors: tuple[str, ...]
    """Why those were, each reason once."""

    @property
    def rate(self) -> Rate:
        """Of cuts that show the bug, with its interval."""
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
        """As plain data, with the interval."""
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
        """Whether a cut of the affected side showed it."""
        return self.affected.shown > 0

    @property
    def is_clear(self) -> bool:
        """Whether cuts of the cleared side say something, and none of them that it is there."""
        return self.cleared.cuts > 0 and self.cleared.shown == 0

    @property
    def is_as_predicted(self) -> bool:
        """Whether the predicted check saw it, and no fewer cuts can be needed than are thought to be."""
        is_seen = self.affected.by[self.bug.seen_by] > 0
        return is_seen and self.affected.rate.high >= share_for(self.bug.cuts)

    @property
    def cuts_in_words(self) -> str:
        """After how many cuts of the affected side it is seen with 95 % confidence: e.g. `1-9`."""
        least, most = cuts_for(self.affected.rate.high), cuts_for(self.affected.rate.low)
        return f"{least}-{most}" if most is not None else f"{least} or more"

    @property
    def share_of_silence(self) -> float:
        """How likely so many cuts at least would have shown it on the cleared side, had that had it too.

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
        """As plain data, with the intervals."""
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
    """Count a side's trials; the version is what their NAS ran, by its own word if there is one."""
    sights = [seen_by(record) for record in records]
    shown = [
        seen
        for seen, record in zip(sights, records, strict=True)
        if seen and any(bug.sign in reason for reason in ("", *record.reasons))
    ]
    telling = [
        bool(seen) or record.is_conclusive for seen, record in zip(sights, records, strict=True)
    ]
    versions = sorted({record.zfs for record in records if record.zfs}) or [side.version]
    errors = (record.error for record in records if record.error and not record.is_conclusive)
    return SideOutcome(
        cell=side.chosen_cell.name,
        zfs=", ".join(versions),
        cuts=sum(telling),
        shown=len(shown),
        by={sight: sum(sight in seen for seen in shown) for sight in Sight},
        otherwise=sum(map(bool, sights)) - len(shown),
        lost=sum(record.is_loss for record in records),
        inconclusive=sum(not record.is_conclusive for record in records),
        errors=tuple(dict.fromkeys(error.splitlines()[0] for error in errors)),
    )
