"""The words for the end of a trial, from best to worst, and a parser's answer to unclear output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from torture.facts.evidence.strict_json import strict_json


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
    def is_damage(self) -> bool:
        """Whether anything bad is known: a repair, a loss, or worse."""
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
