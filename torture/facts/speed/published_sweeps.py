"""The sweeps of the published tables, of threads and of sizes: our figures in a picture (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from torture.facts.speed.link import Link
from torture.facts.speed.published import R5, R6, FigureKind, Ours


class Swept(StrEnum):
    """The quantity that grows along a picture's axis."""

    THREADS = "threads"
    BLOCK_KIB = "KiB of a write"


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """A line of a picture: one set-up, with a figure for each job."""

    words: str
    ours: tuple[Ours, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep:
    """A picture; curves of one job each are drawn as bars."""

    words: str
    swept: Swept
    kind: FigureKind
    curves: tuple[Curve, ...]

    @property
    def is_bars(self) -> bool:
        """Whether nothing is swept: there is one job."""
        return all(len(curve.ours) == 1 for curve in self.curves)


SECTORS = (
    ("iSCSI, sectors of 512 bytes", "iscsi-standard-noslog-raw-bothdie", (0.5, 8192)),
    ("iSCSI, sectors of 4096 bytes", "iscsi-standard-noslog-lun4k-raw-bothdie", (4, 8192)),
    ("NVMe/TCP, sectors of 512 bytes", "nvme_tcp_single-standard-noslog-raw-bothdie", (0.5, 4096)),
)
"""R6's set-ups: words, cell, and the smallest and largest block in KiB.

Linux's NVMe/TCP target fails requests above 4 MiB (docs/findings.md).
"""
BLOCKS_KIB = (0.5, 4, 64, 1024, 4096, 8192)
SECTOR_LINKS = (Link.GBE1, Link.GBE10)


def _of_classes(jobs: Sequence[str], kind: FigureKind) -> tuple[Curve, ...]:
    """R5's rows, each with these jobs."""
    return tuple(
        Curve(words=row.words, ours=tuple(replace(first, job=job, kind=kind) for job in jobs))
        for row in R5.rows
        if (first := row.measured) is not None
    )


def _of_sectors() -> tuple[Curve, ...]:
    return tuple(
        Curve(
            words=f"{words}, {link_words}",
            ours=tuple(
                Ours(cell=cell, job=f"write-{kib:g}k-t1", kind=FigureKind.MIB_PER_S, link=link)
                for kib in BLOCKS_KIB
                if least <= kib <= most
            ),
        )
        for link, link_words in zip(SECTOR_LINKS, ("1 GbE", "10 GbE"), strict=True)
        for words, cell, (least, most) in SECTORS
    )


SWEEPS: Mapping[str, tuple[Sweep, ...]] = {
    R5.name: (
        Sweep(
            words="synchronous writes of 4 KiB by threads",
            swept=Swept.THREADS,
            kind=FigureKind.PER_S,
            curves=_of_classes(
                [f"syncwrite-4k-t{threads}" for threads in (1, 4, 16)], FigureKind.PER_S
            ),
        ),
        Sweep(
            words="writes of 128 KiB in a row",
            swept=Swept.THREADS,
            kind=FigureKind.MIB_PER_S,
            curves=_of_classes(["write-128k-t1"], FigureKind.MIB_PER_S),
        ),
    ),
    R6.name: (
        Sweep(
            words="writes by the size of a block",
            swept=Swept.BLOCK_KIB,
            kind=FigureKind.MIB_PER_S,
            curves=_of_sectors(),
        ),
    ),
}
