"""The disks of the pool: their layout, their persistence across a power cut, the speed of the log's."""

from __future__ import annotations

from enum import StrEnum

from torture.facts.axes.axis import Axis, Choice, Chosen, choices_of
from torture.facts.axes.sweeps import EVERY_SWEEP, Sweep
from torture.facts.recording.disks import Persistence


class Layout(StrEnum):
    """The layout of the data disks' vdev."""

    SINGLE = "single"
    MIRRORED = "mirrored"
    RAIDZ1 = "raidz1"
    RAIDZ1_SEVEN = "raidz1x7"
    RAIDZ2 = "raidz2"
    DRAID1 = "draid1"

    @property
    def splits_blocks(self) -> bool:
        """Whether each block is split over several disks, rather than whole on each."""
        return self not in {Layout.SINGLE, Layout.MIRRORED}


_OF_LAYOUT = {
    Layout.SINGLE: ("one data disk", ""),
    Layout.MIRRORED: ("mirrored data disks", "two-way"),
    Layout.RAIDZ1: ("raidz1 of three disks", "three disks"),
    Layout.RAIDZ1_SEVEN: ("raidz1 of seven disks", "seven disks"),
    Layout.RAIDZ2: ("raidz2 of four disks", "four disks"),
    Layout.DRAID1: ("draid1 of four disks", "four disks, one of them spare"),
}
_JOINS = {
    Layout.SINGLE: EVERY_SWEEP - {Sweep.ADMINISTRATION_OF_MIRRORS, Sweep.ADMINISTRATION_OF_RAIDZ},
    Layout.MIRRORED: frozenset({Sweep.LAYOUTS, Sweep.ADMINISTRATION_OF_MIRRORS}),
    Layout.RAIDZ1: frozenset({Sweep.LAYOUTS, Sweep.ADMINISTRATION_OF_RAIDZ}),
}

LAYOUT = Axis(
    field="layout",
    noun="Layout",
    title="pool",
    place=50,
    default=Layout.SINGLE,
    choices=choices_of(_OF_LAYOUT, _JOINS),
)


_USUAL = Persistence.VOLATILE
_OF_DISKS = {
    Persistence.PLP: ("data disks power-loss-protected", ""),
    Persistence.VOLATILE: ("data disks with volatile cache", ""),
    Persistence.LYING: ("data disks lie about flushes", "as for the SLOG"),
}

DISKS = Axis(
    field="disks",
    noun="Disks",
    title="data disks",
    place=60,
    default=f"{_USUAL}disks",
    choices=tuple(
        Choice(
            name=f"{persistence}disks",
            value=persistence,
            words=words,
            explained=explained,
            joins=EVERY_SWEEP if persistence is _USUAL else frozenset({Sweep.DATA_DISKS}),
        )
        for persistence, (words, explained) in _OF_DISKS.items()
    ),
)


class SlogClass(StrEnum):
    """The class of a log device."""

    HDD = "hdd"
    SATA_SSD = "sata"
    SAS_SSD = "sas"
    NVME = "nvme"
    OPTANE = "optane"
    NVDIMM = "nvdimm"


TOO_FAST = frozenset({SlogClass.OPTANE, SlogClass.NVDIMM})
"""A guest takes longer than these devices for its part of a write: they look like NVMe to it."""
_OF_CLASS = {
    SlogClass.HDD: ("SLOG on a hard disk", "a synchronous write takes 10 ms"),
    SlogClass.SATA_SSD: ("SLOG on a SATA SSD", "1 ms"),
    SlogClass.SAS_SSD: ("SLOG on a SAS SSD", "0.1 ms"),
    SlogClass.NVME: ("SLOG on NVMe", "25 us"),
    SlogClass.OPTANE: ("SLOG on Optane", "10 us: refused, it looks like `nvme`"),
    SlogClass.NVDIMM: ("SLOG on an NVDIMM", "2.5 us: refused likewise"),
}


def _without_a_log_device(chosen: Chosen) -> str | None:
    slog = chosen["slog"]
    return None if slog.value.legs else f"is the class of a SLOG, and {slog.name!r} has none"


SLOG_CLASS = Axis(
    field="slog_class",
    noun="SlogClass",
    title="SLOG's speed",
    place=40,
    default=SlogClass.NVME,
    inapplicable=_without_a_log_device,
    choices=choices_of(
        _OF_CLASS,
        dict.fromkeys(SlogClass, frozenset({Sweep.LOG_SPEEDS})) | {SlogClass.NVME: EVERY_SWEEP},
    ),
)
