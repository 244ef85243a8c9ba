"""Source trees of OpenZFS and Linux: their versions, by their content, and their way into an archive."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
_MAKEFILE = "Makefile"
_NUMBERS = ("VERSION", "PATCHLEVEL", "SUBLEVEL")
_NUMBER = re.compile(rf"^({'|'.join(_NUMBERS)}) = (\d{{1,3}})$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceTree:
    """A tree as it was when it was read."""

    root: Path
    version: str
    """Its name in `--zfs` or `--linux`, images and records: its own version, and a hash of all its
    files."""
    digest: str = ""
    """The whole hash."""

    def pack(self, archive: Path) -> None:
        """Write its files into a tar archive; raises `HarnessError` when they have changed."""
        try:
            with tarfile.open(archive, "w") as tar:
                for name in files_of_tree(self.root):
                    tar.add(self.root / name, arcname=name, recursive=False)
        except OSError as error:
            raise HarnessError(f"{self.root} cannot be packed: {error}") from error
        if digest_of_tree(self.root) != self.digest:
            raise HarnessError(
                f"{self.root} was {self.version} and is another tree now",
                hint="leave the tree alone until it is packed, and begin again",
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenSource:
    """The version that `--zfs` or `--linux` requests."""

    version: str
    tree: SourceTree | None = None
    """Its source tree; None for Debian's versions, and for one that was built before."""


def read_zfs_tree(root: Path) -> SourceTree:
    """OpenZFS's tree in this folder; raises `HarnessError` when there is none that can be built."""
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
    digest = digest_of_tree(root)
    return SourceTree(root=root, version=versions.name_of_source(version[1], digest), digest=digest)


def read_linux_tree(root: Path) -> SourceTree:
    """Linux's tree in this folder; raises `HarnessError` when there is none."""
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
    version, digest = ".".join(found[name] for name in _NUMBERS), digest_of_tree(root)
    return SourceTree(root=root, version=kernels.name_of_source(version, digest), digest=digest)


def choose_zfs(text: str) -> ChosenSource:
    """The version of OpenZFS of that name, or the one of the source tree in that folder.

    Raises `HarnessError`, with the valid choices, when it is neither.
    """
    folder = Path(text).expanduser()
    if text not in versions.version_names() and folder.is_dir():
        tree = read_zfs_tree(folder)
        return ChosenSource(version=tree.version, tree=tree)
    if "/" in text.partition("+")[0]:
        raise HarnessError(f"there is no folder {folder}", hint=versions.choices_in_words())
    return ChosenSource(version=versions.zfs_version(text).name)


def choose_linux(text: str) -> ChosenSource:
    """The same of a kernel."""
    folder = Path(text).expanduser()
    if text not in kernels.linux_names() and folder.is_dir():
        tree = read_linux_tree(folder)
        return ChosenSource(version=tree.version, tree=tree)
    if "/" in text:
        raise HarnessError(f"there is no folder {folder}", hint=kernels.choices_in_words())
    return ChosenSource(version=kernels.linux_version(text).name)


def _no_zfs_tree(root: Path, why: str) -> HarnessError:
    return HarnessError(
        f"{root} is no source tree of OpenZFS that can be built: {why}",
        hint=versions.choices_in_words(),
    )


def _no_linux_tree(root: Path, why: str) -> HarnessError:
    return HarnessError(
        f"{root} is no source tree of Linux: {why}", hint=kernels.choices_in_words()
    )
