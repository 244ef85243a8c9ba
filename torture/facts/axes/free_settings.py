"""Settings with free values: properties of volume and pool, tunables of ZFS, options of the mount.

zfsprops(7), zpoolprops(7), zfs(4), and nfs(5) or mount.cifs(8) list them; `--property`,
`--pool-property`, `--tunable`, `--mount` and `--grace` choose them. All of a cell are one choice on one
axis, such as `compression=lz4+zfs.zil_slog_bulk=1`. A tunable has its module before it, as on the
kernel's command line. So have the others their part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from torture.facts.axes.axis import Axis, Choice, Chosen, applies_always
from torture.facts.axes.setting import Rule, only_on_a, only_with_a_log
from torture.facts.axes.sweeps import EVERY_SWEEP

FIELD = "settings"
USUAL = "zfsdefaults"
MODULE, MOUNT, SERVER, POOL = "zfs.", "mount.", "nfsd.", "pool."
GRACE = f"{SERVER}grace"
_NAME = re.compile(r"(zfs\.|mount\.|pool\.(feature@)?)?[a-z][a-z0-9_]{0,60}|nfsd\.grace")
_PARTS = (MODULE, MOUNT, SERVER, POOL)
_VALUE = re.compile(r"[A-Za-z0-9._-]{1,40}")
_SIZE = re.compile(r"\d+[kmg]")
_DASH = "~"
"""A dash in a value, within a cell's name."""

_AXES_OF_THEIR_OWN = frozenset({"sync", "zfs.zfs_nocacheflush", "zfs.zil_nocacheflush"})
"""They change a guarantee."""


def _only_with_clients(chosen: Chosen) -> str | None:
    """A cell without an image ends its server's grace period by hand."""
    has_clients = chosen["transport"].value.below.traits.keeps_clients
    is_kept = has_clients and chosen["image"].name != "noimage"
    return None if is_kept else "is for a hypervisor's image over NFSv4"


def _only_on_a_mount(chosen: Chosen) -> str | None:
    transport = chosen["transport"]
    is_mount = transport.value.below.traits.gives_files
    return None if is_mount else f"is for a mount, and {transport.name!r} gives a disk"


_RULES: dict[str, Rule] = {
    "logbias": only_with_a_log,
    "recordsize": only_on_a("dataset"),
    "volblocksize": only_on_a("zvol"),
    "zfs.zvol_use_blk_mq": only_on_a("zvol"),
    GRACE: _only_with_clients,
}


@dataclass(frozen=True, slots=True)
class FreeSettings:
    """Names to values, in the order of the names; use `of`."""

    values: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Self:
        """These settings; raises `ValueError` for a name or a value that none can have."""
        for name, value in values.items():
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"{name!r} is no valid name of a property or tunable of ZFS, or of a mount's option"
                )
            if not _VALUE.fullmatch(value):
                raise ValueError(
                    f"{value!r} is no value of {name}: only [A-Za-z0-9._-] are allowed"
                )
            if name == GRACE and not (value.isdecimal() and 10 <= int(value) <= 3600):
                raise ValueError(f"{value!r} is no grace period: it is 10 to 3600 s")
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
        return {name: value for name, value in self.values if not name.startswith(_PARTS)}

    @property
    def tunables(self) -> dict[str, str]:
        """Those of the module, by their names in zfs(4)."""
        return self._of(MODULE)

    @property
    def mount_options(self) -> dict[str, str]:
        """Those of the client's mount; the value of one without a value is `yes`."""
        return self._of(MOUNT)

    @property
    def pool_properties(self) -> dict[str, str]:
        """Those of the pool, by their names in zpoolprops(7)."""
        return self._of(POOL)

    @property
    def grace_s(self) -> int | None:
        """The NFSv4 server's grace period and lease; None as the suite has it."""
        value = dict(self.values).get(GRACE)
        return None if value is None else int(value)

    def _of(self, part: str) -> dict[str, str]:
        own = {name: value for name, value in self.values if name.startswith(part)}
        return {name.removeprefix(part): value for name, value in own.items()}


def _as_zfs_prints(value: str) -> str:
    return value.upper() if _SIZE.fullmatch(value) else value


def read_settings(name: str) -> Choice[FreeSettings]:
    """The choice of this name; raises `KeyError` where it has no setting, `ValueError` for a bad one."""
    if "=" not in name:
        raise KeyError(name)
    pairs = [pair.partition("=")[::2] for pair in name.replace(_DASH, "-").split("+")]
    settings = FreeSettings.of(dict(pairs))
    if settings.name != name:
        raise ValueError(f"{name!r} is another name of {settings.name!r}")
    return Choice(name=name, value=settings, words=", ".join(map("=".join, settings.values)))


def _pointless(chosen: Chosen) -> str | None:
    for name, _ in chosen[FIELD].value.values:
        rule = _only_on_a_mount if name.startswith(MOUNT) else _RULES.get(name, applies_always)
        if (why := rule(chosen)) is not None:
            return why
    return None


AXIS: Axis[FreeSettings] = Axis(
    field=FIELD,
    noun="Setting",
    title="settings",
    place=61,
    default=USUAL,
    is_setting=True,
    inapplicable=_pointless,
    reads=read_settings,
    choices=(
        Choice(
            name=USUAL,
            value=FreeSettings(),
            words="ZFS's own settings",
            explained="others by `--property NAME=VALUE`, `--pool-property NAME=VALUE`, `--tunable "
            "NAME=VALUE`, `--mount NAME=VALUE` and `--grace SECONDS`",
            joins=EVERY_SWEEP,
        ),
    ),
)
