"""A source tree of Linux: its version, by its content, and its way into a build."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from torture.errors import HarnessError
from torture.facts.linux.kernels import (
    choices_in_words,
    linux_names,
    linux_version,
    name_of_source,
)
from torture.machines.images.sources.tree_content import digest_of_tree, pack_tree

_MAKEFILE = "Makefile"
_NUMBERS = ("VERSION", "PATCHLEVEL", "SUBLEVEL")
_NUMBER = re.compile(rf"^({'|'.join(_NUMBERS)}) = (\d{{1,3}})$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class LinuxTree:
    """A tree as it was when it was read."""

    root: Path
    version: str
    """Its name in `--linux`, images and records: its numbers, and a hash of all its files."""

    @classmethod
    def read(cls, root: Path) -> Self:
        """The tree in this folder; raises `HarnessError` when there is none."""
        root = root.absolute()
        try:
            makefile = (root / _MAKEFILE).read_text(errors="replace")
        except OSError as error:
            raise _no_tree(root, f"its {_MAKEFILE} cannot be read: {error}") from error
        found = dict(_NUMBER.findall(makefile))
        if found.keys() != {*_NUMBERS} or not (root / "Kconfig").is_file():
            raise _no_tree(root, f"its {_MAKEFILE} names no version of Linux, or it has no Kconfig")
        version = ".".join(found[name] for name in _NUMBERS)
        return cls(root=root, version=name_of_source(version, digest_of_tree(root)))

    def pack(self, archive: Path) -> None:
        """Write its files into a tar archive; raises `HarnessError` when they have changed."""
        pack_tree(
            self.root, archive, version=self.version, read=lambda: self.read(self.root).version
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenLinux:
    """The kernel that `--linux` requests."""

    name: str
    tree: LinuxTree | None = None
    """Its source tree; None for Debian's kernels, and for one that was built before."""


def choose_linux(text: str) -> ChosenLinux:
    """The kernel of that name, or the one of the source tree in that folder.

    Raises `HarnessError`, with the valid choices, when it is neither.
    """
    folder = Path(text).expanduser()
    if text not in linux_names() and folder.is_dir():
        tree = LinuxTree.read(folder)
        return ChosenLinux(name=tree.version, tree=tree)
    if "/" in text:
        raise HarnessError(f"there is no folder {folder}", hint=choices_in_words())
    return ChosenLinux(name=linux_version(text).name)


def _no_tree(root: Path, why: str) -> HarnessError:
    return HarnessError(f"{root} is no source tree of Linux: {why}", hint=choices_in_words())
