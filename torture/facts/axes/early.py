"""A NAS that answers too early when it comes back: its port is there before the volume.

The volume follows some seconds later: 1, 5 or 20.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from torture.facts.axes.axis import Axis, Choice, Chosen
from torture.facts.axes.fate import Fate
from torture.facts.axes.sweeps import EVERY_SWEEP, Sweep


class Early(StrEnum):
    """The order in which it publishes."""

    IN_ORDER = "inorder"
    """The port last."""
    OTHER_FIRST = "otherfirst"
    """Another NVMe subsystem opens the port (Linux drivers/nvme/target/configfs.c)."""
    NAMESPACE_LATE = "namespacelate"
    """The NVMe subsystem is linked before its namespace is enabled, as TrueNAS's middleware does it
    (truenas/middleware `utils/nvmet/kernel.py`, `write_config`)."""
    LUN_LATE = "lunlate"
    """An iSCSI portal answers before LUN 1 is there."""
    LUN_0_LATE = "lun0late"
    """The same with LUN 0, in whose place LIO has a dummy (drivers/target/target_core_tpg.c,
    `core_tpg_register`)."""
    EXPORT_LATE = "exportlate"
    """An NFS server runs before the directory is exported."""
    MOUNT_LATE = "mountlate"
    """The directory is exported before the dataset is mounted there."""


class EarlyPort(NamedTuple):
    """The order, and the seconds between the port's answer and the volume."""

    order: Early
    window_s: int


_WORDS = {
    Early.OTHER_FIRST: "another subsystem opens the port first",
    Early.NAMESPACE_LATE: "the subsystem is there before its namespace",
    Early.LUN_LATE: "the portal is there before LUN 1",
    Early.LUN_0_LATE: "the portal is there before LUN 0",
    Early.EXPORT_LATE: "the server is there before the export",
    Early.MOUNT_LATE: "the export is there before the dataset",
}
_WINDOWS_S = (1, 5, 20)


def _inapplicable(chosen: Chosen) -> str | None:
    transport, fate = chosen["transport"], chosen["fate"]
    if fate.value is not Fate.NAS_ONLY:
        return f"needs a client that lives on, and {fate.name!r} has none"
    order = chosen["early"].value.order
    if order is Early.IN_ORDER or order in transport.value.below.traits.orders:
        return None
    return f"is no order in which {transport.name!r} can publish"


AXIS: Axis[EarlyPort] = Axis(
    field="early",
    noun="Early",
    title="order of publication",
    place=88,
    default=Early.IN_ORDER.value,
    is_setting=True,
    inapplicable=_inapplicable,
    choices=(
        Choice(
            name=Early.IN_ORDER.value,
            value=EarlyPort(Early.IN_ORDER, 0),
            words="the port comes last",
            joins=EVERY_SWEEP - {Sweep.OUTAGES_OUT_OF_ORDER},
        ),
        *(
            Choice(
                name=f"{order}{window_s}",
                value=EarlyPort(order, window_s),
                words=f"{words}, by {window_s} s",
                joins=frozenset({Sweep.OUTAGES_OUT_OF_ORDER}),
            )
            for order, words in _WORDS.items()
            for window_s in _WINDOWS_S
        ),
    ),
)
