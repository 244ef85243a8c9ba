"""LIO, Linux's SCSI target, through configfs, offering one LUN over iSCSI.

Kernel Documentation/target/, drivers/target/target_core_iblock.c and target_core_file.c: `targetcli`
writes the same files, only slower.
"""

from __future__ import annotations

from torture.choices.transports.protocol import Attachment, DiskSource

IQN = "iqn.2003-01.org.linux-iscsi.nas:vm"
PORT = 3260
_SECTOR_BYTES = 512
_TARGET = "/sys/kernel/config/target"
GROUP = f"{_TARGET}/iscsi/{IQN}/tpgt_1"


def publish_script(
    *, kind: str, control: str, sector_bytes: int = _SECTOR_BYTES, takes_discards: bool = False
) -> str:
    """Shell: backstore of a kind with these `control` words, target, LUN, demo-mode access, portal last.

    A LUN has its device's logical sectors unless another size is set before its export
    (drivers/target/target_core_configfs.c, `block_size_store`).
    """
    store = f"{_TARGET}/core/{kind}_0/vm"
    has_its_own = sector_bytes != _SECTOR_BYTES
    sectors = f"echo {sector_bytes} > {store}/attrib/block_size\n" if has_its_own else ""
    discards = f"echo 1 > {store}/attrib/emulate_tpu\n" if takes_discards else ""
    return f"""set -eu
mkdir -p {store}
echo -n {control} > {store}/control
echo 1 > {store}/enable
{sectors}{discards}echo -n torture-vm > {store}/wwn/vpd_unit_serial
mkdir -p {GROUP}/lun/lun_0
ln -s {store} {GROUP}/lun/lun_0/vm
echo 0 > {GROUP}/attrib/authentication
echo 1 > {GROUP}/attrib/generate_node_acls
echo 0 > {GROUP}/attrib/demo_mode_write_protect
mkdir -p {GROUP}/np/0.0.0.0:{PORT}
echo 1 > {GROUP}/enable
"""


class Lun:
    """The common part of LUNs that the client's QEMU opens, through libiscsi."""

    def wait_until_idle_script(self) -> str:
        """Shell: return once no initiator is logged in, fail after 20 s."""
        return (
            f"for i in $(seq 400); do test -z \"$(tr -d '\\0\\n' < {GROUP}/dynamic_sessions)\" "
            "&& exit 0; sleep 0.05; done; echo 'a killed client is still logged in' >&2; exit 1"
        )

    def attachment(self, *, nas_host: str) -> Attachment:
        """LUN 0 of the target, as the client's second disk."""
        source = DiskSource(
            attributes={"protocol": "iscsi", "name": f"{IQN}/0"},
            within={"host": {"name": nas_host, "port": str(PORT)}},
        )
        return Attachment(source=source, device="/dev/vdb")
