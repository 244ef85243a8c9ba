"""The logical sector size, in bytes, of the disk that the client sees.

A zvol has sectors of 512 bytes whatever its `volblocksize`, which only sets the physical block size
(OpenZFS `module/os/linux/zfs/zvol_os.c`, `zvol_queue_limits_apply`). So the target sets another logical
size, and the client's disk inherits it.
"""

from __future__ import annotations

from torture.facts.axes.axis import Axis, Choice, Chosen
from torture.facts.axes.setting import setting_axis


def _unless_it_is_supported(chosen: Chosen) -> str | None:
    transport = chosen["transport"]
    is_supported = _OF_4K.value in transport.value.traits.sectors_bytes
    return None if is_supported else f"is the sector size of a LUN, and {transport.name!r} has none"


_OF_4K = Choice(name="lun4k", value=4096, words="LUN with sectors of 4096 bytes")

AXIS: Axis[int] = setting_axis(
    field="lun_sector",
    noun="LunSector",
    title="LUN's sectors",
    place=68,
    default=Choice(name="lun512", value=512, words="LUN with sectors of 512 bytes"),
    others=(_OF_4K,),
    inapplicable=_unless_it_is_supported,
)
