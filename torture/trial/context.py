"""What the stages of one trial share: its folder, its clock, its machines, its shelf."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from torture.evidence.folder import Step, ToolOutput, append_tool
from torture.filesystems import FilesystemTools, tools_of
from torture.lab.agent import Completed
from torture.lab.domains import Disk
from torture.lab.lab import Lab
from torture.lab.machine import Machine
from torture.nas.pool import pool_disks
from torture.nas.slog import gone_at_cut
from torture.record.specs import TrialSpec
from torture.recording.disks import ShelfDisk
from torture.shelf.server import Shelf
from torture.transports import Export, export_of
from torture.workloads.ledger import LedgerServer

_TARGETS = "bcdefghij"


@dataclass(kw_only=True)
class TrialContext:
    """One trial's workplace. `scratch` is emptied by its owner; `folder` is what is kept."""

    spec: TrialSpec
    lab: Lab
    folder: Path
    scratch: Path
    enter_stage: Callable[[str], None]
    timings: dict[str, int] = field(default_factory=dict)
    shelf: Shelf = field(init=False)
    disks: tuple[ShelfDisk, ...] = field(init=False)
    """The NAS's disks until the cut."""
    gone: frozenset[str] = field(init=False)
    """Serials of those that are not there any more after it."""
    disks_left: tuple[ShelfDisk, ...] = field(init=False)
    server: LedgerServer | None = None
    _machines: list[Machine] = field(default_factory=list)
    _started_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.shelf = Shelf(
            directory=self.scratch / "recordings", socket=self.lab.sockets / "shelf.sock"
        )
        self.disks = pool_disks(self.spec.cell)
        self.gone = gone_at_cut(self.spec.cell, self.spec.seed)
        self.disks_left = tuple(disk for disk in self.disks if disk.serial not in self.gone)

    @property
    def filesystem(self) -> FilesystemTools:
        """The tools of the cell's filesystem."""
        return tools_of(self.spec.cell.filesystem)

    @property
    def export(self) -> Export:
        """The cell's transport."""
        return export_of(self.spec.cell.transport)

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

    def start_nas(self, life: int, disks_on_shelf: tuple[ShelfDisk, ...]) -> Machine:
        """The NAS with these disks on the shelf; `life` counts its boots, from 1."""
        disks = tuple(
            Disk(
                target=f"vd{letter}",
                serial=disk.serial,
                source=self.shelf.source(disk),
                sector_bytes=disk.sector_bytes,
            )
            for letter, disk in zip(_TARGETS, disks_on_shelf, strict=False)
        )
        console = self.folder / f"nas-{life}.console.log"
        return self._owned(self.lab.start_nas(console_log=console, disks=disks))

    def start_client(self, role: str) -> Machine:
        """A client whose disk is the NAS's export; `role` names its console log."""
        socket = self.ledger_socket(role)
        source = self.export.source(nas_host=self.lab.network.nas_host)
        machine = self.lab.start_client(
            console_log=self.folder / f"{role}.console.log",
            ledger_socket=socket,
            disks=(Disk(target="vdb", serial="vm", source=source),),
        )
        return self._owned(machine)

    def ledger_socket(self, role: str) -> Path:
        """Where the client of this role offers its ledger."""
        return self.lab.sockets / f"{role}.sock"

    def _owned(self, machine: Machine) -> Machine:
        self._machines.append(machine)
        return machine

    def observe(
        self, machine: Machine, step: Step, argv: tuple[str, ...], *, deadline_s: float
    ) -> Completed:
        """Run a tool in a guest and keep all it said as evidence of `step`."""
        completed = machine.run(*argv, deadline_s=deadline_s)
        append_tool(
            self.folder,
            ToolOutput(
                step=step,
                vm=machine.name,
                name=argv[0],
                argv=argv,
                exit_code=completed.exit_code,
                stdout=completed.stdout,
                stderr=completed.stderr,
                duration_ms=completed.duration_ms,
            ),
        )
        return completed

    def close(self) -> None:
        """End everything of this trial that still runs."""
        with ExitStack() as stack:  # what comes last here is ended first
            if self.server is not None:
                stack.callback(self.server.close)
            stack.callback(self.shelf.stop)
            for machine in self._machines:
                stack.callback(machine.kill)
