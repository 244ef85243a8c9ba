"""An axis for one setting of ZFS: every matrix has its default, users request the other choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torture.facts.axes.axis import Axis, Choice, Chosen
from torture.facts.axes.sweeps import EVERY_SWEEP

T = TypeVar("T")
Rule = Callable[[Chosen], str | None]


def setting_axis(
    *,
    field: str,
    noun: str,
    title: str,
    place: int,
    default: Choice[T],
    others: tuple[Choice[T], ...],
    inapplicable: Rule,
) -> Axis[T]:
    """The axis of a setting that no matrix varies, since theory predicts its effect on guarantees."""
    usual = Choice(
        name=default.name,
        value=default.value,
        words=default.words,
        explained=default.explained,
        joins=EVERY_SWEEP,
    )
    return Axis(
        field=field,
        noun=noun,
        title=title,
        place=place,
        choices=(usual, *others),
        default=usual.name,
        is_setting=True,
        inapplicable=inapplicable,
    )


def applies_always(_chosen: Chosen) -> str | None:
    """The rule of a setting that affects every cell."""
    return None


def only_with_a_log(chosen: Chosen) -> str | None:
    """The rule of a setting of the intent log: with `sync=disabled` ZFS writes none (zfsprops(7))."""
    sync = chosen["sync"].name
    return "concerns the intent log, and 'disabled' writes none" if sync == "disabled" else None


def only_on_a(kind: str) -> Rule:
    """The rule of a setting of one kind of volume, `zvol` or `dataset`."""

    def rule(chosen: Chosen) -> str | None:
        transport = chosen["transport"]
        has = transport.value.traits.volume
        return None if has == kind else f"applies to a {kind}, and {transport.name!r} is on a {has}"

    return rule
