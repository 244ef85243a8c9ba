"""Verdicts, the terms of a trial, and the supposed guarantee of its configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from torture.facts.evidence.documents import strict_json


class Verdict(StrEnum):
    """The end of a trial. `inconclusive` stands beside the others: it is neither safe nor loss."""

    INTACT = "intact"
    """All acknowledged data is there; journal replay is allowed."""
    OFFLINE = "offline"
    """Nothing acknowledged is lost, but the disk of a VM that lived was dead until it was opened anew."""
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
    SPLIT_BRAIN = "split-brain"
    """Two nodes had the pool imported at once: each overwrites the other's data."""
    INCONCLUSIVE = "inconclusive"
    """The machinery failed; says nothing about the data."""

    @property
    def badness(self) -> int:
        """Place in the order from best (0) to worst; raises `ValueError` for `inconclusive`."""
        return _FROM_BEST_TO_WORST.index(self)

    @property
    def is_damage(self) -> bool:
        """Whether anything bad is known: a dead disk, a repair, a loss, or worse."""
        return self not in (Verdict.INTACT, Verdict.INCONCLUSIVE)

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


def worst_or_none(verdicts: Iterable[Verdict | None]) -> Verdict | None:
    """The worst of those that are known; None where none is."""
    return max(filter(None, verdicts), key=lambda verdict: verdict.badness, default=None)


def standing(known: Iterable[Verdict], *, doubts: Sequence[str]) -> Verdict:
    """The one verdict of all that is known; `doubts` are the reasons why more is not known.

    Damage stands, whatever is unknown beside it: the verdict is a lower bound then. Only where
    nothing bad is known, a doubt makes the verdict inconclusive.
    """
    damage = [verdict for verdict in known if verdict.is_damage]
    if damage:
        return worst(damage)
    return Verdict.INCONCLUSIVE if doubts else Verdict.INTACT


_Readback = TypeVar("_Readback")
_Answer = TypeVar("_Answer")


class UnreadableError(Exception):
    """Output that is missing, cut off or garbled; the message names the output and the fault."""


class DidNotWork(UnreadableError):
    """A tool could not do its work, or not to its end: the data did not stop it."""


def read_whole(text: str, read: Callable[[Any], _Readback]) -> _Readback:
    """The read-back in a stored document; raises `UnreadableError` for a cut-off or garbled one."""
    try:
        raw = strict_json(text.encode(errors="replace"))
        if raw["complete"] is not True:
            raise UnreadableError("the read-back does not say that it is complete")
        return read(raw)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableError(f"the read-back cannot be read: {error!r}") from error


def answer_of(question: Callable[[], _Answer]) -> tuple[_Answer | None, tuple[str, ...]]:
    """The answer; or None, and why the evidence gives none."""
    try:
        return question(), ()
    except UnreadableError as error:
        return None, (str(error),)
    except RecursionError:
        return None, ("the output or read-back is nested too deeply",)


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """The terms; without any cell they are those of a disk whose client dies in the cut."""

    tears_sectors: bool = False
    """Whether a crash may leave part of a sector of a write in flight."""
    names_are_stable: bool = False
    """Whether a creation, rename or removal is durable once its call returns."""
    content_is_safe: bool = False
    """Whether flushed content of files is guaranteed, although their names may go back."""
    excuses_names: bool = False
    """Whether each name may be as before its last changes, whatever was acknowledged."""
    repeats_requests: bool = False
    """Whether a NAS that comes back may do a request again that its client had sent before the cut."""
    client_lives: bool = False
    """Whether the client lives through the cut, and the host ends its load afterwards."""
    nas_lives: bool = False
    """Whether the NAS serves on through the cut."""
    ends_in_order: bool = False
    """Whether the NAS ends its service in order, and leaves nothing that a cut could take."""
    former_returns: bool = False
    """Whether the node that lost its power came back, while another one had its pool."""
    is_replay: bool = False
    """Whether the trial is a replay of an earlier trial's disks: no client ran in it."""
    client_gives_up: bool = False
    """Whether the client's patience may end before the NAS is back."""
    may_fail_before_cut: bool = False
    """Whether writers may fail without any cut."""


ROLLBACK_MS_MAX = 15_000
"""The limit for the rollback of a cell that rolls back, if no recording shows the commits. At a cut
at most three transaction groups are not on the disks: the open, the quiescing and the syncing one.
Each is filled for `zfs_txg_timeout`, which is 5 s."""

COMMIT_SLACK_MS = 2_000
"""The time for acknowledgements into the next transaction group before the syncing one's first write."""


AT_RISK_CUTS_MIN = 8
"""The number of cuts with acknowledged operations at risk from which on a loss is certain.

Of these a cell that must lose loses at least half. So none of 8 is lost with a probability of 0.4 %.
"""


def is_too_safe(*, lost: int, at_risk: int) -> bool:
    """Whether a cell that must lose loses less than theory says."""
    return at_risk >= AT_RISK_CUTS_MIN and lost == 0


class Guarantee(StrEnum):
    """The supposed guarantee of a cell."""

    SAFE = "safe"
    """Nothing acknowledged is lost, nothing needs repair."""
    MAY_GO_OFFLINE = "may go offline"
    """Nothing acknowledged is lost, but the VM's disk may be dead until an operator acts."""
    ROLLS_BACK = "rolls back"
    """Data that no transaction group had committed may be gone, but the rest is consistent."""
    LOSES = "loses"
    """Acknowledged data may be lost or damaged, and the VM may be lost or stuck; the pool itself
    survives."""
    MAY_LOSE_POOL = "may lose the pool"
    """Anything may happen, up to a pool that cannot be imported."""

    @property
    def worst_allowed(self) -> Verdict:
        """The worst verdict that still keeps the guarantee."""
        return _WORST_ALLOWED[self]

    def is_broken_by(
        self,
        verdict: Verdict,
        rollback_ms: float | None = None,
        *,
        rollback_ms_max: float = ROLLBACK_MS_MAX,
        pool: Verdict | None = None,
    ) -> bool:
        """Whether a verdict, the pool's own, or the length of the rollback, is worse than guaranteed.

        Never for `inconclusive`. `rollback_ms` is the record's; None bounds nothing. The pool's
        fate must not depend on `sync`, nor on whether the VM may lose data. Disks that honour
        flushes never cost the pool more than its log.
        """
        if verdict is Verdict.INCONCLUSIVE:
            return False
        if (
            self is Guarantee.ROLLS_BACK
            and rollback_ms is not None
            and rollback_ms > rollback_ms_max
        ):
            return True
        if pool is not None and self is not Guarantee.MAY_LOSE_POOL:
            return max(verdict.badness - self.worst_allowed.badness, pool.badness - _POOL_MAX) > 0
        return verdict.badness > self.worst_allowed.badness


_WORST_ALLOWED = {
    Guarantee.SAFE: Verdict.INTACT,
    Guarantee.MAY_GO_OFFLINE: Verdict.OFFLINE,
    Guarantee.ROLLS_BACK: Verdict.ROLLED_BACK,
    Guarantee.LOSES: Verdict.UNAVAILABLE,
    Guarantee.MAY_LOSE_POOL: Verdict.POOL_LOST,
}
_POOL_MAX = Verdict.REPAIRED.badness
"""An import without the log device that the cut took (`-m`) is allowed. Giving up transactions
(`-F`), errors in data, hanging and panicking are not."""
