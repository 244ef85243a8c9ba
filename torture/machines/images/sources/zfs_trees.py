"""A source tree of OpenZFS: its version, by its content, and its way into a build."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from torture.errors import HarnessError
from torture.facts.zfs.versions import (
    VERSION_PATTERN,
    choices_in_words,
    name_of_source,
    version_names,
    zfs_version,
)
from torture.machines.images.sources.tree_content import digest_of_tree, pack_tree

_META = "META"
_PACKAGING = Path("contrib/debian/rules.in")
_NAME = re.compile(r"^Name:\s*(\S+)$", re.MULTILINE)
_VERSION = re.compile(rf"^Version:\s*({VERSION_PATTERN})$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceTree:
    """A tree as it was when it was read."""

    root: Path
    version: str
    """Its name in `--zfs`, images and records: the version in its META, and a hash of all its
    files."""

    @classmethod
    def read(cls, root: Path) -> Self:
        """The tree in this folder; raises `HarnessError` when there is none that can be built."""
        root = root.absolute()
        try:
            meta = (root / _META).read_text(errors="replace")
        except OSError as error:
            raise _no_tree(root, f"its {_META} cannot be read: {error}") from error
        name, version = _NAME.search(meta), _VERSION.search(meta)
        if name is None or name[1] != "zfs" or version is None:
            raise _no_tree(root, f"its {_META} names no version of zfs")
        if not (root / _PACKAGING).is_file():
            raise _no_tree(root, f"it has no {_PACKAGING}, which came with 2.2 and builds it")
        return cls(root=root, version=name_of_source(version[1], digest_of_tree(root)))

    def pack(self, archive: Path) -> None:
        """Write its files into a tar archive; raises `HarnessError` when they have changed."""
        pack_tree(
            self.root, archive, version=self.version, read=lambda: self.read(self.root).version
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenZfs:
    """The version that `--zfs` requests."""

    version: str
    tree: SourceTree | None = None
    """Its source tree; None for Debian's versions, and for one that was built before."""


def choose_zfs(text: str) -> ChosenZfs:
    """The version of that name, or the one of the source tree in that folder.

    Raises `HarnessError`, with the valid choices, when it is neither.
    """
    folder = Path(text).expanduser()
    if text not in version_names() and folder.is_dir():
        tree = SourceTree.read(folder)
        return ChosenZfs(version=tree.version, tree=tree)
    if "/" in text.partition("+")[0]:
        raise HarnessError(f"there is no folder {folder}", hint=choices_in_words())
    return ChosenZfs(version=zfs_version(text).name)


def _no_tree(root: Path, why: str) -> HarnessError:
    return HarnessError(
        f"{root} is no source tree of OpenZFS that can be built: {why}",
        hint=choices_in_words(),
    )
