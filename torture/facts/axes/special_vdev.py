"""Whether the pool keeps its metadata on a special vdev.

This is zpoolconcepts(7)'s "Special Allocation Class". Its disk is like the data disks, and its content
has no other copy.
"""

from __future__ import annotations

from torture.facts.axes.axis import Axis, Choice
from torture.facts.axes.setting import setting_axis

AXIS: Axis[bool] = setting_axis(
    field="special_vdev",
    noun="SpecialVdev",
    title="special vdev",
    place=55,
    default=Choice(name="nospecial", value=False, words="no special vdev"),
    others=(
        Choice(
            name="special",
            value=True,
            words="a special vdev",
            explained="one more disk, for metadata",
        ),
    ),
)
