"""Source trees of OpenZFS and Linux: their versions, by their content, and their way into an archive."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from torture.errors import HarnessError
from torture.facts.linux import kernels
from torture.facts.zfs import versions
from torture.machines.host.commands import run_host
from torture.machines.images.recipes import digest_of

_GIT_DEADLINE_S = 60


def digest_of_tree(root: Path) -> str:
    """SHA-256 of names, kinds and contents: the same for the same files, wherever they lie.

    Raises `HarnessError` where a file cannot be read.
    """
    try:
        return digest_of(
            part
            for name in files_of_tree(root)
            for part in (name.encode(errors="surrogateescape"), *_content(root / name))
        )
    except OSError as error:
        raise HarnessError(f"{root} cannot be read: {error}") from error


def pack_tree(root: Path, archive: Path, *, version: str, read: Callable[[], str]) -> None:
    """Write the files into a tar archive.

    `read` gives the tree's version once more. Raises `HarnessError` where it is no longer `version`.
    """
    try:
        with tarfile.open(archive, "w") as tar:
            for name in files_of_tree(root):
                tar.add(root / name, arcname=name, recursive=False)
        now = read()
    except OSError as error:
        raise HarnessError(f"{root} cannot be packed: {error}") from error
    if now != version:
        raise HarnessError(
            f"{root} was {version} and is {now} now",
            hint="leave the tree alone until it is packed, and begin again",
        )


def _content(path: Path) -> Iterator[bytes]:
    if path.is_symlink():
        yield b"link"
        yield bytes(path.readlink())
    else:
        yield b"program" if path.stat().st_mode & 0o100 else b"file"
        yield path.read_bytes()


def files_of_tree(root: Path) -> list[str]:
    """The files that belong to the tree, sorted; where git manages it, without build results.

    A file that is new to git belongs to it unless git ignores the file.
    """
    if (root / ".git").exists():
        command = ("git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z")
        listed = run_host(
            *command, "--cached", "--others", "--exclude-standard", deadline_s=_GIT_DEADLINE_S
        )
        names = sorted(set(listed.split("\0")) - {""})
    else:
        names = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    paths = ((name, root / name) for name in names)
    return [name for name, path in paths if path.is_symlink() or path.is_file()]


_META = "META"
_PACKAGING = Path("contrib/debian/rules.in")
_NAME = re.compile(r"^Name:\s*(\S+)$", re.MULTILINE)
_VERSION = re.compile(rf"^Version:\s*({versions.VERSION_PATTERN})$", re.MULTILINE)


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
            raise _no_zfs_tree(root, f"its {_META} cannot be read: {error}") from error
        name, version = _NAME.search(meta), _VERSION.search(meta)
        if name is None or name[1] != "zfs" or version is None:
            raise _no_zfs_tree(root, f"its {_META} names no version of zfs")
        if not (root / _PACKAGING).is_file():
            raise _no_zfs_tree(root, f"it has no {_PACKAGING}, which came with 2.2 and builds it")
        return cls(root=root, version=versions.name_of_source(version[1], digest_of_tree(root)))

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
    if text not in versions.version_names() and folder.is_dir():
        tree = SourceTree.read(folder)
        return ChosenZfs(version=tree.version, tree=tree)
    if "/" in text.partition("+")[0]:
        raise HarnessError(f"there is no folder {folder}", hint=versions.choices_in_words())
    return ChosenZfs(version=versions.zfs_version(text).name)


def _no_zfs_tree(root: Path, why: str) -> HarnessError:
    return HarnessError(
        f"{root} is no source tree of OpenZFS that can be built: {why}",
        hint=versions.choices_in_words(),
    )


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
            raise _no_linux_tree(root, f"its {_MAKEFILE} cannot be read: {error}") from error
        found = dict(_NUMBER.findall(makefile))
        if found.keys() != {*_NUMBERS} or not (root / "Kconfig").is_file():
            raise _no_linux_tree(
                root, f"its {_MAKEFILE} names no version of Linux, or it has no Kconfig"
            )
        version = ".".join(found[name] for name in _NUMBERS)
        return cls(root=root, version=kernels.name_of_source(version, digest_of_tree(root)))

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
    if text not in kernels.linux_names() and folder.is_dir():
        tree = LinuxTree.read(folder)
        return ChosenLinux(name=tree.version, tree=tree)
    if "/" in text:
        raise HarnessError(f"there is no folder {folder}", hint=kernels.choices_in_words())
    return ChosenLinux(name=kernels.linux_version(text).name)


def _no_linux_tree(root: Path, why: str) -> HarnessError:
    return HarnessError(
        f"{root} is no source tree of Linux: {why}", hint=kernels.choices_in_words()
    )
