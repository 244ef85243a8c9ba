"""A cell is one choice on every axis; its name is those choices joined by dashes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Self

from torture.matrix.axes import Fate, Filesystem, Slog, Sync, Transport


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Cell:
    """One choice on every axis, e.g. `iscsi-standard-noslog-btrfs-nasonly`."""

    transport: Transport
    sync: Sync
    slog: Slog
    filesystem: Filesystem
    fate: Fate

    @property
    def name(self) -> str:
        """The choices in the order of the axes, joined by dashes."""
        return "-".join(self.axes.values())

    @property
    def axes(self) -> dict[str, str]:
        """Axis name to chosen value, in the order of the name's parts."""
        return {
            "transport": self.transport.value,
            "sync": self.sync.value,
            "slog": self.slog.value,
            "filesystem": self.filesystem.value,
            "fate": self.fate.value,
        }

    @classmethod
    def parse(cls, name: str) -> Self:
        """The cell of this name; raises `ValueError` that says which part is not known."""
        parts = name.split("-")
        kinds = (Transport, Sync, Slog, Filesystem, Fate)
        if len(parts) != len(kinds):
            raise ValueError(f"{name!r} has {len(parts)} parts, a cell has {len(kinds)}")
        for part, kind in zip(parts, kinds, strict=True):
            if part not in list(kind):
                known = ", ".join(kind)
                raise ValueError(f"{part!r} in {name!r} is no {kind.__name__}: known are {known}")
        transport, sync, slog, filesystem, fate = parts
        return cls(
            transport=Transport(transport),
            sync=Sync(sync),
            slog=Slog(slog),
            filesystem=Filesystem(filesystem),
            fate=Fate(fate),
        )


class Matrix(StrEnum):
    """How much of the cells' space a run covers."""

    QUICK = "quick"
    DEFAULT = "default"
    FULL = "full"


def cells_of(matrix: Matrix) -> tuple[Cell, ...]:
    """The cells of a matrix, in a stable order; each matrix contains the smaller ones."""
    slogs, filesystems = {
        Matrix.QUICK: ((Slog.NONE,), (Filesystem.BTRFS,)),
        Matrix.DEFAULT: (tuple(Slog), (Filesystem.BTRFS, Filesystem.EXT4)),
        Matrix.FULL: (tuple(Slog), tuple(Filesystem)),
    }[matrix]
    return tuple(
        Cell(transport=transport, sync=sync, slog=slog, filesystem=filesystem, fate=fate)
        for transport, slog, filesystem, sync, fate in product(
            Transport, slogs, filesystems, Sync, Fate
        )
    )
