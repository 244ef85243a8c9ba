"""A version of OpenZFS: the recipe of its kernel and modules, and what its tools can say.

Each is a file `vmimages/zfs/VERSION.toml`, read by `torture/images/recipes.py` as the stage that the
guests take their kernel from; its table `[zfs]` has what differs between versions.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from torture.checkout import CHECKOUT
from torture.errors import HarnessError

DEFAULT = "2.3.9"
FOLDER = CHECKOUT / "vmimages" / "zfs"


@dataclass(frozen=True, kw_only=True, slots=True)
class ZfsVersion:
    """One version, by the name that `--zfs` takes and that a trial's record says."""

    name: str
    recipe: Path
    suite: str
    """Debian's suite that the NAS's packages come from, ZFS's tools among them."""
    components: tuple[str, ...]
    has_json_status: bool
    """Whether `zpool status -j` is known: since 2.3 (zpool-status(8))."""

    def status_command(self, pool: str) -> tuple[str, ...]:
        """What prints the state of a pool, in the form that is read best."""
        return ("zpool", "status", *(("-j",) if self.has_json_status else ()), pool)


def version_names() -> tuple[str, ...]:
    """The names of all versions, the default first."""
    names = sorted(path.stem for path in FOLDER.glob("*.toml"))
    return tuple(sorted(names, key=lambda name: name != DEFAULT))


def zfs_version(name: str) -> ZfsVersion:
    """The version of this name; raises `HarnessError` when there is no recipe, or a garbled one."""
    recipe = FOLDER / f"{name}.toml"
    try:
        content = tomllib.loads(recipe.read_text())
        return ZfsVersion(
            name=name,
            recipe=recipe,
            suite=str(content["suite"]),
            components=tuple(content["components"]),
            has_json_status=bool(content["zfs"]["has_json_status"]),
        )
    except FileNotFoundError:
        known = ", ".join(version_names())
        raise HarnessError(f"no recipe for ZFS {name}", hint=f"known are: {known}") from None
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise HarnessError(f"{recipe}: {error!r}", hint="mend the recipe") from error
