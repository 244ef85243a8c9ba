"""The files of a source tree: a hash of them, and their way into an archive."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

from torture.errors import HarnessError
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
