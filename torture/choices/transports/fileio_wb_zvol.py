"""LIO's fileio with `write_back=true` on a zvol's node: the NAS's page cache stands before ZFS.

Completed writes lie in the node's page cache (Linux `block/fops.c`), which ZFS does not see, so
sync=always does not help. A flush becomes an fsync of the node, and this a flush of the zvol.
"""

from __future__ import annotations

from torture.choices.transports import _lio
from torture.choices.transports.iscsi import Iscsi
from torture.choices.transports.protocol import CompletedWrite, Traits, Transport
from torture.choices.volumes import SIZE_MIB, VolumeOptions, zvol
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep


class FileioOnZvol(Iscsi):
    """One LUN; the fsync of the node has to become a flush of the zvol."""

    traits = Traits(ports=(_lio.PORT,), completed=CompletedWrite.IN_PAGE_CACHE)

    def publish_script(self, options: VolumeOptions) -> str:
        """A fileio backstore on the node."""
        size = SIZE_MIB * 1024 * 1024
        control = f"fd_dev_name=$(readlink -f {zvol.DEVICE}),fd_dev_size={size},fd_buffered_io=1"
        return _lio.publish_script(kind="fileio", control=control)


CHOICE: Choice[Transport] = Choice(
    name="fileio_wb_zvol",
    value=FileioOnZvol(),
    words="iSCSI (fileio, write-back, on a zvol)",
    explained="LIO fileio on a zvol's node, `write_back=true`: the page cache stands before ZFS",
    joins=frozenset({Sweep.TRANSPORTS, Sweep.TRANSPORTS_BEHIND_ALWAYS, Sweep.EVERY_TRANSPORT}),
    place=22,
)
