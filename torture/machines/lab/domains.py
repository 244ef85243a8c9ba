"""The description of a virtual machine, and its libvirt domain XML: `domain.xml.j2`.

One libvirt connection of this process, by default to an embedded driver that needs no daemon.

Facts behind the configuration (libvirt 9.0, docs/drvqemu.rst): the embedded driver takes its
settings from `<root>/etc/qemu.conf`. As root, namespace root included, it would otherwise hand
consoles to `virtlogd` and change the owner of every file. One root serves one process, and socket
paths below it must stay under 108 characters.
"""

from __future__ import annotations

import os
import threading
import uuid
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree as ET

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from torture.choices.transports.protocol import DiskSource
from torture.errors import HarnessError
from torture.facts.evidence.ledger import PORT_NAME
from torture.machines.host.abilities import Accelerator

# by default ElementTree would write the prefix `ns0` where libvirt writes `qemu`
ET.register_namespace("qemu", "http://libvirt.org/schemas/domain/qemu/1.0")


def nbd_source(socket: Path, *, export: str) -> DiskSource:
    """An export of an NBD server on a unix socket."""
    return DiskSource(
        attributes={"protocol": "nbd", "name": export},
        within={"host": {"transport": "unix", "socket": str(socket)}},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk:
    """A writable disk of a guest: its place (`vdb`), its serial, and the source of its bytes."""

    target: str
    serial: str
    source: DiskSource
    sector_bytes: int = 512
    physical_sector_bytes: int = 512
    """At least the logical sector."""
    is_written_through: bool = False
    """Whether QEMU flushes after each write, and reports no write cache to the guest."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TapInterface:
    """A network card on a tap device that exists already."""

    tap: str
    mac: str


@dataclass(frozen=True, kw_only=True, slots=True)
class UserModeInterface:
    """A network card behind QEMU's user-mode stack, with ports of the host forwarded to the guest."""

    mac: str
    guest_address: str
    forwarded_ports: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineSpec:
    """The definition of a virtual machine, before anything is hot-plugged."""

    name: str
    kernel: Path
    initrd: Path
    root_image: Path
    command_line: str
    memory_mib: int
    accelerator: Accelerator
    console_log: Path
    processors: int = 1
    port_socket: Path | None = None
    """The host's end of its port for lines: a client's ledger, or the dialogue of a walk's NAS."""
    interface: TapInterface | UserModeInterface | None = None
    preload: Path | None = None
    """A library that its QEMU loads before all others."""
    disks: tuple[Disk, ...] = field(default=())


@cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _rendered(template: str, **values: object) -> str:
    return _templates().get_template(template).render(values)


def disk_xml(disk: Disk) -> str:
    """The XML of one disk, also for hot-plugging."""
    return _rendered("disk.xml.j2", disk=disk)


def overlay_xml(disk: Disk, overlay: Path) -> str:
    """The XML of a snapshot after which a disk is written to `overlay`, a qcow2 file."""
    return _rendered("overlay.xml.j2", disk=disk, overlay=overlay)


def _without(accelerator: Accelerator) -> tuple[str, ...]:
    """The features that the guests' processor lacks: under emulation cmpxchg16b and AVX.

    QEMU 2.5 to 7.2 confuse the flags around cmpxchg16b with outdated ones, and can leave the low
    half of a pointer in EFLAGS (docs/notes.md, "cmpxchg16b"). The guest's kernel then dies of a
    double fault: in 1 of 82 trials, and 6 times in 25 min of a load by hand. It never died in 20
    min without the instruction. The kernel and its C library work without it. It is left out with a
    sound QEMU, too, so that the guests are the same on every host.

    QEMU emulates vectors word by word. Checksums and copies that can only choose SSE are no slower.
    They also need fewer variants to be translated, or measured against each other. A NAS needed a
    tenth less processor time until its pool was back.
    """
    return () if accelerator is Accelerator.KVM else ("cx16", "avx", "avx2")


def _mode(accelerator: Accelerator) -> str:
    return "host-passthrough" if accelerator is Accelerator.KVM else "maximum"


def processor_in_words(accelerator: Accelerator) -> str:
    """The guests' processor as libvirt receives it, e.g. `maximum, without cx16, without avx`."""
    return ", ".join([_mode(accelerator), *(f"without {name}" for name in _without(accelerator))])


def _network_arguments(card: UserModeInterface) -> tuple[str, ...]:
    """QEMU's arguments: libvirt 9.0 has no XML for a forwarded port of the user-mode stack."""
    address, ports = card.guest_address, card.forwarded_ports
    forwards = "".join(f",hostfwd=tcp:127.0.0.1:{port}-{address}:{port}" for port in ports)
    prefix = address.rsplit(".", 1)[0]
    # by default the stack itself would take .2, which is the guest's
    network = f"net={prefix}.0/24,host={prefix}.1"
    return (
        "-netdev", f"user,id=lan,{network},restrict=on{forwards}",
        "-device", f"virtio-net-pci,netdev=lan,mac={card.mac},addr=0x1e",
    )  # fmt: skip


def domain_xml(spec: MachineSpec) -> str:
    """The domain of a machine; the same name always has the same UUID, as saved states need."""
    card, accelerator = spec.interface, spec.accelerator
    return _rendered(
        "domain.xml.j2",
        spec=spec,
        identity=uuid.uuid5(uuid.NAMESPACE_DNS, f"{spec.name}.torture.invalid"),
        is_kvm=accelerator is Accelerator.KVM,
        mode=_mode(accelerator),
        without=_without(accelerator),
        port_name=PORT_NAME,
        tap=card if isinstance(card, TapInterface) else None,
        arguments=_network_arguments(card) if isinstance(card, UserModeInterface) else (),
    )


def with_console(xml: str, console_log: Path) -> str:
    """A domain's XML with its console in another file."""
    domain = ET.fromstring(xml)
    for kind in ("serial", "console"):
        for source in domain.iterfind(f"devices/{kind}/source"):
            source.set("path", str(console_log))
    return ET.tostring(domain, encoding="unicode")


def disk_places(xml: str) -> frozenset[str]:
    """The places of a domain's disks: `vda` and so on."""
    targets = ET.fromstring(xml).findall("devices/disk/target")
    return frozenset(target.get("dev", "") for target in targets)


_QEMU_CONF = """\
stdio_handler = "file"
security_driver = "none"
namespaces = []
cgroup_controllers = []
dynamic_ownership = 0
remember_owner = 0
"""

_QEMU_CONF_OF_ROOT = _QEMU_CONF + 'user = "+0"\ngroup = "+0"\n'

_loop_lock = threading.Lock()
_loop_started = False


def _start_event_loop() -> None:
    """Start libvirt's event loop once in this process: the embedded driver refuses to work without."""
    import libvirt

    global _loop_started
    with _loop_lock:
        if _loop_started:
            return
        libvirt.virEventRegisterDefaultImpl()
        libvirt.registerErrorHandler(lambda _context, _error: None, None)

        def run() -> None:
            while True:
                libvirt.virEventRunDefaultImpl()

        threading.Thread(target=run, name="libvirt-events", daemon=True).start()
        _loop_started = True


def embedded_root(uri: str) -> Path:
    """The root of an embedded driver's URI, `qemu:///embed?root=DIR`.

    Raises `HarnessError` for any other URI. A daemon's machines would live outside the worker's
    sandbox: they could not reach its network, and would not end with it.
    """
    parts = urlsplit(uri)
    root = parse_qs(parts.query).get("root")
    if (parts.scheme, parts.path) != ("qemu", "/embed") or not root:
        raise HarnessError(
            f"{uri} is not an embedded driver: a daemon's machines cannot live in a worker's sandbox",
            hint="--libvirt-uri 'qemu:///embed?root=DIR' with --jobs 1, or leave it out",
        )
    return Path(root[0])


def connect(root: Path) -> Any:
    """A `libvirt.virConnect` to an embedded driver that keeps everything under `root`.

    Raises `HarnessError` when libvirt or its QEMU driver is missing or refuses.
    """
    try:
        import libvirt
    except ImportError as error:
        raise HarnessError(
            f"the Python binding of libvirt is missing: {error}", hint="tools/run --setup-only"
        ) from error
    etc = root / "etc"
    etc.mkdir(parents=True, exist_ok=True)
    (etc / "qemu.conf").write_text(_QEMU_CONF if os.geteuid() else _QEMU_CONF_OF_ROOT)
    uri = f"qemu:///embed?root={root}"
    _start_event_loop()
    try:
        connection = libvirt.open(uri)
        connection.getVersion()  # looks for the emulator
    except libvirt.libvirtError as error:
        raise HarnessError(
            f"libvirt does not work with {uri}: {error}", hint="tools/doctor says what is missing"
        ) from error
    return connection
