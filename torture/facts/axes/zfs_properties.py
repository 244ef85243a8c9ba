"""Properties of the volume (zfsprops(7)): one axis each, whose field is the property's own name.

A choice's value is the output of `zfs get`, or empty for ZFS's own default.
"""

from __future__ import annotations

from torture.facts.axes.axis import Axis, Choice
from torture.facts.axes.setting import (
    applies_always,
    only_on_a,
    only_with_a_log,
    setting_axis,
)

LOGBIAS: Axis[str] = setting_axis(
    field="logbias",
    noun="Logbias",
    title="logbias",
    place=45,
    default=Choice(name="latency", value="", words="logbias=latency"),
    others=(
        Choice(
            name="throughput",
            value="throughput",
            words="logbias=throughput",
            explained="the log points to blocks of data that are written before their group",
        ),
    ),
    inapplicable=only_with_a_log,
)


def _sizes(prefix: str, words: str, *sizes: str) -> tuple[Choice[str], ...]:
    return tuple(
        Choice(name=f"{prefix}{size.lower()}", value=size, words=f"{words}={size}", place=place)
        for place, size in enumerate(sizes)
    )


VOLBLOCKSIZE: Axis[str] = setting_axis(
    field="volblocksize",
    noun="Volblocksize",
    title="volblocksize",
    place=61,
    default=Choice(
        name="volblockauto",
        value="",
        words="ZFS's own volblocksize",
        explained="ZFS's own: 16K, before 2.2 8K",
    ),
    others=_sizes("volblock", "volblocksize", "4K", "16K", "64K", "128K"),
    inapplicable=only_on_a("zvol"),
)

RECORDSIZE: Axis[str] = setting_axis(
    field="recordsize",
    noun="Recordsize",
    title="recordsize",
    place=62,
    default=Choice(name="record128k", value="", words="recordsize=128K", explained="ZFS's own"),
    others=_sizes("record", "recordsize", "4K", "16K"),
    inapplicable=only_on_a("dataset"),
)

COMPRESSION: Axis[str] = setting_axis(
    field="compression",
    noun="Compression",
    title="compression",
    place=63,
    default=Choice(name="uncompressed", value="", words="compression=off"),
    others=tuple(
        Choice(name=algorithm, value=algorithm, words=f"compression={algorithm}")
        for algorithm in ("lz4", "zstd")
    ),
    inapplicable=applies_always,
)

DEDUP: Axis[str] = setting_axis(
    field="dedup",
    noun="Dedup",
    title="dedup",
    place=64,
    default=Choice(name="nodedup", value="", words="dedup=off"),
    others=(Choice(name="dedup", value="on", words="dedup=on"),),
    inapplicable=applies_always,
)

PROPERTIES: tuple[Axis[str], ...] = (LOGBIAS, VOLBLOCKSIZE, RECORDSIZE, COMPRESSION, DEDUP)
