"""A cell is one choice on every axis; its name is those choices joined by dashes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any, NoReturn, Self

from torture.matrix.axes import (
    Disks,
    Fate,
    Filesystem,
    Layout,
    Slog,
    SlogClass,
    Sync,
    Transport,
)

AXES: dict[str, type[StrEnum]] = {
    "transport": Transport,
    "sync": Sync,
    "slog": Slog,
    "slog_class": SlogClass,
    "layout": Layout,
    "disks": Disks,
    "filesystem": Filesystem,
    "fate": Fate,
}
"""A cell's field to the choices on that axis, in the order of the name's parts."""

DEFAULTS: dict[str, StrEnum] = {
    "slog_class": SlogClass.NVME,
    "layout": Layout.SINGLE,
    "disks": Disks.VOLATILE,
}
"""What a name means when it says nothing of these axes; a name never says it."""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Cell:
    """One choice on every axis, e.g. `iscsi-standard-noslog-btrfs-nasonly`.

    Raises `ValueError` for a slog class without a slog.
    """

    transport: Transport
    sync: Sync
    slog: Slog
    slog_class: SlogClass = SlogClass.NVME
    """Means nothing without a slog, and then is the default."""
    layout: Layout = Layout.SINGLE
    disks: Disks = Disks.VOLATILE
    filesystem: Filesystem
    fate: Fate

    def __post_init__(self) -> None:
        if self.slog is Slog.NONE and self.slog_class is not DEFAULTS["slog_class"]:
            raise ValueError(
                f"'{self.slog_class}' is a slog's class, and with '{self.slog}' there is no slog"
            )

    @property
    def name(self) -> str:
        """The choices in the order of the axes, joined by dashes, without those of `DEFAULTS`."""
        return "-".join(
            choice for axis, choice in self.axes.items() if choice and choice != DEFAULTS.get(axis)
        )

    @property
    def axes(self) -> dict[str, str]:
        """Every axis to its choice, in the order of `AXES`; `slog_class` is empty without a slog."""
        chosen = {axis: str(getattr(self, axis)) for axis in AXES}
        return chosen | ({"slog_class": ""} if self.slog is Slog.NONE else {})

    @classmethod
    def parse(cls, name: str) -> Self:
        """The cell whose `name` this is; raises `ValueError` that says which part is wrong and why."""
        parts = name.split("-")
        chosen: dict[str, Any] = {}
        left_out: list[type[StrEnum]] = []
        for axis, kind in AXES.items():
            default = DEFAULTS.get(axis)
            part = parts[0] if parts else None
            if part is not None and part == default:
                raise ValueError(f"{part!r} in {name!r} is what is meant without it: leave it out")
            if part in list(kind):
                chosen[axis] = kind(parts.pop(0))
                left_out = []
            elif default is not None:
                left_out.append(kind)
            else:
                _refuse(name, part, [*left_out, kind])
        if parts:
            raise ValueError(f"{parts[0]!r} in {name!r} comes after the Fate, where a name ends")
        return cls(**chosen)


def _refuse(name: str, part: str | None, kinds: list[type[StrEnum]]) -> NoReturn:
    """Raise `ValueError`: at this place of the name belongs a choice of one of these kinds."""
    if part is None:
        what = f"{name!r} ends where one part more is missing,"
    elif home := [kind.__name__ for kind in AXES.values() if part in list(kind)]:
        what = f"{part!r} in {name!r} is misplaced: it is a {home[0]}, and here belongs"
    else:
        what = f"{part!r} in {name!r} is no"
    known = "; ".join(f"{kind.__name__} ({', '.join(kind)})" for kind in kinds)
    raise ValueError(f"{what} {known}")


class Matrix(StrEnum):
    """How much of the cells' space a run covers."""

    QUICK = "quick"
    DEFAULT = "default"
    FULL = "full"


def cells_of(matrix: Matrix) -> tuple[Cell, ...]:
    """The cells of a matrix, in a stable order; each matrix begins with the smaller ones."""
    cells = _grid()
    if matrix is not Matrix.QUICK:
        cells += _grid(slogs=(Slog.NONE, Slog.PLP), filesystems=(Filesystem.BTRFS, Filesystem.EXT4))
        cells += _grid(
            slogs=(Slog.VOLATILE, Slog.LYING, Slog.MIRROR, Slog.LOST), syncs=(Sync.ALWAYS,)
        )
    if matrix is Matrix.FULL:
        cells += _grid(slogs=tuple(Slog), filesystems=tuple(Filesystem))
        cells += _grid(layouts=tuple(Layout))
        cells += _grid(disks=tuple(Disks))
        cells += _grid(
            slogs=(Slog.PLP,),
            slog_classes=tuple(SlogClass),
            syncs=(Sync.ALWAYS,),
            fates=(Fate.BOTH_DIE,),
        )
    return tuple(dict.fromkeys(cells))


def _grid(
    *,
    slogs: tuple[Slog, ...] = (Slog.NONE,),
    slog_classes: tuple[SlogClass, ...] = (SlogClass.NVME,),
    layouts: tuple[Layout, ...] = (Layout.SINGLE,),
    disks: tuple[Disks, ...] = (Disks.VOLATILE,),
    filesystems: tuple[Filesystem, ...] = (Filesystem.BTRFS,),
    syncs: tuple[Sync, ...] = tuple(Sync),
    fates: tuple[Fate, ...] = tuple(Fate),
) -> list[Cell]:
    """Every combination of these choices, with every transport."""
    return [
        Cell(
            transport=transport,
            sync=sync,
            slog=slog,
            slog_class=slog_class,
            layout=layout,
            disks=kept,
            filesystem=filesystem,
            fate=fate,
        )
        for transport, slog, slog_class, layout, kept, filesystem, sync, fate in product(
            Transport, slogs, slog_classes, layouts, disks, filesystems, syncs, fates
        )
    ]
