"""iSCSI: tgt, a target in user space, on a zvol's node; the client's QEMU is the initiator.

A write is a pwrite to the node, and a flush its fdatasync (tgt usr/bs_rdwr.c, `bs_rdwr_request`). So
theory promises what it does with LIO's fileio on a node: completed writes lie in the NAS's page cache,
which ZFS does not see. The caching page says write-back (usr/sbc.c, `sbc_lu_init`). tgtadm(8).
"""

from __future__ import annotations

from dataclasses import replace

from torture.choices.transports.iscsi import IQN, ISCSI_PORT, FileioOnZvol
from torture.choices.transports.protocol import Attachment, DiskSource, OfZvol, Transport
from torture.choices.volumes import VolumeOptions, zvol
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep

_LUN = 1
"""LUN 0 is tgt's own controller."""
_ADMIN = "tgtadm --lld iscsi"


class Tgt(FileioOnZvol):
    """One LUN on a zvol's node, any initiator."""

    traits = replace(
        FileioOnZvol.traits, nas_image="nas_tgt", target_scripts=None, release_script=""
    )

    def publish_script(self, options: VolumeOptions) -> str:
        """The daemon with a portal that no client reaches, the LUN, and the clients' portal last."""
        return f"""set -eu
tgtd --iscsi portal=127.0.0.1:{ISCSI_PORT + 1}
for i in $(seq 200); do {_ADMIN} --mode sys --op show > /dev/null 2>&1 && break; sleep 0.05; done
{_ADMIN} --mode target --op new --tid 1 --targetname {IQN}
{_ADMIN} --mode logicalunit --op new --tid 1 --lun {_LUN} --backing-store $(readlink -f {zvol.DEVICE})
{_ADMIN} --mode target --op bind --tid 1 --initiator-address ALL
{_ADMIN} --mode portal --op new --param portal=0.0.0.0:{ISCSI_PORT}
"""

    def wait_until_idle_script(self) -> str:
        """Return once no request is unread."""
        return OfZvol.wait_until_idle_script(self)

    def attachment(self, *, nas_host: str) -> Attachment:
        """The LUN, as the client's second disk."""
        source = DiskSource(
            attributes={"protocol": "iscsi", "name": f"{IQN}/{_LUN}"},
            within={"host": {"name": nas_host, "port": str(ISCSI_PORT)}},
        )
        return Attachment(source=source, device="/dev/vdb")


CHOICE: Choice[Transport] = Choice(
    name="tgt",
    value=Tgt(),
    words="iSCSI (tgt, on a zvol)",
    explained="tgt's `rdwr` store on a zvol's node: the page cache stands before ZFS",
    joins=frozenset({Sweep.EVERY_TRANSPORT}),
    place=23,
)
