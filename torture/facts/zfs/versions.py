"""A version of OpenZFS: the recipe of its kernel and modules, and the abilities of its tools.

Each is a file `vmimages/zfs/VERSION.toml`. `torture/machines/images/recipes.py` reads it as the stage
that provides the guests' kernel. Its table `[zfs]` has the differences between versions.

A build from a source tree is a version, too: its name has a hash of the tree's content, and names its
images. So is a Debian version with a patch to its modules: a bug of `vmimages/zfs/planted/`, a fix of
`vmimages/zfs/fixes/`, or one less in `vmimages/zfs/unfixed/`. `2.3.9+uberblock_not_flushed` is 2.3.9 with
the patch of that name.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from torture.errors import HarnessError
from torture.files import CHECKOUT

DEFAULT = "2.3.9"
FOLDER = CHECKOUT / "vmimages" / "zfs"
PLANTED = FOLDER / "planted"
"""Bugs and harmless changes: patches of one or two lines to the module sources in Debian's package."""
FIXES = FOLDER / "fixes"
"""Patches to the same sources: each clears a known bug, and shows its cause."""
UNFIXED = FOLDER / "unfixed"
"""Patches to the same sources: each takes the fix of a known bug out again."""

VERSION_PATTERN = r"\d{1,4}(?:\.\d{1,4}){1,3}"
_HASH_CHARS = 12
_OF_SOURCE = re.compile(rf"({VERSION_PATTERN})-[0-9a-f]{{{_HASH_CHARS}}}")
_JSON_STATUS_SINCE = (2, 3)
_TUNABLES_SINCE = {"zvol_use_blk_mq": (2, 2)}
"""Tunables that older versions do not have; their recipes say so as `lacks`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ZfsVersion:
    """One version, by its name for `--zfs` and in a trial's record."""

    name: str
    recipe: Path
    suite: str
    """Debian's suite of the NAS's packages, ZFS's tools included."""
    components: tuple[str, ...]
    backports: tuple[str, ...]
    """The only source packages that come from that suite's backports."""
    nas_packages: tuple[str, ...]
    """The NAS's additional packages for this version: ZFS's tools, or their dependencies if they are
    built.
    """
    is_built: bool
    """Whether it is built from a source tree, which is needed only for the build."""
    lacks: frozenset[str]
    """Tunables (zfs(4)) that it does not have."""
    has_json_status: bool
    """Whether `zpool status -j` is supported: since 2.3 (zpool-status(8))."""
    patch: Path | None = None
    """The patch to its modules."""
    linux_bounds: tuple[str, str] | None = None
    """The oldest and newest Linux that it supports, by its `META`; None where no recipe states them."""

    def status_command(self, pool: str) -> tuple[str, ...]:
        """The command that prints a pool's state with exact counts: as JSON, or with `-p`."""
        return self.question(("zpool", "status", "-j", pool))

    def question(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """A command that asks for JSON, as this version answers it: in text where it has no `-j`.

        `zpool status -p` has exact counts; `zfs list` and `zpool get` have lines of columns with `-H`.
        """
        if self.has_json_status:
            return argv
        plain = "-p" if argv[:2] == ("zpool", "status") else "-H"
        return tuple(plain if word == "-j" else word for word in argv)


def version_names() -> tuple[str, ...]:
    """The names of all versions that Debian packages, the default first."""
    names = sorted(path.stem for path in FOLDER.glob("*.toml"))
    return tuple(sorted(names, key=lambda name: name != DEFAULT))


def choices_in_words() -> str:
    """The values of `--zfs`, for a message."""
    return f"known are: {', '.join(version_names())}, and folders with a source tree of OpenZFS"


def name_of_source(version: str, digest: str) -> str:
    """The name of the version built from a tree that states `version`, with a hash of its content."""
    return f"{version}-{digest[:_HASH_CHARS]}"


def zfs_version(name: str) -> ZfsVersion:
    """The version of this name; raises `HarnessError` for a missing or garbled recipe."""
    built = _OF_SOURCE.fullmatch(name)
    number = tuple(map(int, built[1].split("."))) if built else ()
    lacked = {tunable for tunable, since in _TUNABLES_SINCE.items() if number < since}
    sound, plus, change = name.partition("+")
    folders = (PLANTED, FIXES, UNFIXED) if plus else ()
    patches = [folder / f"{change}.patch" for folder in folders]
    patch = next(filter(Path.is_file, patches), None)
    if "/" in name or (plus and patch is None):
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
            lacks=frozenset(lacked if built else facts.get("lacks", ())),
            has_json_status=number >= _JSON_STATUS_SINCE
            if built
            else bool(facts["has_json_status"]),
            patch=patch,
            linux_bounds=None if (bounds := facts.get("linux")) is None else _pair(*bounds),
        )
    except FileNotFoundError:
        raise HarnessError(f"no recipe for ZFS {name}", hint=choices_in_words()) from None
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise HarnessError(f"{recipe}: {error!r}", hint="mend the recipe") from error


def _pair(least: str, most: str) -> tuple[str, str]:
    return least, most
