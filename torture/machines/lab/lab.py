"""All machinery of a trial in one place: it starts NASes and clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.linux.kernels import DEFAULT_KERNELS, Kernels
from torture.facts.zfs.versions import DEFAULT, zfs_version
from torture.machines.host.abilities import (
    Accelerator,
    NetworkKind,
    choose_accelerator,
    choose_network,
)
from torture.machines.host.native import preload_library
from torture.machines.host.scratch import PRIVATE
from torture.machines.images import IMAGES, GuestImage, find
from torture.machines.lab.domains import Disk, MachineSpec, TapInterface, connect, embedded_root
from torture.machines.lab.machine import Machine
from torture.machines.lab.network import (
    CHECKER_ADDRESS,
    CLIENT_ADDRESS,
    HOST_MAC,
    NAS_ADDRESS,
    NAS_PREFIX_BITS,
    Network,
)
from torture.machines.lab.network.networks import BridgeNetwork, UserModeNetwork
from torture.machines.lab.network.packets import PacketRecorder
from torture.machines.lab.saved_states import PreparedFolders, WarmStates

_BOOT_DEADLINE_S = 240
_RESUME_DEADLINE_S = 60
_CHECKER_TRIALS_MAX = 20
"""After this number a new checking client comes, so that nothing adds up in its kernel."""
_CLEAR_DEADLINE_S = 20
_COMMON_COMMAND_LINE = "console=ttyS0 panic=-1 quiet no_timer_check"
"""On a busy host an emulated timer may tick too late for the kernel, which then refuses to boot."""
_EMULATED_COMMAND_LINE = "norandmaps init_on_alloc=0"
"""QEMU keeps translated code by address. A program at a random address is translated at each start,
which made a start take three times as long. Zeroing every page is expensive, too."""

_NAS, _CLIENT, _CHECKER, _FORMER = "nas", "client", "checker", "former"
_NATIVE = Path(__file__).parent / "native"
_NAS_PROCESSORS = {Accelerator.KVM: 2, Accelerator.TCG: 1}
"""With two processors a NAS writes and flushes at once. Emulated ones are threads of the host."""


class Boot(StrEnum):
    """The way a machine gets to its running state."""

    WARM = "warm"
    """Resumed from a saved state, then its disks are plugged in."""
    COLD = "cold"
    """Booted from power-off with its disks in place."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LabSettings:
    """The machinery that a run may choose; None leaves the choice to the host."""

    boot: Boot = Boot.WARM
    accelerator: Accelerator | None = None
    network: NetworkKind | None = None
    libvirt_uri: str | None = None
    zfs: str = DEFAULT
    """The version of ZFS that the NAS runs."""
    linux: Kernels = DEFAULT_KERNELS
    """The kernels of NAS and clients."""
    warm_states: Path
    """Folder of saved machine states."""


class Lab:
    """The machinery of one worker, which must run in a sandbox. `say` receives notes of long steps."""

    def __init__(self, settings: LabSettings, *, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._say = say
        uri = settings.libvirt_uri
        self._root = PRIVATE / "lv" if uri is None else embedded_root(uri)
        self.sockets = PRIVATE / "sockets"
        self.sockets.mkdir()
        # found once, so that a recipe edited meanwhile does not disturb a run
        self.zfs, self.linux = zfs_version(settings.zfs), settings.linux
        self._images = {name: _image(name, settings) for name in IMAGES}
        self.accelerator = choose_accelerator(settings.accelerator).kind
        kind = settings.network or choose_network().kind
        self.network: Network = BridgeNetwork() if kind is NetworkKind.BRIDGE else UserModeNetwork()
        self.network.set_up()
        self._connection = connect(self._root)
        self._warm = WarmStates(
            directory=settings.warm_states, connection=self._connection, libvirt_root=self._root
        )
        self.checkers = Checkers(start=self._start_checker)
        self._of_trial: list[Machine] = []
        """All machines of the present trial, from before their start."""
        self._nas_image, self._client_image = _NAS, _CLIENT

    def boot_from(self, *, nas: str, client: str) -> None:
        """Make all machines from now on of these images, for a trial that begins.

        Raises `HarnessError` when one is not built.
        """
        if client != self._client_image:
            self.checkers.end()
        for image in {nas, client} - self._images.keys():
            self._images[image] = _image(image, self._settings)
        self._nas_image, self._client_image = nas, client
        self._of_trial.clear()
        for used in self._images.values():
            used.mark_used()

    def require_host(self) -> None:
        """Raise `HarnessError` when the host ended a QEMU of this trial, even one that never came up."""
        for machine in self._of_trial:
            machine.require_host()

    def forget_ended(self) -> None:
        """Let machines that have ended say nothing of later evidence: a stage has kept the reason."""
        self._of_trial = [machine for machine in self._of_trial if machine.is_alive()]

    def take_checker(self, *, console_log: Path) -> Machine:
        """The client that checks, without a disk; raises `HarnessError` when it does not answer."""
        machine = self.checkers.take(console_log=console_log)
        self._of_trial.append(machine)
        return machine

    @property
    def images(self) -> dict[str, GuestImage]:
        """The images of which machines are made now."""
        return {_NAS: self._images[self._nas_image], _CLIENT: self._images[self._client_image]}

    @property
    def can_plug_in(self) -> bool:
        """Whether machines get their disks once they run, rather than at boot."""
        return self._settings.boot is Boot.WARM

    @property
    def prepared(self) -> PreparedFolders | None:
        """The folder of machines saved with their disks; None where each machine has to boot."""
        if not self.can_plug_in:
            return None
        return PreparedFolders(self._settings.warm_states.with_name("prepared"))

    @property
    def kernels(self) -> Kernels:
        """The releases of the kernels that both machines boot now."""
        nas, client = (self.images[name].manifest["kernel"] for name in (_NAS, _CLIENT))
        return Kernels(nas=nas, client=client)

    def keys(self, *, preload: str = "") -> tuple[str, ...]:
        """Keys of everything on which a NAS and a client that have reached the host depend.

        The content of the client's preloaded library counts, too: the path of its build contains
        the hash.
        """
        nowhere = Path("console.log")
        return (
            self._warm.key(self._nas_spec(nowhere)),
            self._warm.key(self.client_spec(nowhere, Path("ledger.sock"), preload)),
            HOST_MAC,
        )

    def start_nas(
        self, *, console_log: Path, disks: tuple[Disk, ...], port_socket: Path | None = None
    ) -> Machine:
        """A freshly started NAS, with these disks and no pool; a walk's NAS has a port, too."""
        spec = replace(self._nas_spec(console_log), port_socket=port_socket)
        return self.start(spec, disks)

    def start_former(self, *, console_log: Path, disks: tuple[Disk, ...]) -> Machine:
        """A NAS beside another one, which no machine reaches."""
        spec = replace(self._nas_spec(console_log), name=_FORMER, interface=None)
        words = [word for word in spec.command_line.split() if not word.startswith("torture.ip=")]
        return self.start(replace(spec, command_line=" ".join(words)), disks)

    def resume_nas(self, state: Path, *, console_log: Path) -> Machine:
        """A NAS that continues from its saved state, with the disks of that time."""
        return self.resume(self._nas_spec(console_log), state)

    def networked(self, spec: MachineSpec, *, is_checker: bool, kernel_words: str) -> MachineSpec:
        """A client that reaches the NAS by itself, with these further boot words of its kernel."""
        address = CHECKER_ADDRESS if is_checker else CLIENT_ADDRESS
        words = f"{spec.command_line} torture.ip={address}/{NAS_PREFIX_BITS} {kernel_words}"
        return replace(
            spec,
            name=_CHECKER if is_checker else spec.name,
            command_line=words.rstrip(),
            interface=self.network.client_interface(is_checker=is_checker),
        )

    def record_nas_packets(self, into: Path) -> PacketRecorder:
        """Record the packets of the NAS's network card; raises `HarnessError` where there is no wire."""
        card = self.network.nas_interface()
        if not isinstance(card, TapInterface):
            raise HarnessError("the user-mode network has no wire", hint="--network bridge")
        return PacketRecorder(card.tap, into=into)

    def _nas_spec(self, console_log: Path) -> MachineSpec:
        spec = self._spec(_NAS, self._images[self._nas_image], console_log, memory_mib=768)
        return replace(
            spec,
            command_line=f"{spec.command_line} torture.ip={NAS_ADDRESS}/{NAS_PREFIX_BITS}",
            processors=_NAS_PROCESSORS[self.accelerator],
            interface=self.network.nas_interface(),
        )

    def _spec(
        self, name: str, image: GuestImage, console_log: Path, *, memory_mib: int
    ) -> MachineSpec:
        words = [_COMMON_COMMAND_LINE]
        words += [_EMULATED_COMMAND_LINE] if self.accelerator is Accelerator.TCG else []
        return MachineSpec(
            name=name,
            kernel=image.kernel,
            initrd=image.initrd,
            root_image=image.root,
            command_line=" ".join(words),
            memory_mib=memory_mib,
            accelerator=self.accelerator,
            console_log=console_log,
        )

    def client_spec(self, console_log: Path, ledger_socket: Path, preload: str = "") -> MachineSpec:
        """A client that sends its ledger over the socket.

        `preload`: the source of the library that its QEMU loads first (`Attachment.preload`).
        """
        image = self._images[self._client_image]
        return replace(
            self._spec(_CLIENT, image, console_log, memory_mib=512),
            port_socket=ledger_socket,
            preload=preload_library(_NATIVE / f"{preload}.cpp") if preload else None,
        )

    def _start_checker(self, console_log: Path) -> Machine:
        """A client of another name: a client that survived the cut may still run beside it."""
        spec = self.client_spec(console_log, self.sockets / "checker.sock")
        return self.start(replace(spec, name=_CHECKER), ())

    def start(self, spec: MachineSpec, disks: tuple[Disk, ...]) -> Machine:
        """A freshly started machine, with these disks."""
        if self._settings.boot is Boot.COLD:
            return self.boot(replace(spec, disks=disks), deadline_s=_BOOT_DEADLINE_S)
        with self._machine(spec) as machine:
            state = self._warm.ensure(spec, say=self._say)
            self._warm.resume(machine, state, deadline_s=_RESUME_DEADLINE_S, say=self._say)
            for disk in disks:
                machine.attach(disk)
        return machine

    def boot(self, spec: MachineSpec, *, deadline_s: float) -> Machine:
        """A machine booted from power-off with its disks in place.

        Raises `GuestDied` when its kernel gives up, `DeadlineExceeded` when its agent is silent.
        """
        with self._machine(spec) as machine:
            machine.boot(deadline_s=deadline_s)
        return machine

    def resume(self, spec: MachineSpec, state: Path) -> Machine:
        """A machine that continues from its saved state, with the disks of that time."""
        with self._machine(spec) as machine:
            machine.resume(state, deadline_s=_RESUME_DEADLINE_S, with_its_disks=True)
        return machine

    @contextmanager
    def _machine(self, spec: MachineSpec) -> Iterator[Machine]:
        """A machine to start, which ends if its start fails: no other owner ends it yet.

        The kept client that checks gives up its name: libvirt has one domain of a name.
        """
        if spec.name == _CHECKER:
            self.checkers.end()
        machine = Machine(connection=self._connection, libvirt_root=self._root, spec=spec)
        self._of_trial.append(machine)
        try:
            yield machine
        except BaseException:
            machine.kill()
            raise


def _image(name: str, settings: LabSettings) -> GuestImage:
    image = find(name, zfs=settings.zfs, linux=settings.linux)
    if image is None:
        words = f"--zfs {settings.zfs}{settings.linux.option_of(name)}"
        raise HarnessError(
            f"there is no {name} image with {words}", hint=f"tools/images build {name} {words}"
        )
    return image


class Checkers:
    """The client that checks the crash states: one machine serves many trials while it stays healthy.

    Under emulation a resumed machine translates all its code anew. Its first mount, read and check
    run at a third of the speed of the second ones. So a client whose disk was sound is kept for the
    next trial. It caches nothing of the earlier disk: that disk was unplugged, and the kernel's
    cached blocks went with it. `start` brings up a new one, with its console in that file.
    """

    def __init__(self, *, start: Callable[[Path], Machine]) -> None:
        self._start = start
        self._kept: Machine | None = None
        self._trials = 0

    def take(self, *, console_log: Path) -> Machine:
        """Give a client without a disk to the caller: the kept one if it still answers, or a new one.

        Its kernel log is empty. Words of its boot ("failed") would look like trouble of the check, and
        no client would be kept. Raises `HarnessError` when a new one does not answer.
        """
        machine, self._kept = self._kept, None
        if machine is not None:
            try:
                machine.move_console(console_log)
                return _with_empty_log(machine)
            except HarnessError:
                machine.kill()
        self._trials = 0
        return _with_empty_log(self._start(console_log))

    def keep(self, machine: Machine) -> None:
        """Take back a client whose disks are unplugged and whose trial had no unusual event."""
        self._trials += 1
        if self._trials >= _CHECKER_TRIALS_MAX:
            machine.kill()
        else:
            self._kept = machine

    def end(self) -> None:
        """End the kept client."""
        if self._kept is not None:
            self._kept.kill()
            self._kept = None


def _with_empty_log(machine: Machine) -> Machine:
    """The machine, which ends if it does not answer: it has no other owner yet."""
    try:
        machine.must("dmesg", "--clear", deadline_s=_CLEAR_DEADLINE_S)
    except HarnessError:
        machine.kill()
        raise
    return machine
