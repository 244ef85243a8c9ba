"""iSCSI from a file: LIO's fileio on an image in a dataset; the client's QEMU is the initiator.

Without `fd_buffered_io` LIO opens the file with O_DSYNC and reports no write cache. Every write is
in ZFS's log before it is completed, and the client never flushes (`fd_configure_device`,
drivers/target/target_core_file.c).
"""

from __future__ import annotations

from dataclasses import dataclass

from torture.choices.transports import _lio
from torture.choices.transports._volumes import OfImage
from torture.choices.transports.protocol import Attachment, CompletedWrite, Traits, Transport
from torture.choices.volumes import SIZE_MIB, VolumeKind, VolumeOptions, dataset
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import Sweep


@dataclass(frozen=True, kw_only=True, slots=True)
class Fileio(OfImage):
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
        size = SIZE_MIB * 1024 * 1024
        control = f"fd_dev_name={dataset.IMAGE},fd_dev_size={size}{buffered}"
        return _lio.publish_script(kind="fileio", control=control)

    def wait_until_idle_script(self) -> str:
        """Return once no session is left."""
        return _lio.wait_until_idle_script()

    def attachment(self, *, nas_host: str) -> Attachment:
        """LUN 0 of the target, as the client's second disk."""
        return Attachment(
            source=_lio.source(nas_host), device="/dev/vdb", has_write_cache=self.has_write_cache
        )


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
)
