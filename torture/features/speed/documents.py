"""`measured.json`: the speed of a cell, job by job, and the circumstances of the measurement."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from torture.facts.evidence.documents import Count, Document, Measure, field
from torture.facts.evidence.folder import Part
from torture.features.speed.jobs.write_path import WritePath


class MeasuredPlace(StrEnum):
    """The target of a measurement's jobs."""

    VOLUME = "volume"
    """The client's disk or file, behind the cell's transport and NAS."""
    LOG_DEVICE = "log-device"
    """A log device of the cell's class, attached to the client without a NAS."""


class MeasuredJob(Document, frozen=True, kw_only=True):
    """A job in one round. Its figures are multiplied: they are those without slow motion."""

    job: str = ""
    """As `torture.features.speed.jobs.jobs` names it."""
    link: str = ""
    """The link between client and NAS; empty where it is not modelled."""
    round: Count = 0
    """Its number."""
    slow_motion: Count = 0
    """Modelled times took so many times as long; 0: as many as the document says."""
    operations: Count = 0
    """Those that the program reports."""
    operations_per_s: Measure = 0.0
    """Their rate."""
    mib_per_s: Measure = 0.0
    """Their throughput."""
    mean_ms: Measure = 0.0
    """The mean time of one."""
    p50_ms: Measure = 0.0
    """The median."""
    p99_ms: Measure = 0.0
    """The 99th percentile."""
    link_lost: Count = 0
    """Frames that the modelled link dropped, as a full switch does, or was too late to take."""
    emulator_share: Measure = 0.0
    """The part of an operation's time that the same job takes without modelled disks and link, 0 to 1."""
    write_path: WritePath | None = None
    """The requests to the NAS's disks; None where they were not counted."""


class MeasuredDocument(Part, frozen=True, kw_only=True):
    """All jobs of a measurement."""

    FILE: ClassVar[str] = "measured.json"
    FIELD: ClassVar[str] = "measured"

    place: str = MeasuredPlace.VOLUME
    """A `MeasuredPlace`."""
    device: str = ""
    """The class of a log device that was measured alone."""
    slow_motion: Count = 1
    """The greatest of all jobs."""
    jobs: tuple[MeasuredJob, ...] = ()
    """Each job in each round."""
    unmodelled_ms: dict[str, Measure] = field(default_factory=dict)
    """Job to the mean time of an operation without modelled disks and link: the emulator's own."""
    timers: dict[str, str] = field(default_factory=dict)
    """Each timer that was multiplied, `machine:path`, and its value in the document's slow motion."""
    size_mib: Count = 0
    """The part of the volume that the jobs use."""
    client_memory_mib: Count = 0
    """The memory of the client's machine."""
    nas_memory_mib: Count = 0
    """The memory of the NAS's machine."""
    arc_bytes: Count = 0
    """The size of the NAS's cache at the end (`arcstats`)."""
    steal_share: Measure = 0.0
    """The part of the processors' time that the host of this machine took away, 0 to 1."""

    def slow_motion_of(self, job: MeasuredJob) -> int:
        """The slow motion of one of its jobs."""
        return job.slow_motion or self.slow_motion


DOCUMENT = MeasuredDocument
