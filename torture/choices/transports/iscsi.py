"""iSCSI: LIO's iblock on a zvol; the client's QEMU is the initiator, through libiscsi.

LIO mirrors the zvol's own write cache, so the LUN is write-back (drivers/target/target_core_iblock.c).
"""

from __future__ import annotations

from collections.abc import Mapping

from torture.choices.transports import _lio, _theory
from torture.choices.transports.protocol import Attachment, Traits, Transport
from torture.choices.volumes import VolumeOptions, zvol
from torture.facts.axes.axis import Choice
from torture.facts.axes.fate import Fate
from torture.facts.axes.sweeps import EVERY_SWEEP
from torture.facts.axes.sync import Sync
from torture.oracles.verdict.guarantee import Guarantee
from torture.shell import write_cache_of


class Iscsi:
    """One LUN, any initiator."""

    traits = Traits(ports=(_lio.PORT,), sectors_bytes=(512, 4096), can_discard=True)

    def make_volume_script(self, options: VolumeOptions) -> str:
        """A zvol."""
        return zvol.make_script(options)

    def wait_for_volume_script(self) -> str:
        """Its device."""
        return zvol.wait_script()

    def publish_script(self, options: VolumeOptions) -> str:
        """An iblock backstore."""
        return _lio.publish_script(
            kind="iblock",
            control=f"udev_path=$(readlink -f {zvol.DEVICE})",
            sector_bytes=options.sector_bytes,
            takes_discards=options.takes_discards,
        )

    def wait_until_idle_script(self) -> str:
        """Return once no session is left."""
        return _lio.wait_until_idle_script()

    def cache_scripts(self) -> Mapping[str, str]:
        """The zvol's cache, which LIO mirrors."""
        return {"zvol": write_cache_of(zvol.DEVICE)}

    def attachment(self, *, nas_host: str) -> Attachment:
        """LUN 0 of the target, as the client's second disk."""
        return Attachment(source=_lio.source(nas_host), device="/dev/vdb")

    def guarantee(self, *, sync: Sync, fate: Fate) -> Guarantee:
        """A write-back LUN."""
        return _theory.guarantee(self.traits, sync=sync, fate=fate)


CHOICE: Choice[Transport] = Choice(
    name="iscsi",
    value=Iscsi(),
    words="iSCSI",
    explained="LIO iblock on a zvol; the client's QEMU is the initiator",
    joins=EVERY_SWEEP,
    place=0,
)
