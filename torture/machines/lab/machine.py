"""One virtual machine: start, resume, commands, power cut. It owns its QEMU until that is gone."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torture.deadlines import truth, wait_for
from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.evidence.folder import Completed
from torture.machines.lab.agent import Agent, StartRefused
from torture.machines.lab.domains import (
    Disk,
    MachineSpec,
    disk_places,
    disk_xml,
    domain_xml,
    overlay_xml,
    with_console,
)
from torture.oracles.verdict.boot_verdict import end_of_console
from torture.oracles.verdict.mount import KERNEL_DEATH

_GONE_DEADLINE_S = 30
_LINES = 12
CONSOLE = "charserial0"
"""libvirt's name for a domain's first serial port in QEMU (src/qemu/qemu_alias.c)."""


class MachineFailed(HarnessError):
    """A machine did not do its part: the machinery is the cause, or the storage."""

    def __init__(self, message: str, *, machine: Machine) -> None:
        super().__init__(message, hint=f"read {machine.spec.console_log}")
        self.machine = machine


class GuestDied(MachineFailed):
    """A machine stopped by itself. `kernel_crashed`: its kernel reported a crash; else QEMU is gone."""

    def __init__(self, message: str, *, machine: Machine, kernel_crashed: bool) -> None:
        super().__init__(message, machine=machine)
        self.kernel_crashed = kernel_crashed


class DiskRefused(MachineFailed):
    """QEMU cannot open a disk of a machine: after a cut the storage is the cause."""


class Machine:
    """A domain and its QEMU process. `libvirt_root` is the driver's folder."""

    def __init__(self, *, connection: Any, libvirt_root: Path, spec: MachineSpec) -> None:
        self._connection = connection
        self._root = libvirt_root
        self.spec = spec
        self._domain: Any = None
        self._qemu_pid: int | None = None
        self._was_gone = False
        """Whether its QEMU was gone when the suite wanted to end it."""
        self._agent: Agent | None = None

    @property
    def name(self) -> str:
        """The domain's name, which is the machine's role."""
        return self.spec.name

    @property
    def qemu_pid(self) -> int | None:
        """The process id of its QEMU, None when it has none."""
        return self._qemu_pid

    @property
    def agent(self) -> Agent:
        """The guest agent; raises `HarnessError` when the machine was never started."""
        if self._agent is None:
            raise HarnessError(f"{self.name} is not running")
        return self._agent

    def boot(self, *, deadline_s: float) -> None:
        """Start from power-off and wait until the guest agent answers.

        Raises `StartRefused`, or another `HarnessError` when the guest does not come up.
        """
        self._launch(lambda xml: self._connection.createXML(xml, 0), verb="start")
        self.agent.wait_until_up(deadline_s=deadline_s)

    def resume(self, state: Path, *, deadline_s: float, with_its_disks: bool = False) -> None:
        """Continue from a saved state, with this machine's own paths, and set the clock.

        `with_its_disks`: the disks that were plugged in at the save are in their places. Otherwise
        the machine was saved without disks. Raises `StartRefused`, or another `HarnessError` when
        the guest does not come up.
        """

        def restore(xml: str) -> Any:
            if with_its_disks:
                saved = self._connection.saveImageGetXMLDesc(str(state), 0)
                xml = with_console(saved, self.spec.console_log)
            self._connection.restoreFlags(str(state), xml, 0)
            return self._connection.lookupByName(self.name)

        self._launch(restore, verb=f"resume from {state}")
        self.agent.wait_until_up(deadline_s=deadline_s)
        self.agent.set_clock()

    def _launch(self, start: Callable[[str], Any], *, verb: str) -> None:
        import libvirt

        self._wait_until_name_is_free()
        try:
            self._domain = start(domain_xml(self.spec))
        except libvirt.libvirtError as error:
            log = self._root / "log" / "qemu" / f"{self.name}.log"
            output = log.read_text(errors="replace").splitlines()[-_LINES:] if log.exists() else []
            raise StartRefused(
                "\n".join([f"{self.name} does not {verb}: {error}", *output]),
                refusal=str(error),
                hint="tools/doctor",
            ) from error
        self._qemu_pid = self._read_qemu_pid()
        self._agent = Agent(domain=self._domain, vm=self.name, raise_if_dead=self.raise_if_dead)

    def _read_qemu_pid(self) -> int:
        pid_file = self._root / "run" / "qemu" / f"{self.name}.pid"
        try:
            return int(pid_file.read_text())
        except (OSError, ValueError) as error:
            # libvirt removes the file once QEMU is gone
            raise HarnessError(
                f"{self.name} ended as soon as it ran: {error}",
                hint=f"read {self.spec.console_log}",
            ) from error

    def _wait_until_name_is_free(self) -> None:
        """Wait until libvirt has released the machine's former life; it refuses the name until then."""
        import libvirt

        try:
            wait_for(
                lambda: truth(self._is_name_free()),
                what=f"end of the former {self.name} in libvirt",
                deadline_s=_GONE_DEADLINE_S,
            )
        except (DeadlineExceeded, libvirt.libvirtError) as error:
            refusal = f"the name {self.name} is not free: {error}"
            raise StartRefused(refusal, refusal=refusal) from error

    def _is_name_free(self) -> bool:
        """Whether libvirt has no domain of this name at all any more.

        libvirt first marks a domain whose QEMU is gone as being removed, and then no look-up finds
        it. A moment later the domain leaves libvirt's list. A start in between is refused ("already
        being removed").

        Lists of names ignore the mark: a marked domain counts as not active. It stays listed as
        defined until it has left (libvirt 9.0 to 11.3, src/conf/virdomainobjlist.c,
        virDomainObjListRemove, FindByName, CopyInactiveNames). No event reports this: `STOPPED`
        comes before the mark, and `UNDEFINED` is not for transient domains.
        """
        import libvirt

        try:
            self._connection.lookupByName(self.name)
        except libvirt.libvirtError as error:
            if error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                raise
            return self.name not in self._connection.listDefinedDomains()
        return False

    def save(self, state: Path) -> None:
        """Stop the machine and keep its memory in `state`, for `resume`."""
        with _refusal_is(f"{self.name} could not be saved to {state}"):
            self._domain.save(str(state))
        self._qemu_pid = None

    def attach(self, disk: Disk) -> None:
        """Hot-plug a disk; raises `DiskRefused` when QEMU cannot open it."""
        disk_refused = partial(DiskRefused, machine=self)
        with _refusal_is(f"{self.name} refuses disk {disk.serial}", raises=disk_refused):
            self._domain.attachDeviceFlags(disk_xml(disk), 0)

    def detach(self, disk: Disk) -> None:
        """Unplug a disk that the guest no longer uses; raises `HarnessError` when it stays."""
        with _refusal_is(f"{self.name} keeps disk {disk.serial}"):
            self._domain.detachDeviceFlags(disk_xml(disk), 0)
            left = disk_places(self._domain.XMLDesc(0))
        if disk.target in left:
            raise HarnessError(f"{self.name} does not release disk {disk.serial}")

    def divert_writes(self, disk: Disk, *, into: Path) -> None:
        """Send all further writes of a disk to a file of the host, and leave the disk as it is.

        Raises `HarnessError` when QEMU refuses it.
        """
        import libvirt

        flags = (
            libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_DISK_ONLY
            | libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_NO_METADATA
        )
        with _refusal_is(f"{self.name} takes no overlay of {disk.serial}"):
            self._domain.snapshotCreateXML(overlay_xml(disk, into), flags)

    def move_console(self, console_log: Path) -> None:
        """Continue the console in another file; raises `HarnessError` when QEMU refuses it."""
        backend = {"type": "file", "data": {"out": str(console_log)}}
        command = {"execute": "chardev-change", "arguments": {"id": CONSOLE, "backend": backend}}
        answer = json.loads(self.ask_qemu(json.dumps(command)))
        if "return" not in answer:
            raise HarnessError(f"the console of {self.name} could not be moved: {answer}")
        self.spec = replace(self.spec, console_log=console_log)

    def trace(self, events: Sequence[str], *, into: Path) -> None:
        """Make QEMU trace these events from now on, a line each; raises `HarnessError` if it refuses."""
        commands = [f"logfile {into}", *(f"trace-event {event} on" for event in events)]
        answers = [self.ask_qemu(command, for_people=True) for command in commands]
        if refusals := [answer.strip() for answer in answers if answer.strip()]:
            raise HarnessError(f"the QEMU of {self.name} cannot trace: {'; '.join(refusals)}")

    def ask_qemu(self, command: str, *, for_people: bool = False) -> str:
        """QEMU's answer to a monitor command: of QMP, or of the human monitor with `for_people`."""
        import libvirt_qemu

        hmp = libvirt_qemu.VIR_DOMAIN_QEMU_MONITOR_COMMAND_HMP if for_people else 0
        with _refusal_is(f"the QEMU of {self.name} refuses {command}"):
            return str(libvirt_qemu.qemuMonitorCommand(self._domain, command, hmp))

    def pause_emulator(self, duration_ms: int) -> None:
        """Stop QEMU for a while; does nothing when it is gone."""
        if self._qemu_pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._qemu_pid, signal.SIGSTOP)
            time.sleep(duration_ms / 1000)
            os.kill(self._qemu_pid, signal.SIGCONT)

    def kill(self) -> None:
        """End QEMU by SIGKILL, so that it flushes and announces nothing; does nothing when it is gone.

        libvirt's `destroy` would send SIGTERM first, and QEMU would flush its disks.
        """
        if self._qemu_pid is None:
            return
        self._was_gone = self.has_exited_unexpectedly
        pid, self._qemu_pid = self._qemu_pid, None
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        wait_for(
            lambda: truth(_is_gone(pid)), what=f"end of QEMU {pid}", deadline_s=_GONE_DEADLINE_S
        )

    def is_alive(self) -> bool:
        """Whether its QEMU runs."""
        return self._qemu_pid is not None and not _is_gone(self._qemu_pid)

    @property
    def has_exited_unexpectedly(self) -> bool:
        """Whether its QEMU was gone before the suite ended it."""
        return self._was_gone or (self._qemu_pid is not None and _is_gone(self._qemu_pid))

    def require_host(self) -> None:
        """Raise `HarnessError` when the host ended its QEMU: neither the suite, nor its own kernel."""
        if self.has_exited_unexpectedly and KERNEL_DEATH.search(self.console()) is None:
            raise HarnessError(f"the host ended the QEMU of {self.name}", hint="read dmesg")

    def raise_if_dead(self) -> None:
        """Raise `GuestDied`, with the end of the console, when QEMU or the guest's kernel died."""
        console = self.console()
        crash = KERNEL_DEATH.search(console)
        if self.is_alive() and crash is None:
            return
        how = "its QEMU is gone" if crash is None else "its kernel crashed"
        words = end_of_console(console, lines=_LINES)
        raise GuestDied(
            "\n".join((f"{self.name} stopped by itself: {how}", "its console says:", *words)),
            machine=self,
            kernel_crashed=crash is not None,
        )

    def console(self) -> str:
        """The output of its kernel and its programs so far; empty before the first line."""
        try:
            return self.spec.console_log.read_text(errors="replace")
        except OSError:
            return ""

    def run(self, *argv: str, deadline_s: float) -> Completed:
        """Run a command in the guest; the caller checks its exit code."""
        return self.agent.run(argv, deadline_s=deadline_s)

    def run_verbose(self, *argv: str, deadline_s: float) -> Completed:
        """Run a command in the guest that may print a line for each finding."""
        return self.agent.run_verbose(argv, deadline_s=deadline_s)

    def must(self, *argv: str, deadline_s: float) -> Completed:
        """Run a command in the guest that has to succeed, else raise `HarnessError`."""
        completed = self.run(*argv, deadline_s=deadline_s)
        self.require_success(completed, deadline_s=deadline_s)
        return completed

    def require_success(self, completed: Completed, *, deadline_s: float) -> None:
        """Raise `HarnessError` for a failed command, with its output."""
        if completed.exit_code != 0:
            how = (
                f"did not end within {deadline_s:g} s"
                if completed.exit_code is None
                else f"returned {completed.exit_code}"
            )
            raise HarnessError(
                f"in {self.name}, {' '.join(completed.argv)[:300]} {how}\n"
                f"{completed.stdout[-2000:]}{completed.stderr[-2000:]}",
                hint=f"read {self.spec.console_log}",
            )


@contextlib.contextmanager
def _refusal_is(
    what: str, *, raises: Callable[[str], HarnessError] = HarnessError
) -> Iterator[None]:
    """Turn libvirt's refusal into an error of the harness, which begins with these words."""
    import libvirt

    try:
        yield
    except libvirt.libvirtError as error:
        raise raises(f"{what}: {error}") from error


def _is_gone(pid: int) -> bool:
    """Whether a process has ended. A zombie counts, which only its parent can remove."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in {"Z", "X"}
