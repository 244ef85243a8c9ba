"""What the stages of one trial share: its folder, its clock, its machines, its shelf."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from torture.choices.faults import find
from torture.choices.faults.protocol import Fault
from torture.choices.filesystems.protocol import Filesystem
from torture.choices.matrix.axes import FATE, FILESYSTEM, ROOT, TRANSPORT, WORKLOAD
from torture.choices.transports.protocol import Attachment, Transport
from torture.choices.volumes import VolumeOptions
from torture.choices.workloads import with_those_beside
from torture.choices.workloads.protocol import Place, Workload
from torture.errors import HarnessError
from torture.facts.axes.fate import Fate
from torture.facts.axes.root import Root
from torture.facts.evidence.completed import Completed
from torture.facts.evidence.folder import LEDGER, Step, ToolOutput, append_tool
from torture.facts.recording.disks import ShelfDisk
from torture.machines.client.ledger_server import LedgerServer
from torture.machines.lab.domains import Disk
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.machines.nas.pool import pool_disks
from torture.machines.nas.settings import RELOAD_ZFS, parameters_script
from torture.machines.nas.volume_options import volume_options_of
from torture.machines.shelf.control import MarkWriter
from torture.machines.shelf.server import RECORDINGS_OF_SHELF, Shelf
from torture.records.record.specs import TrialSpec
from torture.trials.plan.trial_plan import TrialPlan, plan_of
from torture.trials.trial.client_load.loads import Loads
from torture.trials.trial.client_load.place import place_of
from torture.trials.trial.promises.disk_trace import DiskTrace

_FIRST_FREE_LETTER = 1
"""`vda` is the guest's root disk."""
_CLIENT_DISK = "vm"
_MODULE_DEADLINE_S = 60


@dataclass(kw_only=True)
class TrialContext:
    """One trial's workplace. `scratch` is emptied by its owner; `folder` is what is kept."""

    spec: TrialSpec
    lab: Lab
    folder: Path
    scratch: Path
    enter_stage: Callable[[str], None]
    timings: dict[str, int] = field(default_factory=dict)
    loads: Loads = field(default_factory=Loads)
    plan: TrialPlan = field(init=False)
    shelf: Shelf = field(init=False)
    fault: Fault | None = field(init=False)
    """What was planted on purpose."""
    disks: tuple[ShelfDisk, ...] = field(init=False)
    """The NAS's disks until the cut."""
    disks_left: tuple[ShelfDisk, ...] = field(init=False)
    """Those that are still there after it."""
    ledger: LedgerServer | None = None
    """The client's ledger, if a load keeps one."""
    marks: MarkWriter | None = None
    """What writes it into the shelf's log."""
    client_lives_on: bool = field(init=False)
    """Whether the client of the load goes on after the cut."""
    published: tuple[float, float] | None = None
    """When the NAS that came back last began to publish its volume, and when it had, by `clock_ms`."""
    disk_trace: DiskTrace | None = None
    """What tells of the disk of the client that writes."""
    _machines: list[Machine] = field(default_factory=list)
    _beside: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=1))
    _checker: Future[Machine] | None = None
    _started_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.shelf = Shelf(
            directory=self.scratch / RECORDINGS_OF_SHELF,
            socket=self.lab.sockets / "shelf.sock",
            logs=self.folder,
        )
        self.plan = plan_of(self.spec)
        self.disks = pool_disks(self.spec.cell)
        self.client_lives_on = self.spec.cell[FATE] is Fate.NAS_ONLY
        self.fault = find(self.spec.fault)
        if self.fault is not None and self.fault.on_disks is not None:
            self.disks = tuple(replace(disk, fault=self.fault.on_disks) for disk in self.disks)
        self.disks_left = tuple(disk for disk in self.disks if disk.serial not in self.plan.gone)

    @property
    def transport(self) -> Transport:
        """The cell's transport."""
        return self.spec.cell[TRANSPORT]

    @property
    def volume_options(self) -> VolumeOptions:
        """How the cell wants its volume."""
        return volume_options_of(self.spec.cell)

    @property
    def filesystem(self) -> Filesystem:
        """The cell's filesystem."""
        return self.spec.cell[FILESYSTEM]

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """The cell's workload, and those beside it."""
        return with_those_beside(self.spec.cell[WORKLOAD])

    @property
    def attachment(self) -> Attachment:
        """What the transport gives the client."""
        return self.transport.attachment(nas_host=self.lab.network.nas_host)

    @property
    def place(self) -> Place:
        """Where the loads work in the client."""
        device = self.attachment.device
        return place_of(self.spec.cell, device=device, brought=self.spec.brought)

    @property
    def is_mounted(self) -> bool:
        """Whether the client works on files below `MOUNT_POINT`."""
        return self.place.directory is not None

    @property
    def boots_from_disk(self) -> bool:
        """Whether the client's root is on the disk that the NAS gives it."""
        return self.spec.cell[ROOT] is Root.BOOT

    @property
    def device(self) -> str:
        """The client's block device; raises `HarnessError` where the transport gives none."""
        if self.attachment.device is None:
            raise HarnessError(f"{self.spec.cell.name} gives its client no block device")
        return self.attachment.device

    @property
    def jobs(self) -> dict[str, dict[str, Any]]:
        """What each workload's half in the guest is told, by the workload's name."""
        return {
            workload.name: workload.job(seed=self.spec.seed, place=self.place)
            for workload in self.workloads
        }

    def clock_ms(self) -> float:
        """Milliseconds since the trial began: the time of its ledger and of its cut."""
        return (time.monotonic() - self._started_s) * 1000

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage; its name is shown live and stands in the record's timings."""
        self.enter_stage(name)
        begun = time.monotonic()
        try:
            yield
        finally:
            self.timings[name] = round((time.monotonic() - begun) * 1000)

    def start_nas(
        self, boot: int, disks_on_shelf: tuple[ShelfDisk, ...], *, draws_anew: bool = False
    ) -> Machine:
        """The NAS with these disks on the shelf; `boot` counts from 1.

        `draws_anew`: its ZFS's random numbers are others than those of the boots that follow.
        """
        letters = ascii_lowercase[_FIRST_FREE_LETTER:]
        if len(disks_on_shelf) > len(letters):
            raise HarnessError(f"a NAS has no room for {len(disks_on_shelf)} disks")
        disks = tuple(
            Disk(
                target=f"vd{letter}",
                serial=disk.serial,
                source=self.shelf.source(disk),
                sector_bytes=disk.sector_bytes,
                physical_sector_bytes=disk.physical_sector_bytes,
            )
            for letter, disk in zip(letters, disks_on_shelf, strict=False)
        )
        console = self.folder / f"nas-{boot}.console.log"
        nas = self.own(self.lab.start_nas(console_log=console, disks=disks))
        if draws_anew:
            nas.must("sh", "-c", RELOAD_ZFS, deadline_s=_MODULE_DEADLINE_S)
        if parameters := parameters_script(self.spec.cell):
            nas.must("sh", "-c", parameters, deadline_s=_MODULE_DEADLINE_S)
        return nas

    def start_client(self, role: str) -> Machine:
        """A client whose disk is the NAS's export; `role` names its console log."""
        return self._start_client(role, self.client_disks)

    def begin_checker(self) -> None:
        """Have the client that checks come up beside what follows: it needs no NAS before its disk.

        Where machines boot with their disks in place, `checker` starts it.
        """
        if self.lab.can_plug_in or self._client_has_network:
            self._checker = self._beside.submit(self._take_checker)

    def checker(self) -> Machine:
        """The client that checks, with its disk: one that was not there at the cut."""
        if self._checker is None:
            return self.start_client("checker")
        machine = self._checker.result()
        for disk in self.client_disks:
            machine.attach(disk)
        return machine

    def give_checker_back(self, machine: Machine) -> None:
        """Leave the client that checked to the next trial: it is as good as new without its disk.

        Where that cannot be it ends with this one, as all machines do.
        """
        if self._checker is None or self.fault is not None or self.attachment.attach_script:
            return
        try:
            for disk in self.client_disks:
                machine.detach(disk)
        except HarnessError:
            return
        self._machines.remove(machine)
        self.lab.checkers.keep(machine)

    def _take_checker(self) -> Machine:
        if self._client_has_network:
            return self._start_client("checker", ())
        return self.own(self.lab.checkers.take(console_log=self.folder / "checker.console.log"))

    def _start_client(self, role: str, disks: tuple[Disk, ...]) -> Machine:
        console, socket = self.folder / f"{role}.console.log", self.ledger_socket(role)
        attachment = self.attachment
        if self._client_has_network:
            machine = self.lab.start_networked_client(
                console_log=console,
                ledger_socket=socket,
                is_checker=role == "checker",
                kernel_words=attachment.kernel_words,
            )
        else:
            machine = self.lab.start_client(
                console_log=console, ledger_socket=socket, disks=disks, preload=attachment.preload
            )
        return self.own(machine)

    @property
    def _client_has_network(self) -> bool:
        return self.transport.traits.client_has_network

    @property
    def client_disks(self) -> tuple[Disk, ...]:
        """What the client's QEMU attaches of the NAS."""
        attachment = self.attachment
        if attachment.source is None or attachment.device is None:
            return ()
        return (
            Disk(
                target=Path(attachment.device).name,
                serial=_CLIENT_DISK,
                source=attachment.source,
                sector_bytes=self.volume_options.sector_bytes,
                physical_sector_bytes=self.volume_options.sector_bytes,
                is_written_through=attachment.is_written_through,
            ),
        )

    def resume_nas(self, state: Path) -> Machine:
        """The NAS of the first boot, from where it was saved with its disks."""
        return self.own(self.lab.resume_nas(state, console_log=self.folder / "nas-1.console.log"))

    def resume_client(self, role: str, state: Path) -> Machine:
        """A client from where it was saved with its disk."""
        machine = self.lab.resume_client(
            state,
            console_log=self.folder / f"{role}.console.log",
            ledger_socket=self.ledger_socket(role),
            preload=self.attachment.preload,
        )
        return self.own(machine)

    @property
    def machines(self) -> tuple[Machine, ...]:
        """All that were started, whether they still run or not."""
        return tuple(self._machines)

    def ledger_socket(self, role: str) -> Path:
        """Where the client of this role offers its ledger."""
        return self.lab.sockets / f"{role}.sock"

    def own(self, machine: Machine) -> Machine:
        """Have a machine end with this trial, and no wait for it outlast the room for its disks."""
        self._machines.append(machine)
        machine.agent.must_go_on = self.shelf.require_room
        return machine

    def open_ledger(self) -> LedgerServer:
        """The ledger of the client that writes, kept from now on."""
        if self.ledger is None:
            self.marks = self.shelf.marks()
            self.ledger = LedgerServer(
                client_socket=self.ledger_socket("client"),
                file=self.folder / LEDGER,
                clock_ms=self.clock_ms,
                mark=self.marks.write,
                must_go_on=self.shelf.require_room,
            )
            self.ledger.start()
        return self.ledger

    def observe(
        self, machine: Machine, step: Step, argv: tuple[str, ...], *, deadline_s: float
    ) -> Completed:
        """Run a tool in a guest and keep all it said as evidence of `step`."""
        completed = machine.run(*argv, deadline_s=deadline_s)
        self.keep(step, completed)
        return completed

    def keep(self, step: Step, completed: Completed) -> None:
        """Keep all that a tool said as evidence of `step`."""
        append_tool(
            self.folder,
            ToolOutput(
                step=step,
                vm=completed.vm,
                name=completed.tool,
                argv=completed.argv,
                exit_code=completed.exit_code,
                stdout=completed.stdout,
                stderr=completed.stderr,
                duration_ms=completed.duration_ms,
            ),
        )

    def close(self) -> None:
        """End everything of this trial that still runs."""
        self._beside.shutdown()  # what is starting is owned once it has
        with ExitStack() as stack:  # what comes last here is ended first
            if self.disk_trace is not None:
                stack.callback(self.disk_trace.close)
            if self.ledger is not None:
                stack.callback(self.ledger.close)
            stack.callback(self.shelf.stop)
            for machine in self._machines:
                stack.callback(machine.kill)
