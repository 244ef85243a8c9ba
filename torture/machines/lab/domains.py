"""The description of a virtual machine, and its libvirt domain XML (pure).

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
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree as ET

from torture.choices.transports.protocol import DiskSource
from torture.errors import HarnessError
from torture.facts.evidence.ledger import PORT_NAME
from torture.machines.host.abilities import Accelerator

_QEMU_NS = "http://libvirt.org/schemas/domain/qemu/1.0"
ET.register_namespace("qemu", _QEMU_NS)

_SECTOR_BYTES_DEFAULT = 512
_NOT_EMULATED = ("cx16", "avx", "avx2")
_SERIAL_PORTS = 3
"""The ports of the agent and the ledger, behind port 0, which is kept for a console.

By default there would be 31 ports, and QEMU's main loop would wait for their 64 queues at every
turn.
"""


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


def _add(parent: ET.Element, tag: str, text: str | None = None, **attributes: str) -> ET.Element:
    element = ET.SubElement(parent, tag, attributes)
    element.text = text
    return element


def disk_xml(disk: Disk) -> str:
    """The XML of one disk, also for hot-plugging.

    `cache=none` makes QEMU forward every flush of the guest, and report a write cache to the guest.
    `directsync` is the same with a flush after each write (qemu-system(1), `-drive cache=`). Errors
    are reported to the guest: by default QEMU would pause it on ENOSPC.
    """
    return ET.tostring(_disk_element(disk), encoding="unicode")


def _disk_element(disk: Disk) -> ET.Element:
    element = ET.Element("disk", type=disk.source.kind, device="disk")
    cache = "directsync" if disk.is_written_through else "none"
    attributes = {"cache": cache, "discard": "unmap", "error_policy": "report"}
    _add(element, "driver", name="qemu", type="raw", **attributes)
    element.append(disk.source.element())
    _add(element, "target", dev=disk.target, bus="virtio")
    _add(element, "serial", disk.serial)
    sizes = {"logical": disk.sector_bytes, "physical": disk.physical_sector_bytes}
    if set(sizes.values()) != {_SECTOR_BYTES_DEFAULT}:
        blockio = {f"{kind}_block_size": str(bytes_) for kind, bytes_ in sizes.items()}
        _add(element, "blockio", **blockio)
    return element


def overlay_xml(disk: Disk, overlay: Path) -> str:
    """The XML of a snapshot after which a disk is written to `overlay`, a qcow2 file."""
    snapshot = ET.Element("domainsnapshot")
    disks = _add(snapshot, "disks")
    written = _add(disks, "disk", name=disk.target, snapshot="external", type="file")
    _add(written, "driver", type="qcow2")
    _add(written, "source", file=str(overlay))
    return ET.tostring(snapshot, encoding="unicode")


def _root_disk_element(spec: MachineSpec) -> ET.Element:
    element = ET.Element("disk", type="file", device="disk")
    _add(element, "driver", name="qemu", type="raw", cache="writeback")
    _add(element, "source", file=str(spec.root_image))
    _add(element, "target", dev="vda", bus="virtio")
    _add(element, "readonly")
    _add(element, "serial", "root")
    return element


def _add_channels(devices: ET.Element, spec: MachineSpec) -> None:
    _add(devices, "controller", type="virtio-serial", index="0", ports=str(_SERIAL_PORTS))
    agent = _add(devices, "channel", type="unix")
    _add(agent, "target", type="virtio", name="org.qemu.guest_agent.0")
    if spec.port_socket is not None:
        port = _add(devices, "channel", type="unix")
        _add(port, "source", mode="bind", path=str(spec.port_socket))
        _add(port, "target", type="virtio", name=PORT_NAME)


def _command_line_of(domain: ET.Element) -> ET.Element:
    """QEMU's arguments beyond libvirt's XML; a domain has one such element at most."""
    tag = f"{{{_QEMU_NS}}}commandline"
    found = domain.find(tag)
    return _add(domain, tag) if found is None else found


def _add_interface(domain: ET.Element, devices: ET.Element, spec: MachineSpec) -> None:
    match spec.interface:
        case TapInterface(tap=tap, mac=mac):
            card = _add(devices, "interface", type="ethernet")
            _add(card, "mac", address=mac)
            _add(card, "target", dev=tap, managed="no")
            _add(card, "model", type="virtio")
            # vhost-net needs privileges, and a saved state must not depend on them
            _add(card, "driver", name="qemu")
        case UserModeInterface(mac=mac, guest_address=address, forwarded_ports=ports):
            forwards = "".join(f",hostfwd=tcp:127.0.0.1:{port}-{address}:{port}" for port in ports)
            prefix = address.rsplit(".", 1)[0]
            # by default the stack itself would take .2, which is the guest's
            network = f"net={prefix}.0/24,host={prefix}.1"
            command_line = _command_line_of(domain)
            # libvirt 9.0 has no XML for a forwarded port of the user-mode stack
            for argument in (
                "-netdev", f"user,id=lan,{network},restrict=on{forwards}",
                "-device", f"virtio-net-pci,netdev=lan,mac={mac},addr=0x1e",
            ):  # fmt: skip
                _add(command_line, f"{{{_QEMU_NS}}}arg", value=argument)
        case None:
            pass


def _processor_element(accelerator: Accelerator) -> ET.Element:
    """All features of the emulated processor, but for cmpxchg16b and AVX under emulation.

    QEMU 2.5 to 7.2 confuse the flags around cmpxchg16b with outdated ones, and can leave the low
    half of a pointer in EFLAGS (docs/notes.md, "cmpxchg16b"). The guest's kernel then dies of a
    double fault: in 1 of 82 trials, and 6 times in 25 min of a load by hand. It never died in 20
    min without the instruction. The kernel and its C library work without it. It is left out with a
    sound QEMU, too, so that the guests are the same on every host.

    QEMU emulates vectors word by word. Checksums and copies that can only choose SSE are no slower.
    They also need fewer variants to be translated, or measured against each other. A NAS needed a
    tenth less processor time until its pool was back.
    """
    if accelerator is Accelerator.KVM:
        return ET.Element("cpu", mode="host-passthrough")
    processor = ET.Element("cpu", mode="maximum")
    for name in _NOT_EMULATED:
        _add(processor, "feature", policy="disable", name=name)
    return processor


def processor_in_words(accelerator: Accelerator) -> str:
    """The guests' processor as libvirt receives it, e.g. `maximum, without cx16, without avx`."""
    processor = _processor_element(accelerator)
    without = [str(feature.get("name")) for feature in processor.findall("feature")]
    return ", ".join([str(processor.get("mode")), *(f"without {name}" for name in without)])


def _read_processor_by_feature_words(domain: ET.Element) -> None:
    """Make libvirt read the guest's processor by feature words, not by a query for each property.

    By default it sends QEMU some 500 queries at every start. QEMU reads them byte by byte, which
    takes 0.3 s of a processor. libvirt 9.0 reads by property only where QEMU has this capability
    (`qemuProcessFetchGuestCPU` in src/qemu/qemu_process.c). docs/drvqemu.rst has
    `qemu:capabilities`.
    """
    capabilities = _add(domain, f"{{{_QEMU_NS}}}capabilities")
    _add(capabilities, f"{{{_QEMU_NS}}}del", capability="cpu-unavailable-features")


def domain_xml(spec: MachineSpec) -> str:
    """The domain of a machine; the same name always has the same UUID, as saved states need.

    A guest that panics or reboots is destroyed rather than restarted, so that the suite detects it.
    """
    domain = ET.Element("domain", type="kvm" if spec.accelerator is Accelerator.KVM else "qemu")
    _add(domain, "name", spec.name)
    identity = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{spec.name}.torture.invalid"))
    _add(domain, "uuid", identity)
    # by default libvirt draws a new one at every resume, and the guest then reseeds its random
    # numbers
    _add(domain, "genid", identity)
    _add(domain, "memory", str(spec.memory_mib), unit="MiB")
    _add(domain, "vcpu", str(spec.processors))
    operating_system = _add(domain, "os")
    _add(operating_system, "type", "hvm", arch="x86_64", machine="pc")
    _add(operating_system, "kernel", str(spec.kernel))
    _add(operating_system, "initrd", str(spec.initrd))
    _add(operating_system, "cmdline", spec.command_line)
    features = _add(domain, "features")
    _add(features, "acpi")
    domain.append(_processor_element(spec.accelerator))
    _read_processor_by_feature_words(domain)
    _add(domain, "on_poweroff", "destroy")
    _add(domain, "on_reboot", "destroy")
    _add(domain, "on_crash", "destroy")
    devices = _add(domain, "devices")
    devices.append(_root_disk_element(spec))
    for disk in spec.disks:
        devices.append(_disk_element(disk))
    _add(devices, "controller", type="usb", model="none")
    serial = _add(devices, "serial", type="file")
    _add(serial, "source", path=str(spec.console_log))
    _add(serial, "target", port="0")
    _add_channels(devices, spec)
    _add_interface(domain, devices, spec)
    if spec.preload is not None:
        environment = f"{{{_QEMU_NS}}}env"
        _add(_command_line_of(domain), environment, name="LD_PRELOAD", value=str(spec.preload))
    random = _add(devices, "rng", model="virtio")
    _add(random, "backend", "/dev/urandom", model="random")
    _add(devices, "memballoon", model="none")
    return ET.tostring(domain, encoding="unicode")


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
