"""The libvirt XML of a machine, and a network that has no link to slow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from torture.choices.transports.iscsi import Iscsi
from torture.choices.transports.protocol import DiskSource
from torture.errors import HarnessError
from torture.facts.evidence.ledger import PORT_NAME
from torture.machines.host.abilities import Accelerator
from torture.machines.lab.domains import (
    Disk,
    MachineSpec,
    TapInterface,
    UserModeInterface,
    disk_xml,
    domain_xml,
    nbd_source,
    processor_in_words,
    with_console,
)
from torture.machines.lab.network.networks import UserModeNetwork
from torture.machines.lab.network.wire import Pace

QEMU = "{http://libvirt.org/schemas/domain/qemu/1.0}"
NBD = Disk(target="vdb", serial="tank0", source=nbd_source(Path("/s/shelf.sock"), export="tank0"))
LUN = Iscsi().attachment(nas_host="10.77.0.2").source
assert LUN is not None
ISCSI = Disk(target="vdc", serial="vm", source=LUN)
RAW_SOURCE = DiskSource(kind="file", attributes={"file": "/s/raw.img"})
RAW = Disk(target="vdd", serial="raw0", source=RAW_SOURCE)
SPEC = MachineSpec(
    name="nas",
    kernel=Path("/i/vmlinuz"),
    initrd=Path("/i/initrd"),
    root_image=Path("/i/root.sqfs"),
    command_line='console=ttyS0 panic=-1 name="a<b&c"',
    memory_mib=768,
    accelerator=Accelerator.TCG,
    console_log=Path("/t/console.log"),
    disks=(NBD, ISCSI, RAW),
)
TAP = TapInterface(tap="nas0", mac="52:54:00:77:00:02")
USER_MODE = UserModeInterface(
    mac="52:54:00:77:00:02", guest_address="10.77.0.2", forwarded_ports=(3260, 2049)
)


def parsed(spec: MachineSpec) -> ET.Element:
    return ET.fromstring(domain_xml(spec))


def one(element: ET.Element, path: str) -> ET.Element:
    (found,) = element.findall(path)
    return found


def disk_at(domain: ET.Element, target: str) -> ET.Element:
    (found,) = (
        disk for disk in domain.findall("devices/disk") if one(disk, "target").get("dev") == target
    )
    return found


def test_the_same_spec_has_the_same_xml() -> None:
    assert domain_xml(SPEC) == domain_xml(replace(SPEC))


def test_a_name_keeps_its_identity_when_all_else_changes() -> None:
    """A saved state is only resumed into a domain of the same UUID."""
    changed = replace(SPEC, memory_mib=1024, disks=(), console_log=Path("/other"))
    assert parsed(SPEC).findtext("uuid") == parsed(changed).findtext("uuid")
    assert parsed(SPEC).findtext("uuid") != parsed(replace(SPEC, name="client")).findtext("uuid")


@pytest.mark.parametrize("target", ["vdb", "vdc", "vdd"])
def test_a_disk_passes_every_flush_on(target: str) -> None:
    """With `none` QEMU tells the guest of a write cache, so it flushes; `unsafe` would drop them."""
    driver = one(disk_at(parsed(SPEC), target), "driver")
    assert driver.get("cache") == "none"
    assert driver.get("type") == "raw"


def test_an_nbd_disk_is_an_export_on_a_unix_socket() -> None:
    source = one(disk_at(parsed(SPEC), "vdb"), "source")
    assert source.attrib == {"protocol": "nbd", "name": "tank0"}
    assert one(source, "host").attrib == {"transport": "unix", "socket": "/s/shelf.sock"}


def test_an_iscsi_disk_is_a_lun_of_a_target() -> None:
    source = one(disk_at(parsed(SPEC), "vdc"), "source")
    assert source.attrib == {"protocol": "iscsi", "name": "iqn.2003-01.org.linux-iscsi.nas:vm/0"}
    assert one(source, "host").attrib == {"name": "10.77.0.2", "port": "3260"}


def test_a_file_disk_is_that_file() -> None:
    disk = disk_at(parsed(SPEC), "vdd")
    assert disk.get("type") == "file"
    assert one(disk, "source").attrib == {"file": "/s/raw.img"}


@pytest.mark.parametrize("disk", [NBD, ISCSI, RAW], ids=["nbd", "iscsi", "file"])
def test_a_disk_is_the_same_plugged_in_and_from_the_start(disk: Disk) -> None:
    hot = ET.canonicalize(disk_xml(disk))
    cold = ET.canonicalize(ET.tostring(disk_at(parsed(SPEC), disk.target), encoding="unicode"))
    assert hot == cold


def test_serials_are_kept_and_targets_unique() -> None:
    disks = parsed(SPEC).findall("devices/disk")
    assert [disk.findtext("serial") for disk in disks] == ["root", "tank0", "vm", "raw0"]
    assert len({one(disk, "target").get("dev") for disk in disks}) == len(disks)


def test_the_root_image_cannot_be_written() -> None:
    root = disk_at(parsed(SPEC), "vda")
    assert root.find("readonly") is not None
    assert one(root, "source").get("file") == "/i/root.sqfs"


@pytest.mark.parametrize("event", ["on_poweroff", "on_reboot", "on_crash"])
def test_a_guest_that_ends_is_never_restarted(event: str) -> None:
    """A second life without its cut being noticed would be taken for the first."""
    assert parsed(SPEC).findtext(event) == "destroy"


@pytest.mark.parametrize(
    ("accelerator", "kind", "cpu"),
    [(Accelerator.KVM, "kvm", "host-passthrough"), (Accelerator.TCG, "qemu", "maximum")],
)
def test_the_accelerator_decides_kind_and_processor(
    accelerator: Accelerator, kind: str, cpu: str
) -> None:
    domain = parsed(replace(SPEC, accelerator=accelerator))
    assert domain.get("type") == kind
    assert one(domain, "cpu").get("mode") == cpu


def test_an_emulated_processor_has_neither_cmpxchg16b_nor_avx() -> None:
    emulated, real = (
        parsed(replace(SPEC, accelerator=accelerator))
        for accelerator in (Accelerator.TCG, Accelerator.KVM)
    )
    features = {f.get("name"): f.get("policy") for f in emulated.findall("cpu/feature")}
    assert features == {"cx16": "disable", "avx": "disable", "avx2": "disable"}
    words = "maximum, without cx16, without avx, without avx2"
    assert processor_in_words(Accelerator.TCG) == words
    assert processor_in_words(Accelerator.KVM) == "host-passthrough"
    assert real.find("cpu/feature") is None


@pytest.mark.parametrize("processors", [1, 2])
def test_a_machine_has_as_many_processors_as_it_says(processors: int) -> None:
    assert parsed(replace(SPEC, processors=processors)).findtext("vcpu") == str(processors)


def test_a_saved_machine_finds_its_console_elsewhere() -> None:
    saved = domain_xml(SPEC)
    moved = ET.fromstring(with_console(saved, Path("/else/where.log")))
    assert one(moved, "devices/serial/source").get("path") == "/else/where.log"
    one(moved, "devices/serial/source").set("path", str(SPEC.console_log))
    assert ET.tostring(moved) == ET.tostring(ET.fromstring(saved))


def test_the_kernel_is_started_directly_with_its_words_intact() -> None:
    system = one(parsed(SPEC), "os")
    assert system.findtext("kernel") == "/i/vmlinuz"
    assert system.findtext("initrd") == "/i/initrd"
    assert system.findtext("cmdline") == SPEC.command_line


def test_a_client_has_a_ledger_and_a_nas_has_none() -> None:
    def channels(spec: MachineSpec) -> list[str | None]:
        return [
            one(channel, "target").get("name")
            for channel in parsed(spec).findall("devices/channel")
        ]

    with_ledger = replace(SPEC, port_socket=Path("/t/ledger.sock"))
    assert channels(SPEC) == ["org.qemu.guest_agent.0"]
    assert channels(with_ledger) == ["org.qemu.guest_agent.0", PORT_NAME]
    ledger = parsed(with_ledger).findall("devices/channel")[1]
    assert one(ledger, "source").attrib == {"mode": "bind", "path": "/t/ledger.sock"}


def test_each_channel_has_a_port_and_no_more_are_waited_for() -> None:
    domain = parsed(replace(SPEC, port_socket=Path("/t/ledger.sock")))
    (controller,) = (c for c in domain.findall("devices/controller") if c.get("index") == "0")
    kept_for_a_console = 1
    ports = kept_for_a_console + len(domain.findall("devices/channel"))
    assert controller.attrib == {"type": "virtio-serial", "index": "0", "ports": str(ports)}


def test_libvirt_asks_for_the_processor_by_words_and_not_by_each_property() -> None:
    dropped = one(parsed(SPEC), f"{QEMU}capabilities/{QEMU}del")
    assert dropped.attrib == {"capability": "cpu-unavailable-features"}


def test_without_an_interface_there_is_no_network() -> None:
    domain = parsed(SPEC)
    assert domain.find("devices/interface") is None
    assert domain.find(f"{QEMU}commandline") is None


def test_a_tap_is_taken_as_it_is() -> None:
    card = one(parsed(replace(SPEC, interface=TAP)), "devices/interface")
    assert card.get("type") == "ethernet"
    assert one(card, "target").attrib == {"dev": "nas0", "managed": "no"}
    assert one(card, "mac").get("address") == TAP.mac


def test_user_mode_forwards_every_port_and_lets_nothing_out() -> None:
    domain = parsed(replace(SPEC, interface=USER_MODE))
    assert domain.find("devices/interface") is None
    words = [element.get("value") or "" for element in one(domain, f"{QEMU}commandline")]
    assert words[0::2] == ["-netdev", "-device"]
    backend, card = words[1::2]
    assert "hostfwd=tcp:127.0.0.1:3260-10.77.0.2:3260" in backend
    assert "hostfwd=tcp:127.0.0.1:2049-10.77.0.2:2049" in backend
    assert "restrict=on" in backend
    assert "net=10.77.0.0/24" in backend
    assert f"mac={USER_MODE.mac}" in card


def test_a_preloaded_library_stands_beside_the_forwarded_ports() -> None:
    preload = Path("/c/libnfs_stable.so")
    for interface in (None, TAP, USER_MODE):
        domain = parsed(replace(SPEC, preload=preload, interface=interface))
        command_line = one(domain, f"{QEMU}commandline")
        assert one(command_line, f"{QEMU}env").attrib == {
            "name": "LD_PRELOAD",
            "value": str(preload),
        }
        assert len(command_line.findall(f"{QEMU}arg")) == (4 if interface is USER_MODE else 0)
    assert parsed(SPEC).find(f"{QEMU}commandline") is None


def test_a_disk_that_is_written_through_is_flushed_by_qemu() -> None:
    for is_through, cache in ((False, "none"), (True, "directsync")):
        disk = ET.fromstring(disk_xml(replace(RAW, is_written_through=is_through)))
        assert one(disk, "driver").get("cache") == cache


# The user-mode network has no wire between two machines.


def test_its_link_cannot_be_slowed() -> None:
    with pytest.raises(HarnessError, match="no wire to slow to 50000000 bit/s") as refused:
        UserModeNetwork().slowed_link(Pace(rate_bits_per_s=50_000_000, one_way_us=2000))
    assert "--network bridge" in str(refused.value.hint)
