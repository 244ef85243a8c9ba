"""Whether the client's disk supports discards, and its filesystem discards freed blocks.

LIO offers discards only if configured to (drivers/target/target_core_configfs.c, `emulate_tpu_store`). A
zvol handles a discard like a write: it logs it as `TX_TRUNCATE`, and frees the blocks when the
transaction group syncs (OpenZFS `module/zfs/zvol.c`, `zvol_log_truncate`).
"""

from __future__ import annotations

from torture.facts.axes.axis import Axis, Choice, Chosen
from torture.facts.axes.setting import setting_axis


def _unless_it_is_supported(chosen: Chosen) -> str | None:
    transport = chosen["transport"]
    is_supported = transport.value.traits.can_discard
    return (
        None if is_supported else f"needs a LUN that supports it, and {transport.name!r} has none"
    )


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
    inapplicable=_unless_it_is_supported,
)
