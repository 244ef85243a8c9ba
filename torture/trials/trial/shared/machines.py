"""The shelf, the NAS and the clients of one trial: their start, their power loss, and their end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Self

from torture.choices.experiments import find
from torture.choices.experiments.protocol import Fault
from torture.choices.filesystems.protocol import MOUNT_POINT, Filesystem
from torture.choices.matrix.cell_terms import terms_of
from torture.choices.matrix.cells import (
    AWAY,
    EARLY,
    EVENT,
    FATE,
    FILESYSTEM,
    PATIENCE,
    ROOT,
    SETTINGS,
    TRANSPORT,
    WORKLOAD,
    Cell,
)
from torture.choices.transports.protocol import Attachment, Transport
from torture.choices.volumes import VolumeOptions
from torture.choices.workloads import image_needed, with_those_beside
from torture.choices.workloads.protocol import Place, Workload
from torture.errors import HarnessError
from torture.facts.axes.away import Patience
from torture.facts.axes.early import Early
from torture.facts.axes.event import Event
from torture.facts.axes.fate import Fate
from torture.facts.axes.root import Root
from torture.facts.evidence.folder import LEDGER
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import Recording, load_recording
from torture.machines.lab.domains import Disk, MachineSpec
from torture.machines.lab.lab import Lab
from torture.machines.lab.ledger_server import LedgerServer
from torture.machines.lab.machine import Machine
from torture.machines.nas.pool import pool_disks, that_takes_time_to_read
from torture.machines.nas.settings import RELOAD_ZFS, parameters_script, volume_options_of
from torture.machines.shelf.control import MarkWriter
from torture.machines.shelf.server import RECORDINGS_OF_SHELF, Shelf
from torture.records.record.specs import TrialSpec
from torture.trials.plan.trial_plan import TrialPlan, plan_of
from torture.trials.trial.promises.disk_trace import DiskTrace

_CLIENT_DISK = "vm"
SCRATCH_FILE = ".proof"
"""A file that no load has."""


def attachment_of(cell: Cell, *, nas_host: str) -> Attachment:
    """The disk or directory of a cell's client; a mount has the cell's options."""
    attachment = cell[TRANSPORT].attachment(nas_host=nas_host)
    if attachment.mount is None:
        return attachment
    added = {**attachment.mount.added, **cell[SETTINGS].mount_options}
    return replace(attachment, mount=replace(attachment.mount, added=added))


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
            attachment=attachment_of(spec.cell, nas_host=nas_host),
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
    def tries_remedies(self) -> bool:
        """Whether a dead disk of a client that lives is brought back there, before another client looks.

        In other cells the other client's check comes first: a mount may mend what it finds.
        """
        cell = self.cell
        is_late = cell[AWAY] > 0 or cell[EARLY].order is not Early.IN_ORDER
        return (is_late or cell[PATIENCE] is not Patience.FOREVER) and not self.boots_from_disk

    @property
    def write_script(self) -> str:
        """Shell: a write to the client's files, durable; of a disk without files, a read."""
        if self.is_mounted:
            file = f"{MOUNT_POINT}/{SCRATCH_FILE}"
            return f"dd if=/dev/zero of={file} bs=4096 count=1 conv=fsync status=none"
        return f"dd if={self.device} of=/dev/null bs=4096 count=1 iflag=direct status=none"

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


_FIRST_FREE_LETTER = 1
"""`vda` is the guest's root disk."""
_BOOT_OF_LOAD = 1
_MODULE_DEADLINE_S = 60
_BOOT_FROM_DISK_DEADLINE_S = 240
"""An operator's patience: under emulation, on two busy cores, it took 30 to 63 s."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PowerCut:
    """A cut as the host saw it; `seq` is the number of the last event that happened."""

    recording: Recording
    seq: int
    t_ms: float
    took_ms: float


@dataclass(kw_only=True)
class Machines:
    """All machines of one trial, and the recorders of its client."""

    trial: Trial
    lab: Lab
    shelf: Shelf = field(init=False)
    ledger: LedgerServer | None = None
    """The client's ledger, if a load keeps one."""
    marks: MarkWriter | None = None
    """Writes the ledger into the shelf's recording."""
    disk_trace: DiskTrace | None = None
    """Records the requests of the disk of the client that writes."""
    all: list[Machine] = field(default_factory=list)
    """All machines that were started, whether they still run or not."""
    _beside: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=1))
    _checker: Future[Machine] | None = None
    _nas: Machine | None = None
    """The NAS that was started last."""

    def __post_init__(self) -> None:
        self.shelf = Shelf(
            directory=self.trial.scratch / RECORDINGS_OF_SHELF,
            socket=self.lab.sockets / "shelf.sock",
            logs=self.trial.folder,
        )

    def own(self, machine: Machine) -> Machine:
        """Make a machine end with this trial.

        A wait for it also ends early when the shelf has no more room for its disks.
        """
        self.all.append(machine)
        machine.agent.must_go_on = self.shelf.require_room
        return machine

    def start_nas(
        self, boot: int | str, disks_on_shelf: tuple[ShelfDisk, ...], *, draws_anew: bool = False
    ) -> Machine:
        """The NAS with these disks on the shelf; `boot` counts from 1, or is a name.

        `draws_anew`: its ZFS draws other random numbers than in the boots that follow.
        """
        disks = self._disks_of(disks_on_shelf)
        console = self._console(f"nas-{boot}")
        writes = self.trial.transport.traits.is_local and boot == _BOOT_OF_LOAD
        port = self._ledger_socket("client") if writes else None
        nas = self.own(self.lab.start_nas(console_log=console, disks=disks, port_socket=port))
        self._nas = nas
        if draws_anew:
            nas.must("sh", "-c", RELOAD_ZFS, deadline_s=_MODULE_DEADLINE_S)
        takes_over = self.trial.cell[EVENT] is Event.TAKEOVER and boot != _BOOT_OF_LOAD
        if parameters := parameters_script(self.trial.cell, is_standby=takes_over):
            nas.must("sh", "-c", parameters, deadline_s=_MODULE_DEADLINE_S)
        return nas

    def start_former(self, disks_on_shelf: tuple[ShelfDisk, ...]) -> Machine:
        """The node that lost its power, beside the one that has its pool: without a network."""
        disks, console = self._disks_of(disks_on_shelf), self._console("nas-former")
        former = self.own(self.lab.start_former(console_log=console, disks=disks))
        former.must("sh", "-c", parameters_script(self.trial.cell), deadline_s=_MODULE_DEADLINE_S)
        return former

    def _disks_of(self, disks_on_shelf: tuple[ShelfDisk, ...]) -> tuple[Disk, ...]:
        letters = ascii_lowercase[_FIRST_FREE_LETTER:]
        if len(disks_on_shelf) > len(letters):
            raise HarnessError(f"a NAS has no room for {len(disks_on_shelf)} disks")
        return tuple(
            Disk(
                target=f"vd{letter}",
                serial=disk.serial,
                source=self.shelf.source(disk),
                sector_bytes=disk.sector_bytes,
                physical_sector_bytes=disk.physical_sector_bytes,
            )
            for letter, disk in zip(letters, disks_on_shelf, strict=False)
        )

    def resume_nas(self, state: Path) -> Machine:
        """The NAS of the first boot, from its saved state, with its disks."""
        return self.own(self.lab.resume_nas(state, console_log=self._console("nas-1")))

    def start_client(self, role: str) -> Machine:
        """A client whose disk is the NAS's export; `role` names its console log.

        It is the NAS itself where the VM is there.
        """
        if self._nas is not None and self.trial.transport.traits.is_local:
            return self._nas
        return self._start_client(role, self.trial.client_disks)

    def resume_client(self, role: str, state: Path) -> Machine:
        """A client from its saved state, with its disk."""
        return self.own(self.lab.resume(self._client_spec(role), state))

    def boot_client_from_disk(self, role: str, *, name: str) -> Machine:
        """A client of this name that booted from the NAS's disk; `role` names its console log.

        Raises as `Lab.boot` does.
        """
        spec, trial = self._client_spec(role), self.trial
        words = f"{spec.command_line} {trial.root_words}"
        spec = replace(spec, name=name, command_line=words, disks=trial.client_disks)
        return self.own(self.lab.boot(spec, deadline_s=_BOOT_FROM_DISK_DEADLINE_S))

    def begin_checker(self) -> None:
        """Start the client that checks during the next stages: it needs no NAS before its disk.

        Where machines boot with their disks in place, `checker` starts it.
        """
        if self.trial.transport.traits.is_local:
            return
        if self.lab.can_plug_in or self._client_has_network:
            self._checker = self._beside.submit(self._take_checker)

    def checker(self) -> Machine:
        """The client that checks, with its disk: it did not exist at the cut."""
        if self._checker is None:
            return self.start_client("checker")
        machine = self._checker.result()
        for disk in self.trial.client_disks:
            machine.attach(disk)
        return machine

    def give_checker_back(self, machine: Machine) -> None:
        """Leave the client that checked to the next trial: without its disk it is as good as new.

        Where that is impossible, it ends with this trial, as all machines do.
        """
        trial = self.trial
        if self._checker is None or trial.fault is not None or trial.attachment.guest_script:
            return
        try:
            for disk in trial.client_disks:
                machine.detach(disk)
        except HarnessError:
            return
        self.all.remove(machine)
        self.lab.checkers.keep(machine)

    def _take_checker(self) -> Machine:
        if self._client_has_network:
            return self._start_client("checker", ())
        return self.own(self.lab.take_checker(console_log=self._console("checker")))

    def _start_client(self, role: str, disks: tuple[Disk, ...]) -> Machine:
        spec = self._client_spec(role)
        if self._client_has_network:
            words = self.trial.attachment.kernel_words
            is_checker = role == "checker"
            spec = self.lab.networked(spec, is_checker=is_checker, kernel_words=words)
        return self.own(self.lab.start(spec, disks))

    def _client_spec(self, role: str) -> MachineSpec:
        preload = self.trial.attachment.preload
        return self.lab.client_spec(self._console(role), self._ledger_socket(role), preload)

    @property
    def _client_has_network(self) -> bool:
        return self.trial.transport.traits.client_has_network

    def _console(self, role: str) -> Path:
        return self.trial.folder / f"{role}.console.log"

    def _ledger_socket(self, role: str) -> Path:
        return self.lab.sockets / f"{role}.sock"

    def open_ledger(self) -> LedgerServer:
        """The ledger of the client that writes, kept from now on."""
        if self.ledger is None:
            self.marks = self.shelf.marks()
            self.ledger = LedgerServer(
                client_socket=self._ledger_socket("client"),
                file=self.trial.folder / LEDGER,
                clock_ms=self.trial.clock_ms,
                mark=self.marks.write,
                must_go_on=self.shelf.require_room,
            )
            self.ledger.start()
        return self.ledger

    def cut(self, victims: Sequence[Machine]) -> PowerCut:
        """Freeze the shelf, if it is not frozen, and end these machines and the shelf: SIGKILL, now."""
        t_ms = self.trial.clock_ms()
        seq = self.shelf.freeze()
        if self.ledger is not None:
            self.ledger.mark_cut(t_ms)
        # before its clients are gone: nbdkit before 1.34 may abort when they leave without an answer
        self.shelf.require_healthy()
        for machine in victims:
            machine.kill()
        dead_ms = self.trial.clock_ms()
        self.shelf.stop()
        recording = load_recording(self.shelf.recording)
        if len(recording.events) <= seq:
            raise HarnessError(
                f"the shelf froze at event {seq}, its log has {len(recording.events)}",
                hint=f"read {self.shelf.errors}",
            )
        return PowerCut(recording=recording, seq=seq, t_ms=t_ms, took_ms=dead_ms - t_ms)

    def cut_client(self, client: Machine) -> PowerCut:
        """End the client alone: SIGKILL, now. The shelf and its recording go on."""
        t_ms = self.trial.clock_ms()
        client.kill()
        dead_ms = self.trial.clock_ms()
        if self.ledger is not None:
            self.ledger.mark_cut(dead_ms)
        seq = self.shelf.control.status().seq
        recording = load_recording(self.shelf.recording)
        return PowerCut(recording=recording, seq=seq, t_ms=t_ms, took_ms=dead_ms - t_ms)

    def close(self) -> None:
        """End everything of this trial that still runs."""
        self._beside.shutdown()  # a starting machine has an owner once it has started
        with ExitStack() as stack:  # the last callback runs first
            if self.disk_trace is not None:
                stack.callback(self.disk_trace.close)
            if self.ledger is not None:
                stack.callback(self.ledger.close)
            stack.callback(self.shelf.stop)
            for machine in self.all:
                stack.callback(machine.kill)
