"""iSCSI: LIO's iblock on a zvol; the client's QEMU is the initiator, through libiscsi.

Through configfs (kernel Documentation/target/, drivers/target/target_core_iblock.c): `targetcli`
writes the same files, only slower. LIO mirrors the zvol's own write cache, so the LUN is write-back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from torture.axes.axis import Choice
from torture.axes.fate import Fate
from torture.axes.sweeps import EVERY_SWEEP
from torture.axes.sync import Sync
from torture.shell import write_cache_of
from torture.transports.protocol import Attachment, Transport
from torture.verdict.guarantee import Guarantee
from torture.volumes import VolumeOptions, zvol

IQN = "iqn.2003-01.org.linux-iscsi.nas:vm"
PORT = 3260
_TARGET = "/sys/kernel/config/target"
_GROUP = f"{_TARGET}/iscsi/{IQN}/tpgt_1"
_STORE = f"{_TARGET}/core/iblock_0/vm"


@dataclass(frozen=True, kw_only=True, slots=True)
class IscsiSource:
    """A LUN that QEMU itself opens, through libiscsi."""

    host: str
    port: int
    iqn: str
    lun: int = 0
    kind: str = "network"

    def element(self) -> ET.Element:
        """Its `source` element."""
        source = ET.Element("source", protocol="iscsi", name=f"{self.iqn}/{self.lun}")
        ET.SubElement(source, "host", name=self.host, port=str(self.port))
        return source


class Iscsi:
    """One LUN, any initiator."""

    ports = (PORT,)

    def make_volume_script(self, options: VolumeOptions) -> str:
        """A zvol."""
        return zvol.make_script(options)

    def wait_for_volume_script(self) -> str:
        """Its device."""
        return zvol.wait_script()

    def publish_script(self, options: VolumeOptions) -> str:
        """Backstore, target, LUN, demo-mode access, and the portal last."""
        return f"""set -eu
mkdir -p {_STORE}
echo -n udev_path=$(readlink -f {zvol.DEVICE}) > {_STORE}/control
echo 1 > {_STORE}/enable
echo -n torture-vm > {_STORE}/wwn/vpd_unit_serial
mkdir -p {_GROUP}/lun/lun_0
ln -s {_STORE} {_GROUP}/lun/lun_0/vm
echo 0 > {_GROUP}/attrib/authentication
echo 1 > {_GROUP}/attrib/generate_node_acls
echo 0 > {_GROUP}/attrib/demo_mode_write_protect
mkdir -p {_GROUP}/np/0.0.0.0:{PORT}
echo 1 > {_GROUP}/enable
"""

    def wait_until_idle_script(self) -> str:
        """Return once no initiator is logged in, fail after 20 s."""
        return (
            f"for i in $(seq 400); do test -z \"$(tr -d '\\0\\n' < {_GROUP}/dynamic_sessions)\" "
            "&& exit 0; sleep 0.05; done; echo 'a killed client is still logged in' >&2; exit 1"
        )

    def cache_scripts(self) -> Mapping[str, str]:
        """The zvol's, which LIO mirrors."""
        return {"zvol": write_cache_of(zvol.DEVICE)}

    def attachment(self, *, nas_host: str) -> Attachment:
        """LUN 0 of the target, as the client's second disk."""
        return Attachment(source=IscsiSource(host=nas_host, port=PORT, iqn=IQN), device="/dev/vdb")

    def guarantee(self, *, sync: Sync, fate: Fate) -> Guarantee:
        """A write-back LUN: what was completed and not flushed dies with the NAS's memory.

        OpenZFS `module/os/linux/zfs/zvol_os.c`: a zvol's write is synchronous only with FUA, a flush
        or sync=always. A client that lives flushes after the NAS's return, and never learns of what
        is gone. `module/zfs/zil.c`: with sync=disabled `zil_commit` returns at once.
        """
        match sync, fate:
            case Sync.ALWAYS, _:
                return Guarantee.SAFE
            case Sync.STANDARD, Fate.BOTH_DIE:
                return Guarantee.SAFE
            case Sync.DISABLED, Fate.BOTH_DIE:
                return Guarantee.ROLLS_BACK
            case _:
                return Guarantee.LOSES


CHOICE: Choice[Transport] = Choice(
    name="iscsi",
    value=Iscsi(),
    words="iSCSI",
    explained="LIO iblock on a zvol; the client's QEMU is the initiator",
    joins=EVERY_SWEEP,
    place=0,
)
