"""iSCSI: LIO's iblock on a zvol; the client's QEMU is the initiator, through libiscsi.

LIO mirrors the zvol's own write cache, so the LUN is write-back (drivers/target/target_core_iblock.c).
"""

from __future__ import annotations

from torture.choices.transports import _lio
from torture.choices.transports._volumes import OfZvol
from torture.choices.transports.protocol import Traits, Transport
from torture.choices.volumes import VolumeOptions, zvol
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import EVERY_SWEEP


class Iscsi(_lio.Lun, OfZvol):
    """One write-back LUN, any initiator: LIO mirrors the zvol's cache."""

    traits = Traits(ports=(_lio.PORT,), sectors_bytes=(512, 4096), can_discard=True)

    def publish_script(self, options: VolumeOptions) -> str:
        """An iblock backstore."""
        return _lio.publish_script(
            kind="iblock",
            control=f"udev_path=$(readlink -f {zvol.DEVICE})",
            sector_bytes=options.sector_bytes,
            takes_discards=options.takes_discards,
        )


CHOICE: Choice[Transport] = Choice(
    name="iscsi",
    value=Iscsi(),
    words="iSCSI",
    explained="LIO iblock on a zvol; the client's QEMU is the initiator",
    joins=EVERY_SWEEP,
    place=0,
)
