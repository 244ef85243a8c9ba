"""A version of OpenZFS: the recipe of its kernel and modules, and what its tools can say.

Each is a file `vmimages/zfs/VERSION.toml`, read by `torture/machines/images/recipes.py` as the
stage that the guests take their kernel from; its table `[zfs]` has what differs between versions.
What is built from a source tree is a version, too: its name has a hash of all that is in the tree,
and names its images. So is one of Debian's with a bug planted in its modules:
`2.3.9+uberblock_not_flushed` is 2.3.9 with the patch of that name, from `vmimages/zfs/planted/`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from torture.checkout import CHECKOUT
from torture.errors import HarnessError

DEFAULT = "2.3.9"
FOLDER = CHECKOUT / "vmimages" / "zfs"
PLANTED = FOLDER / "planted"
"""Patches of one line each, on the sources of the modules in Debian's package."""

VERSION_PATTERN = r"\d{1,4}(?:\.\d{1,4}){1,3}"
_HASH_CHARS = 12
_OF_SOURCE = re.compile(rf"({VERSION_PATTERN})-[0-9a-f]{{{_HASH_CHARS}}}")
_JSON_STATUS_SINCE = (2, 3)
_TUNABLES_SINCE = {"zvol_use_blk_mq": (2, 2)}
"""Tunables that older versions do not have; their recipes say so as `lacks`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ZfsVersion:
    """One version, by the name that `--zfs` takes and that a trial's record says."""

    name: str
    recipe: Path
    suite: str
    """Debian's suite that the NAS's packages come from, ZFS's tools among them."""
    components: tuple[str, ...]
    backports: tuple[str, ...]
    """Source packages that come from that suite's backports, and nothing else does."""
    nas_packages: tuple[str, ...]
    """What the NAS has for this version alone: ZFS's tools, or what they need where they are built."""
    is_built: bool
    """Whether it is made from a source tree, which only its making needs."""
    lacks: frozenset[str]
    """Tunables (zfs(4)) that it does not have."""
    has_json_status: bool
    """Whether `zpool status -j` is known: since 2.3 (zpool-status(8))."""
    planted: Path | None = None
    """The patch that plants a bug in its modules."""

    def status_command(self, pool: str) -> tuple[str, ...]:
        """What prints the state of a pool, in the form that is read best: else counts are rounded."""
        return ("zpool", "status", "-j" if self.has_json_status else "-p", pool)


def version_names() -> tuple[str, ...]:
    """The names of all versions that Debian packages, the default first."""
    names = sorted(path.stem for path in FOLDER.glob("*.toml"))
    return tuple(sorted(names, key=lambda name: name != DEFAULT))


def choices_in_words() -> str:
    """What `--zfs` takes, for a message."""
    return f"known are: {', '.join(version_names())}, and folders with a source tree of OpenZFS"


def name_of_source(version: str, digest: str) -> str:
    """The version that is built from a tree which says it is this one, by a hash of its content."""
    return f"{version}-{digest[:_HASH_CHARS]}"


def zfs_version(name: str) -> ZfsVersion:
    """The version of this name; raises `HarnessError` when there is no recipe, or a garbled one."""
    built = _OF_SOURCE.fullmatch(name)
    sound, plus, bug = name.partition("+")
    planted = PLANTED / f"{bug}.patch" if plus else None
    if "/" in name or (planted is not None and not planted.is_file()):
        raise HarnessError(f"no recipe for ZFS {name}", hint=choices_in_words())
    recipe = FOLDER / "source" / "recipe.toml" if built else FOLDER / f"{sound}.toml"
    try:
        content = tomllib.loads(recipe.read_text())
        facts = content["zfs"]
        return ZfsVersion(
            name=name,
            recipe=recipe,
            suite=str(content["suite"]),
            components=tuple(content["components"]),
            backports=tuple(content.get("backports", ())),
            nas_packages=tuple(facts.get("nas_packages", ("zfsutils-linux",))),
            is_built=built is not None,
            lacks=frozenset(facts.get("lacks", ())) if not built else _lacking(_numbers(built[1])),
            has_json_status=_numbers(built[1]) >= _JSON_STATUS_SINCE
            if built
            else bool(facts["has_json_status"]),
            planted=planted,
        )
    except FileNotFoundError:
        raise HarnessError(f"no recipe for ZFS {name}", hint=choices_in_words()) from None
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise HarnessError(f"{recipe}: {error!r}", hint="mend the recipe") from error


def _lacking(version: tuple[int, ...]) -> frozenset[str]:
    return frozenset(axis for axis, since in _TUNABLES_SINCE.items() if version < since)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))
