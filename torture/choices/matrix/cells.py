"""A cell is one choice on every axis. Its name is these choices, joined by dashes.

Every axis, in the order of the parts of a cell's name.

Each axis is declared beside its choices. `torture/facts/axes` has the axes with few and closed
choices; each axis whose choices are files has a room of its own. No two axes share a choice's name,
so a part of a name identifies its axis, and each is a pytest mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from itertools import product
from typing import Any, NoReturn, Self, TypeVar

from torture.choices import administration, filesystems, slogs, transports, workloads
from torture.choices.hypervisor import with_hypervisor
from torture.facts.axes import (
    away,
    early,
    event,
    fate,
    free_settings,
    hypervisor,
    pool_disks,
    root,
    setting,
    sync,
)
from torture.facts.axes.axis import Axis, Choice, frozen_name, todays_parts
from torture.facts.axes.free_settings import FreeSettings
from torture.facts.axes.sweeps import SWEEPS, Matrix, Sweep

TRANSPORT = replace(transports.AXIS, composed=with_hypervisor)
IMAGE = hypervisor.IMAGE
CACHE = hypervisor.CACHE
LOCKS = hypervisor.LOCKS
CLIENTS = hypervisor.CLIENTS
NFS_EXPORT = sync.NFS_EXPORT
SYNC = sync.AXIS
SLOG = slogs.AXIS
SLOG_CLASS = pool_disks.SLOG_CLASS
LAYOUT = pool_disks.LAYOUT
SPECIAL_VDEV = setting.SPECIAL_VDEV
ADMINISTRATION = administration.AXIS
DISKS = pool_disks.DISKS
DISK_SECTOR = setting.DISK_SECTOR
SETTINGS = free_settings.AXIS
LUN_SECTOR = setting.LUN_SECTOR
DISCARD = setting.DISCARD
NAS_LINK = setting.NAS_LINK
FILESYSTEM = filesystems.AXIS
ROOT = root.AXIS
WORKLOAD = workloads.AXIS
AWAY = away.AWAY
PATIENCE = away.PATIENCE
EVENT = event.AXIS
EARLY = early.AXIS
FATE = fate.AXIS

_ALL: tuple[Axis[Any], ...] = (
    TRANSPORT, *hypervisor.AXES, NFS_EXPORT, SYNC, SLOG, SLOG_CLASS, LAYOUT, SPECIAL_VDEV,
    ADMINISTRATION, DISK_SECTOR, DISKS, SETTINGS, *setting.PARAMETERS, LUN_SECTOR, DISCARD,
    FILESYSTEM, ROOT, WORKLOAD, NAS_LINK, AWAY, PATIENCE, EVENT, EARLY, FATE,
)  # fmt: skip

AXES: dict[str, Axis[Any]] = {
    axis.field: axis for axis in sorted(_ALL, key=lambda axis: axis.place)
}
"""The field of a cell to its axis, in the order of the name's parts."""

DEFAULTS: dict[str, str] = {
    field: axis.default for field, axis in AXES.items() if axis.default is not None
}
"""The choices that a name omits: a name never states them."""

CHOICES: dict[str, Choice[Any]] = {
    choice.name: choice for axis in AXES.values() for choice in axis.choices
}
"""Every choice by its name."""
if len(CHOICES) < sum(len(axis.choices) for axis in AXES.values()):
    _names = [choice.name for axis in AXES.values() for choice in axis.choices]
    raise ValueError(f"two choices are called {next(n for n in _names if _names.count(n) > 1)!r}")


T = TypeVar("T")

_KEPT_MAX = 4096
"""The cells whose choices are kept: a run asks them again and again."""

_FIELDS = tuple(AXES)
_CHOICES = {field: {choice.name: choice for choice in axis.choices} for field, axis in AXES.items()}
_VARYING_LAST = (
    *(field for field in _FIELDS if not AXES[field].varies_last),
    *(field for field in _FIELDS if AXES[field].varies_last),
)


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One choice on every axis, e.g. `iscsi-standard-noslog-btrfs-nasonly`; ordered axis by axis.

    Use `parse` or `of`. Raises `ValueError` for an unknown choice, or for a choice without meaning
    beside the others.
    """

    choices: tuple[str, ...]
    """The names of the choices, in the order of `AXES`."""

    def __post_init__(self) -> None:
        chosen = _chosen(self.choices)
        for field, choice in chosen.items():
            axis = AXES[field]
            if choice.name != axis.default and (why := axis.inapplicable(chosen)) is not None:
                raise ValueError(f"{choice.name!r} {why}")

    @classmethod
    def of(cls, **choices: str) -> Self:
        """The cell of these choices, by axis; it has the default on the other axes."""
        if unknown := choices.keys() - AXES.keys():
            raise ValueError(f"no axis is called {', '.join(sorted(unknown))}")
        complete = DEFAULTS | {field: str(name) for field, name in choices.items()}
        if missing := AXES.keys() - complete.keys():
            raise ValueError(f"a choice is missing on {', '.join(sorted(missing))}")
        return cls(tuple(complete[field] for field in _FIELDS))

    def but(self, **choices: str) -> Self:
        """The same cell with other choices on some axes."""
        return self.of(**(dict(zip(_FIELDS, self.choices, strict=True)) | choices))

    def with_settings(self, values: Mapping[str, str]) -> Self:
        """The same cell with these settings of ZFS; they replace its own of the same name."""
        settings = FreeSettings.of({**dict(self[SETTINGS].values), **values})
        return self.but(**{SETTINGS.field: settings.name})

    def __getitem__(self, axis: Axis[T]) -> T:
        """The value of the choice on an axis."""
        value: T = _chosen(self.choices)[axis.field].value
        return value

    @property
    def name(self) -> str:
        """The choices in the order of the axes, joined by dashes; without those of `DEFAULTS`."""
        return "-".join(
            name
            for field, name in zip(_FIELDS, self.choices, strict=True)
            if name != DEFAULTS.get(field)
        )

    @property
    def frozen_name(self) -> str:
        """The name from which seeds and folders of trials derive: with former words where it has any."""
        return frozen_name(
            (AXES[field].place, name)
            for field, name in zip(_FIELDS, self.choices, strict=True)
            if name != DEFAULTS.get(field)
        )

    @property
    def axes(self) -> dict[str, str]:
        """Every axis to its choice, in the order of `AXES`; empty where a choice has no meaning."""
        chosen = _chosen(self.choices)
        return {
            field: "" if AXES[field].inapplicable(chosen) else choice.name
            for field, choice in chosen.items()
        }

    @classmethod
    def parse(cls, name: str) -> Self:
        """The cell with this `name`; raises `ValueError`, which has the wrong part and the reason."""
        parts, settings = todays_parts(name.split("-"))
        has_former = parts != name.split("-")
        cell = cls._of_parts(name, parts)
        if settings:
            cell = cell.with_settings(settings)
        if has_former and cell.frozen_name != name:
            raise ValueError(f"{name!r} is another name of {cell.name!r}")
        return cell

    @classmethod
    def _of_parts(cls, name: str, parts: list[str]) -> Self:
        """The cell of these parts of a name; removes the parts that it uses."""
        chosen: dict[str, str] = {}
        left_out: list[Axis[Any]] = []
        for field, axis in AXES.items():
            part = parts[0] if parts else None
            if part is not None and part == axis.default:
                raise ValueError(f"{part!r} in {name!r} is the default: leave it out")
            if part is not None and axis.has(part):
                chosen[field] = parts.pop(0)
                left_out = []
            elif axis.default is not None:
                left_out += [axis] if len(axis.choices) > 1 else []
            else:
                _refuse(name, part, [*left_out, axis])
        if parts:
            last = list(AXES.values())[-1].noun
            raise ValueError(
                f"{parts[0]!r} in {name!r} is one part too many: a name ends with the {last}"
            )
        return cls.of(**chosen)


@lru_cache(maxsize=_KEPT_MAX)
def _chosen(names: tuple[str, ...]) -> Mapping[str, Choice[Any]]:
    """The choices of these names, by their axes; each with its whole value. Raises `ValueError`."""
    chosen: dict[str, Choice[Any]] = {}
    for field, name in zip(_FIELDS, names, strict=True):
        try:
            chosen[field] = _CHOICES[field].get(name) or AXES[field].choice(name)
        except KeyError:
            raise ValueError(f"{name!r} is no {AXES[field].noun}") from None
    for field, axis in AXES.items():
        if axis.composed is not None:
            chosen[field] = replace(chosen[field], value=axis.composed(chosen))
    return chosen


def _refuse(name: str, part: str | None, axes: list[Axis[Any]]) -> NoReturn:
    """Raise `ValueError`: this place of the name needs a choice on one of these axes."""
    home = [axis.noun for axis in AXES.values() if axis.has(part or "")]
    if part is None:
        what = f"{name!r} lacks its next part:"
    elif home:
        what = f"{part!r} in {name!r} is misplaced: it is a {home[0]}; this place needs"
    else:
        what = f"{part!r} in {name!r} is no"
    near = _nearest(part or "", axes) if not home else {}
    known = "; ".join(
        f"{axis.noun} (nearest: {', '.join(near[axis])})" for axis in axes if axis in near
    ) or "; ".join(f"{axis.noun} ({', '.join(axis.names)})" for axis in axes)
    raise ValueError(f"{what} {known}")


def _nearest(part: str, axes: list[Axis[Any]]) -> dict[Axis[Any], list[str]]:
    """Axes to the few choices that a typo may mean; omits axes without one."""
    near = get_close_matches(part, [name for axis in axes for name in axis.names])
    found = {axis: [name for name in near if name in axis.names] for axis in axes}
    return {axis: names for axis, names in found.items() if names}


def cells_of(matrix: Matrix) -> tuple[Cell, ...]:
    """The cells of a matrix, in a stable order; each matrix begins with the smaller ones."""
    return tuple(dict.fromkeys(cell for sweep in SWEEPS[matrix] for cell in _cells_in(sweep)))


def _cells_in(sweep: Sweep) -> Iterator[Cell]:
    """Every combination that makes sense; the last axes vary fastest."""
    names = {
        field: tuple(choice.name for choice in axis.choices if sweep in choice.joins)
        for field, axis in AXES.items()
    }
    for combination in product(*(names[field] for field in _VARYING_LAST)):
        try:
            yield Cell.of(**dict(zip(_VARYING_LAST, combination, strict=True)))
        except ValueError:
            continue
