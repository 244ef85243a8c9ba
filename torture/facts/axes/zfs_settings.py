"""ZFS's own settings that a cell changes: properties of its volume, tunables of the NAS's kernel module.

zfsprops(7) and zfs(4) list them; `--property` and `--tunable` choose them. All of a cell are one choice
on one axis, such as `compression=lz4+zfs.zil_slog_bulk=1`. A tunable has its module before it, as on
the kernel's command line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from torture.facts.axes.axis import Axis, Choice, Chosen
from torture.facts.axes.setting import Rule, only_on_a, only_with_a_log
from torture.facts.axes.sweeps import EVERY_SWEEP

FIELD = "settings"
USUAL = "zfsdefaults"
MODULE = "zfs."
_NAME = re.compile(r"(zfs\.)?[a-z][a-z0-9_]{0,60}")
_VALUE = re.compile(r"[A-Za-z0-9._-]{1,40}")
_SIZE = re.compile(r"\d+[kmg]")
_DASH = "~"
"""A dash in a value, within a cell's name."""

_AXES_OF_THEIR_OWN = frozenset({"sync", "zfs.zfs_nocacheflush", "zfs.zil_nocacheflush"})
"""They change a guarantee."""
_RULES: dict[str, Rule] = {
    "logbias": only_with_a_log,
    "recordsize": only_on_a("dataset"),
    "volblocksize": only_on_a("zvol"),
    "zfs.zvol_use_blk_mq": only_on_a("zvol"),
}


@dataclass(frozen=True, slots=True)
class ZfsSettings:
    """Names to values, in the order of the names; use `of`."""

    values: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Self:
        """These settings; raises `ValueError` for a name or a value that none can have."""
        for name, value in values.items():
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a valid name of a property or tunable of ZFS")
            if not _VALUE.fullmatch(value):
                raise ValueError(
                    f"{value!r} is no value of {name}: only [A-Za-z0-9._-] are allowed"
                )
            if name in _AXES_OF_THEIR_OWN:
                field = name.removeprefix(MODULE)
                raise ValueError(f"{field} is an axis of its own: use --axis {field}=CHOICE")
        return cls(tuple(sorted((name, _as_zfs_prints(value)) for name, value in values.items())))

    @property
    def name(self) -> str:
        """The choice's name: a part of a cell's name."""
        words = (f"{name}={value.replace('-', _DASH)}" for name, value in self.values)
        return "+".join(words) or USUAL

    @property
    def properties(self) -> dict[str, str]:
        """Those of the volume, by their names in zfsprops(7)."""
        return {name: value for name, value in self.values if not name.startswith(MODULE)}

    @property
    def tunables(self) -> dict[str, str]:
        """Those of the module, by their names in zfs(4)."""
        own = {name: value for name, value in self.values if name.startswith(MODULE)}
        return {name.removeprefix(MODULE): value for name, value in own.items()}


def _as_zfs_prints(value: str) -> str:
    return value.upper() if _SIZE.fullmatch(value) else value


def read_settings(name: str) -> Choice[ZfsSettings]:
    """The choice of this name; raises `KeyError` where it has no setting, `ValueError` for a bad one."""
    if "=" not in name:
        raise KeyError(name)
    pairs = [pair.partition("=")[::2] for pair in name.replace(_DASH, "-").split("+")]
    settings = ZfsSettings.of(dict(pairs))
    if settings.name != name:
        raise ValueError(f"{name!r} is another name of {settings.name!r}")
    return Choice(name=name, value=settings, words=", ".join(map("=".join, settings.values)))


def _pointless(chosen: Chosen) -> str | None:
    rules = (_RULES[name] for name, _ in chosen[FIELD].value.values if name in _RULES)
    return next((why for rule in rules if (why := rule(chosen)) is not None), None)


AXIS: Axis[ZfsSettings] = Axis(
    field=FIELD,
    noun="Setting",
    title="ZFS settings",
    place=61,
    default=USUAL,
    is_setting=True,
    inapplicable=_pointless,
    reads=read_settings,
    choices=(
        Choice(
            name=USUAL,
            value=ZfsSettings(),
            words="ZFS's own settings",
            explained="others by `--property NAME=VALUE` and `--tunable NAME=VALUE`",
            joins=EVERY_SWEEP,
        ),
    ),
)
