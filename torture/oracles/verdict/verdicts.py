"""The words for the end of a trial, from best to worst."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """The end of a trial. `inconclusive` stands beside the others: it is neither safe nor loss."""

    INTACT = "intact"
    """All acknowledged data is there; journal replay is allowed."""
    REPAIRED = "repaired"
    """fsck had to fix something; nothing acknowledged is lost."""
    ROLLED_BACK = "rolled-back"
    """Consistent but old: acknowledged fsyncs are gone."""
    CORRUPTED = "corrupted"
    """Wrong, torn or mixed content, or repair lost data."""
    UNREPAIRABLE = "unrepairable"
    """fsck gives up, the filesystem does not mount, or the VM does not boot from it: it is lost."""
    UNAVAILABLE = "unavailable"
    """It did not come back within an operator's patience: something hangs, or a kernel gave up."""
    POOL_LOST = "pool-lost"
    """ZFS will not import."""
    INCONCLUSIVE = "inconclusive"
    """The machinery failed; says nothing about the data."""

    @property
    def badness(self) -> int:
        """Place in the order from best (0) to worst; raises `ValueError` for `inconclusive`."""
        return _FROM_BEST_TO_WORST.index(self)

    @property
    def is_loss(self) -> bool:
        """Whether acknowledged data was lost or damaged."""
        return self is not Verdict.INCONCLUSIVE and self.badness >= Verdict.ROLLED_BACK.badness

    @property
    def is_corruption(self) -> bool:
        """Whether the rest is worse than consistent but old."""
        return self is not Verdict.INCONCLUSIVE and self.badness >= Verdict.CORRUPTED.badness


_FROM_BEST_TO_WORST = tuple(verdict for verdict in Verdict if verdict is not Verdict.INCONCLUSIVE)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of conclusive verdicts; raises `ValueError` on none and on `inconclusive`."""
    return max(verdicts, key=lambda verdict: verdict.badness)
