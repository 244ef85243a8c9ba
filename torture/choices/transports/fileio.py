"""iSCSI from a file: LIO's fileio on an image in a dataset; the client's QEMU is the initiator.

Without `fd_buffered_io` LIO opens the file with O_DSYNC and reports no write cache. Every write is
in ZFS's log before it is completed, and the client never flushes (`fd_configure_device`,
drivers/target/target_core_file.c).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torture.choices.transports import _lio
from torture.choices.transports._volumes import OfImage
from torture.choices.transports.iscsi import Iscsi
from torture.choices.transports.protocol import Attachment, CompletedWrite, Traits, Transport
from torture.choices.volumes import SIZE_MIB, VolumeKind, VolumeOptions, dataset, zvol
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep

_BYTES = SIZE_MIB * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Fileio(_lio.Lun, OfImage):
    """One LUN on a file; `has_write_cache`: targetcli's `write_back=true`, which is its default."""

    has_write_cache: bool = False

    @property
    def traits(self) -> Traits:
        """Write-through or write-back."""
        completed = CompletedWrite.IN_ZFS if self.has_write_cache else CompletedWrite.IN_LOG
        return Traits(ports=(_lio.PORT,), volume=VolumeKind.DATASET, completed=completed)

    def publish_script(self, options: VolumeOptions) -> str:
        """A fileio backstore."""
        buffered = ",fd_buffered_io=1" if self.has_write_cache else ""
        control = f"fd_dev_name={dataset.IMAGE},fd_dev_size={_BYTES}{buffered}"
        return _lio.publish_script(kind="fileio", control=control)

    def attachment(self, *, nas_host: str) -> Attachment:
        """A LUN whose cache is as set."""
        # `super()` does not know the new class that slots made
        attached = _lio.Lun.attachment(self, nas_host=nas_host)
        return replace(attached, has_write_cache=self.has_write_cache)


class FileioOnZvol(Iscsi):
    """One LUN on a zvol's node, `write_back=true`: the NAS's page cache stands before ZFS.

    Completed writes lie in the node's page cache (Linux `block/fops.c`), which ZFS does not see, so
    sync=always does not help. A flush becomes an fsync of the node, and this has to become a flush
    of the zvol.
    """

    traits = Traits(ports=(_lio.PORT,), completed=CompletedWrite.IN_PAGE_CACHE)

    def publish_script(self, options: VolumeOptions) -> str:
        """A fileio backstore on the node."""
        control = f"fd_dev_name=$(readlink -f {zvol.DEVICE}),fd_dev_size={_BYTES},fd_buffered_io=1"
        return _lio.publish_script(kind="fileio", control=control)


CHOICES: tuple[Choice[Transport], ...] = (
    Choice(
        name="fileio",
        value=Fileio(),
        words="iSCSI (fileio, write-through)",
        explained="LIO fileio on a file of a dataset, `write_back=false`",
        joins=frozenset({Sweep.TRANSPORTS, Sweep.EVERY_TRANSPORT}),
        place=20,
    ),
    # a flush becomes an fsync of the file
    Choice(
        name="fileio_wb",
        value=Fileio(has_write_cache=True),
        words="iSCSI (fileio, write-back)",
        explained="the same with `write_back=true`",
        joins=frozenset({Sweep.TRANSPORTS, Sweep.TRANSPORTS_BEHIND_ALWAYS, Sweep.EVERY_TRANSPORT}),
        place=21,
    ),
    Choice(
        name="fileio_wb_zvol",
        value=FileioOnZvol(),
        words="iSCSI (fileio, write-back, on a zvol)",
        explained="LIO fileio on a zvol's node, `write_back=true`: the page cache stands before ZFS",
        joins=frozenset({Sweep.TRANSPORTS, Sweep.TRANSPORTS_BEHIND_ALWAYS, Sweep.EVERY_TRANSPORT}),
        place=22,
    ),
)
