"""Patches for a kernel of Debian's, and the modules that were built with them.

Only modules are built again, so a patch may touch the sources of modules alone. That takes a minute,
where a whole kernel would take half an hour.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

from torture.errors import HarnessError
from torture.facts.linux.kernels import HASH_CHARS
from torture.machines.images.recipes import digest_of

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
