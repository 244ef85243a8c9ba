"""An axis for one setting of ZFS: every matrix has its default, users request the other choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from torture.facts.axes.axis import Axis, Choice, Chosen, applies_always
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
    inapplicable: Rule = applies_always,
) -> Axis[T]:
    """The axis of a setting that no matrix varies, since theory predicts its effect on guarantees."""
    return Axis(
        field=field,
        noun=noun,
        title=title,
        place=place,
        choices=(replace(default, joins=EVERY_SWEEP), *others),
        default=default.name,
        is_setting=True,
        inapplicable=inapplicable,
    )


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
