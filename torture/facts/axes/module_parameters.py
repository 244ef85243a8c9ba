"""Parameters of ZFS's kernel module on the NAS (zfs(4)): one axis each, named after the parameter.

They are written after each boot of the NAS, before it has a pool.
"""

from __future__ import annotations

from torture.facts.axes.axis import Axis, Choice, applies_always
from torture.facts.axes.setting import Rule, only_with_a_log, setting_axis


def _parameter(
    field: str,
    *,
    noun: str,
    place: int,
    names: tuple[str, str],
    explained: str,
    inapplicable: Rule = applies_always,
) -> Axis[bool]:
    off, on = names
    return setting_axis(
        field=field,
        noun=noun,
        title=field,
        place=place,
        default=Choice(name=off, value=False, words=f"{field}=0"),
        others=(Choice(name=on, value=True, words=f"{field}=1", explained=explained),),
        inapplicable=inapplicable,
    )


ZFS_NOCACHEFLUSH = _parameter(
    "zfs_nocacheflush",
    noun="ZfsNocacheflush",
    place=65,
    names=("cacheflush", "nocacheflush"),
    explained="ZFS flushes no disk at all",
)
ZIL_NOCACHEFLUSH = _parameter(
    "zil_nocacheflush",
    noun="ZilNocacheflush",
    place=66,
    names=("zilcacheflush", "zilnocacheflush"),
    explained="ZFS does not flush its intent log",
    inapplicable=only_with_a_log,
)
PARAMETERS: tuple[Axis[bool], ...] = (ZFS_NOCACHEFLUSH, ZIL_NOCACHEFLUSH)
