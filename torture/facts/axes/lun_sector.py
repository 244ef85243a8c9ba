"""The logical sectors of the disk that the client sees, in bytes.

A zvol has sectors of 512 bytes whatever its `volblocksize`, which is its physical block's size only
(OpenZFS `module/os/linux/zfs/zvol_os.c`, `zvol_queue_limits_apply`). So it is the target that says
otherwise, and the client's disk with it.
"""

from __future__ import annotations

from torture.facts.axes.axis import Axis, Choice, Chosen
from torture.facts.axes.setting import setting_axis


def _unless_it_can_be_had(chosen: Chosen) -> str | None:
    transport = chosen["transport"]
    can_be_had = _OF_4K.value in transport.value.traits.sectors_bytes
    return None if can_be_had else f"is a LUN's sector size, and {transport.name!r} has no such"


_OF_4K = Choice(name="lun4k", value=4096, words="LUN with sectors of 4096 bytes")

AXIS: Axis[int] = setting_axis(
    field="lun_sector",
    noun="LunSector",
    title="LUN's sectors",
    place=68,
    default=Choice(name="lun512", value=512, words="LUN with sectors of 512 bytes"),
    others=(_OF_4K,),
    pointless=_unless_it_can_be_had,
)
