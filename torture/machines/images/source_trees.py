"""Source trees of OpenZFS, Linux and SCST: their versions, by content, and their way into an archive.

Patches for a kernel of Debian's, and the modules that were built with them.

Only modules are built again, so a patch may touch the sources of modules alone. That takes a minute,
where a whole kernel would take half an hour.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

from torture.errors import HarnessError
from torture.facts.linux import kernels
from torture.facts.linux.kernels import HASH_CHARS
from torture.facts.zfs import versions
from torture.machines.host.abilities import run_host
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


_SCST_NUMBER = re.compile(r'^#define SCST_VERSION_NAME\s+"([0-9a-z.-]+)"', re.MULTILINE)


def read_scst_tree(root: Path) -> SourceTree:
    """SCST's tree in this folder; raises `HarnessError` when there is none."""
    header = root.absolute() / "scst/include/scst_const.h"
    try:
        number = _SCST_NUMBER.search(header.read_text(errors="replace"))
    except OSError as error:
        raise HarnessError(f"{root} is no source tree of SCST: {error}") from error
    if number is None:
        raise HarnessError(f"{root} is no source tree of SCST: {header} names no version")
    digest = digest_of_tree(root)
    version = f"scst-{kernels.name_of_source(number[1], digest)}"
    return SourceTree(root=root.absolute(), version=version, digest=digest)


def read_named_tree(text: str) -> SourceTree:
    """The tree of a text like `scst=PATH`; raises `HarnessError` for another."""
    name, _, folder = text.partition("=")
    if name != "scst":
        raise HarnessError(f"{text!r} names no source tree", hint="write scst=PATH")
    return read_scst_tree(Path(folder).expanduser())


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


_NEW_FILE = re.compile(r"^\+\+\+ (?:\"?)(\S+?)(?:\"?)(?:\t.*)?$", re.MULTILINE)
_GONE = "/dev/null"
_FOLDERS = ("block", "crypto", "drivers", "fs", "lib", "mm", "net", "sound")
"""The folders of Linux's tree with sources of modules."""
_SUFFIXES = (".c", ".h")


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchSeries:
    """Patches in their order, as they were when they were read."""

    texts: tuple[bytes, ...] = ()
    touched: tuple[str, ...] = ()
    """The paths of the changed files in Linux's tree, sorted."""

    @classmethod
    def read(cls, paths: Sequence[Path]) -> Self:
        """The patches of these files; raises `HarnessError` for one that modules alone cannot have."""
        texts, touched = [], set[str]()
        for path in paths:
            try:
                text = path.read_bytes()
            except OSError as error:
                raise HarnessError(f"{path} cannot be read: {error}") from error
            texts.append(text)
            touched |= set(_touched(path, text.decode(errors="replace")))
        return cls(texts=tuple(texts), touched=tuple(sorted(touched)))

    @property
    def digest(self) -> str:
        """The end of the patched kernel's name; empty without any patch."""
        return digest_of(self.texts)[:HASH_CHARS] if self.texts else ""

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of the changed files."""
        return tuple(sorted({str(PurePosixPath(name).parent) for name in self.touched}))

    def pack(self, folder: Path) -> None:
        """Write the patches and the list of files that they touch into a new folder."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for number, text in enumerate(self.texts):
            (folder / f"{number:04}.patch").write_bytes(text)
        (folder / "touched").write_text("".join(f"{name}\n" for name in self.touched))


NO_PATCHES = PatchSeries()


def _touched(path: Path, text: str) -> list[str]:
    """The files that a patch changes, without the first part of their names, as `patch -p1` has it."""
    found = []
    for name in _NEW_FILE.findall(text):
        if name == _GONE:
            raise HarnessError(f"{path} removes a file", hint="patches may only change modules")
        _, _, inner = name.partition("/")
        parts = PurePosixPath(inner).parts
        if not parts or ".." in parts or "'" in inner:
            raise HarnessError(f"{path} changes {name!r}, which is no file of Linux's tree")
        if parts[0] not in _FOLDERS or not inner.endswith(_SUFFIXES) or len(parts) == 1:
            raise HarnessError(
                f"{path} changes {inner}, and only sources of modules are built again",
                hint=f"a patch may change .c and .h files below {', '.join(_FOLDERS)}",
            )
        found.append(inner)
    if not found:
        raise HarnessError(
            f"{path} is no patch: it changes no file", hint="use the output of git diff"
        )
    return found


_MODULES = "usr/lib/modules"
_HINT = "tools/images build --fresh"


def patched_modules(archive: Path, *, release: str, known: Set[str]) -> dict[str, bytes]:
    """Path in the root to content, of the modules in the archive of `vmimages/linux/patched.sh`.

    `known` are the paths of the kernel's modules. Raises `HarnessError` where the modules are of another
    release than the kernel, or where it has none of a name.
    """
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as tar:
        for info in tar:
            name = info.name.removeprefix("./")
            content = tar.extractfile(info) if info.isreg() else None
            if content is None or not name.startswith(f"{_MODULES}/"):
                continue
            if not name.startswith(f"{_MODULES}/{release}/"):
                raise HarnessError(f"{name} is not of the kernel {release}", hint=_HINT)
            if name not in known:
                raise HarnessError(f"the kernel {release} has no {name}", hint=_HINT)
            found[name] = content.read()
    if not found:
        raise HarnessError(f"{archive} has no module", hint="read the log of its build")
    return found
