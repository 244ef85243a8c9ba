"""LIO: an iblock backstore on the zvol, one target, any initiator.

Through configfs (kernel Documentation/target/, drivers/target/target_core_iblock.c): `targetcli`
writes the same files, only slower. LIO mirrors the zvol's own write cache, so the LUN is write-back.
"""

from __future__ import annotations

from torture.lab.domains import IscsiSource
from torture.lab.network import ISCSI_PORT
from torture.nas.pool import ZVOL_DEVICE

IQN = "iqn.2003-01.org.linux-iscsi.nas:vm"
_TARGET = "/sys/kernel/config/target"


class IscsiExport:
    """One LUN over iSCSI."""

    def publish_script(self) -> str:
        """Shell: backstore, target, LUN, demo-mode access, and the portal last."""
        store = f"{_TARGET}/core/iblock_0/vm"
        group = f"{_TARGET}/iscsi/{IQN}/tpgt_1"
        return f"""set -eu
mkdir -p {store}
echo -n udev_path=$(readlink -f {ZVOL_DEVICE}) > {store}/control
echo 1 > {store}/enable
echo -n torture-vm > {store}/wwn/vpd_unit_serial
mkdir -p {group}/lun/lun_0
ln -s {store} {group}/lun/lun_0/vm
echo 0 > {group}/attrib/authentication
echo 1 > {group}/attrib/generate_node_acls
echo 0 > {group}/attrib/demo_mode_write_protect
mkdir -p {group}/np/0.0.0.0:{ISCSI_PORT}
echo 1 > {group}/enable
"""

    def wait_until_idle_script(self) -> str:
        """Shell: return once no initiator is logged in, fail after 20 s."""
        sessions = f"{_TARGET}/iscsi/{IQN}/tpgt_1/dynamic_sessions"
        return (
            f"for i in $(seq 400); do test -z \"$(tr -d '\\0\\n' < {sessions})\" && exit 0; "
            "sleep 0.05; done; echo 'a killed client is still logged in' >&2; exit 1"
        )

    def source(self, *, nas_host: str) -> IscsiSource:
        """LUN 0 of the target."""
        return IscsiSource(host=nas_host, port=ISCSI_PORT, iqn=IQN)
