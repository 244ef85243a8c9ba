"""The speed of the log devices; without one it has no effect."""

from __future__ import annotations

from enum import StrEnum

from torture.facts.axes.axis import Axis, Chosen, choices_of
from torture.facts.axes.sweeps import EVERY_SWEEP, Sweep


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
_WORDS = {
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


AXIS = Axis(
    field="slog_class",
    noun="SlogClass",
    title="SLOG's speed",
    place=40,
    default=SlogClass.NVME,
    inapplicable=_without_a_log_device,
    choices=choices_of(
        _WORDS,
        dict.fromkeys(SlogClass, frozenset({Sweep.LOG_SPEEDS})) | {SlogClass.NVME: EVERY_SWEEP},
    ),
)
