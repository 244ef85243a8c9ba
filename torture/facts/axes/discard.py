"""Whether the client's disk takes discards, and its filesystem discards what it frees.

LIO offers none unless it is told to (drivers/target/target_core_configfs.c, `emulate_tpu_store`). To a
zvol a discard is a write of its own: logged as `TX_TRUNCATE`, and what it frees is freed when its
transaction group syncs (OpenZFS `module/zfs/zvol.c`, `zvol_log_truncate`).
"""

from __future__ import annotations

from torture.facts.axes.axis import Axis, Choice, Chosen
from torture.facts.axes.setting import setting_axis


def _unless_it_can_be_had(chosen: Chosen) -> str | None:
    transport = chosen["transport"]
    can_be_had = transport.value.traits.can_discard
    return None if can_be_had else f"is for LUNs that can take it, and {transport.name!r} has none"


AXIS: Axis[bool] = setting_axis(
    field="discard",
    noun="Discard",
    title="discard",
    place=69,
    default=Choice(name="nodiscard", value=False, words="no discard"),
    others=(
        Choice(
            name="discard",
            value=True,
            words="discard of what is freed",
            explained="the LUN takes it, and the client's filesystem discards what it frees",
        ),
    ),
    pointless=_unless_it_can_be_had,
)
