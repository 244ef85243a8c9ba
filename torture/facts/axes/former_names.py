"""Words in names of cells that are others today: the seeds of their trials are drawn from the old name.

Cells are shown and chosen under today's names. Names with former words still parse.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Former(NamedTuple):
    """The place of a former word, and its meaning."""

    axis: str
    """The field that its axis had."""
    place: int
    """The place of that axis in names (`torture.facts.axes.axis.Axis.place`)."""
    today: str
    """The name of the choice today; `NAME=VALUE` for a setting of ZFS, which is a part of a choice."""


FORMER_NAMES = {
    "throughput": Former("logbias", 45, "logbias=throughput"),
    "volblock4k": Former("volblocksize", 61, "volblocksize=4K"),
    "volblock16k": Former("volblocksize", 61, "volblocksize=16K"),
    "volblock64k": Former("volblocksize", 61, "volblocksize=64K"),
    "volblock128k": Former("volblocksize", 61, "volblocksize=128K"),
    "record4k": Former("recordsize", 62, "recordsize=4K"),
    "record16k": Former("recordsize", 62, "recordsize=16K"),
    "lz4": Former("compression", 63, "compression=lz4"),
    "zstd": Former("compression", 63, "compression=zstd"),
    "dedup": Former("dedup", 64, "dedup=on"),
    "blkmq": Former("zvol_use_blk_mq", 67, "zfs.zvol_use_blk_mq=1"),
}


def todays_parts(parts: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """The parts of a cell's name as they are today, without former ones that are settings of ZFS.

    These are the second value.
    """
    today: list[str] = []
    settings: dict[str, str] = {}
    for part in parts:
        name, equals, value = (FORMER_NAMES[part].today if part in FORMER_NAMES else "").partition(
            "="
        )
        if equals:
            settings[name] = value
        else:
            today.append(name or part)
    return today, settings


def frozen_name(parts: Iterable[tuple[int, str]]) -> str:
    """The name from which seeds derive: the parts of today's name, each with its place, as once."""
    words = {former.today: (former.place, word) for word, former in FORMER_NAMES.items()}
    frozen: list[tuple[int, str]] = []
    for place, part in parts:
        pieces = part.split("+")
        frozen += [words[piece] for piece in pieces if piece in words]
        if left := [piece for piece in pieces if piece not in words]:
            frozen.append((place, "+".join(left)))
    return "-".join(part for _, part in sorted(frozen))
