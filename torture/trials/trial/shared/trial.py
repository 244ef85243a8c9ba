"""One trial, as spec and seed decide it before a machine starts, and its clock."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from torture.choices.experiments import find
from torture.choices.experiments.protocol import Fault
from torture.choices.filesystems.protocol import MOUNT_POINT, Filesystem
from torture.choices.matrix.axes import FATE, FILESYSTEM, ROOT, TRANSPORT, WORKLOAD
from torture.choices.matrix.cell_terms import terms_of
from torture.choices.matrix.cells import Cell
from torture.choices.transports.protocol import Attachment, Transport
from torture.choices.volumes import VolumeOptions
from torture.choices.workloads import image_needed, with_those_beside
from torture.choices.workloads.protocol import Place, Workload
from torture.errors import HarnessError
from torture.facts.axes.fate import Fate
from torture.facts.axes.root import Root
from torture.facts.recording.disks import ShelfDisk
from torture.machines.lab.domains import Disk
from torture.machines.nas.devices import that_takes_time_to_read
from torture.machines.nas.pool import pool_disks
from torture.machines.nas.settings import volume_options_of
from torture.records.record.specs import TrialSpec
from torture.trials.plan.trial_plan import TrialPlan, plan_of

_CLIENT_DISK = "vm"


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """A trial's spec and plan, the values that follow from both, and its folders."""

    spec: TrialSpec
    plan: TrialPlan
    fault: Fault | None
    """The fault that the trial plants on purpose."""
    attachment: Attachment
    """The disk or directory that the transport gives the client."""
    disks: tuple[ShelfDisk, ...]
    """The NAS's disks until the cut."""
    disks_left: tuple[ShelfDisk, ...]
    """The disks that are still there after the cut."""
    folder: Path
    """The evidence, which is kept."""
    scratch: Path
    """A directory for temporary files; its owner empties it."""
    started_s: float = field(default_factory=time.monotonic)

    @classmethod
    def begin(cls, spec: TrialSpec, *, folder: Path, scratch: Path, nas_host: str) -> Self:
        """The trial of a spec, whose clock starts now. Raises `HarnessError` for an unreadable plan."""
        plan, fault = plan_of(spec), find(spec.fault)
        disks = pool_disks(spec.cell)
        if not spec.task.has_cut:
            disks = tuple(map(that_takes_time_to_read, disks))
        if fault is not None and fault.on_disks is not None:
            disks = tuple(replace(disk, fault=fault.on_disks) for disk in disks)
        return cls(
            spec=spec,
            plan=plan,
            fault=fault,
            attachment=spec.cell[TRANSPORT].attachment(nas_host=nas_host),
            disks=disks,
            disks_left=tuple(disk for disk in disks if disk.serial not in plan.gone),
            folder=folder,
            scratch=scratch,
        )

    @property
    def cell(self) -> Cell:
        """The spec's cell."""
        return self.spec.cell

    @property
    def transport(self) -> Transport:
        """The cell's transport."""
        return self.cell[TRANSPORT]

    @property
    def volume_options(self) -> VolumeOptions:
        """The cell's options for its volume."""
        return volume_options_of(self.cell)

    @property
    def filesystem(self) -> Filesystem:
        """The cell's filesystem, on the client's device."""
        return self.cell[FILESYSTEM].on(self.attachment.device or "")

    @property
    def has_own_filesystem(self) -> bool:
        """Whether the client has a filesystem of its own on a block device."""
        return self.attachment.device is not None and self.filesystem.has_files

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """The cell's workload, and the workloads beside it."""
        return with_those_beside(self.cell[WORKLOAD])

    @property
    def images(self) -> dict[str, str]:
        """The images that its machines are made of: `nas` and `client`."""
        traits = self.transport.traits
        return {
            "nas": traits.nas_image,
            "client": image_needed(self.workloads, attached_by=traits.client_image),
        }

    @property
    def place(self) -> Place:
        """The mounted directory or the bare device where the loads work in the client."""
        device = self.attachment.device
        is_mounted = device is None or self.filesystem.has_files
        return Place(
            directory=MOUNT_POINT if is_mounted else None,
            device=None if is_mounted else device,
            names_are_stable=terms_of(self.cell).names_are_stable,
            brought=self.spec.brought,
        )

    @property
    def is_mounted(self) -> bool:
        """Whether the client works on files below `MOUNT_POINT`."""
        return self.place.directory is not None

    @property
    def jobs(self) -> dict[str, dict[str, Any]]:
        """The job of each workload's program in the guest, by the workload's name."""
        place = self.place
        return {load.name: load.job(seed=self.spec.seed, place=place) for load in self.workloads}

    @property
    def client_lives_on(self) -> bool:
        """Whether the client of the load continues after the cut."""
        return self.cell[FATE] is Fate.NAS_ONLY

    @property
    def boots_from_disk(self) -> bool:
        """Whether the client's root is on the disk that the NAS gives it."""
        return self.cell[ROOT] is Root.BOOT

    @property
    def root_words(self) -> str:
        """Words on the kernel's command line: the root of a client that boots from its disk."""
        return f"root={self.device} {self.filesystem.root_words}"

    @property
    def device(self) -> str:
        """The client's block device; raises `HarnessError` where the transport gives none."""
        if self.attachment.device is None:
            raise HarnessError(f"{self.cell.name} gives its client no block device")
        return self.attachment.device

    @property
    def client_disks(self) -> tuple[Disk, ...]:
        """The NAS's disks that the client's QEMU attaches."""
        attachment = self.attachment
        if attachment.source is None or attachment.device is None:
            return ()
        sector_bytes = self.volume_options.sector_bytes
        return (
            Disk(
                target=Path(attachment.device).name,
                serial=_CLIENT_DISK,
                source=attachment.source,
                sector_bytes=sector_bytes,
                physical_sector_bytes=sector_bytes,
                is_written_through=attachment.is_written_through,
            ),
        )

    def clock_ms(self) -> float:
        """Milliseconds since the trial began: the time of its ledger and of its cut."""
        return (time.monotonic() - self.started_s) * 1000
