"""The state after the cut: every directory, name and attribute, and the writer of every sector."""

from __future__ import annotations

import errno
import os
import stat
import struct
import zlib

from ...blocks import BLOCK_BYTES, SECTOR_BYTES, SECTORS

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

_DEPTH_MAX = 16
_BYTES_MAX = 1 << 22
"""A file longer than the load ever makes is read up to here, no more."""
_HEADER = struct.Struct("<8sQQQII")
_MAGIC = b"PWRCUT\x01\n"
_ZERO_BLOCK, _ZERO_SECTOR = bytes(BLOCK_BYTES), bytes(SECTOR_BYTES)


def found_below(root: str, *, trial: int) -> dict[str, Any]:
    """A directory and everything below; errors of reading are observations.

    A directory has `entries` by name. Each entry has its `type` (`dir`, `file`, `symlink`,
    `other`), or `errno`. A file's content is `runs`: [first sector, count, holder]. The holder is
    the sequence number of the writing operation, `zero`, or a text. A sector cut short by the end
    of the file is left out.
    """
    return _directory(root, trial, 0)


def _directory(path: str, trial: int, depth: int) -> dict[str, Any]:
    seen: dict[str, Any] = {"type": "dir"}
    if depth > _DEPTH_MAX:
        return {"errno": errno.ELOOP}
    try:
        names = sorted(os.listdir(path))  # noqa: PTH208 - pathlib is slow to import
    except OSError as error:
        return {"errno": error.errno}
    return seen | {"entries": {name: _entry(f"{path}/{name}", trial, depth) for name in names}}


def _entry(path: str, trial: int, depth: int) -> dict[str, Any]:
    try:
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            return _directory(path, trial, depth + 1)
        if stat.S_ISLNK(status.st_mode):
            return {"type": "symlink", "target": os.readlink(path)}  # noqa: PTH115
        if not stat.S_ISREG(status.st_mode):
            return {"type": "other", "mode": status.st_mode}
        return _file(path, trial, status)
    except OSError as error:
        return {"errno": error.errno}


def _file(path: str, trial: int, status: os.stat_result) -> dict[str, Any]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return {
            "type": "file",
            "inode": status.st_ino,
            "links": status.st_nlink,
            "mode": stat.S_IMODE(status.st_mode),
            "mtime_ns": status.st_mtime_ns,
            "size": status.st_size,
            "xattrs": _xattrs(descriptor),
            "runs": _runs(descriptor, min(status.st_size, _BYTES_MAX), trial),
        }
    finally:
        os.close(descriptor)


def _xattrs(descriptor: int) -> dict[str, str]:
    try:
        names = [name for name in os.listxattr(descriptor) if name.startswith("user.")]
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            return {}
        raise
    return {name: os.getxattr(descriptor, name).decode(errors="backslashreplace") for name in names}


def _runs(descriptor: int, size: int, trial: int) -> list[list[object]]:
    runs: list[list[object]] = []
    of_file: int | None = None
    for first in range(0, size // SECTOR_BYTES, SECTORS):
        count = min(SECTORS, size // SECTOR_BYTES - first)
        try:
            data = os.pread(descriptor, count * SECTOR_BYTES, first * SECTOR_BYTES)
        except OSError as error:
            _append(runs, first, count, f"errno:{error.errno}")
            continue
        if data == _ZERO_BLOCK:
            _append(runs, first, count, "zero")
            continue
        for sector in range(count):
            part = data[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES]
            holder, owner = _holder(part, trial, first + sector)
            if owner is not None:
                of_file = owner if of_file is None else of_file
                if owner != of_file:
                    holder = f"of file {owner}"
            _append(runs, first + sector, 1, holder)
    return runs


def _append(runs: list[list[Any]], first: int, count: int, holder: object) -> None:
    if runs and runs[-1][2] == holder and runs[-1][0] + runs[-1][1] == first:
        runs[-1][1] += count
    else:
        runs.append([first, count, holder])


def _holder(data: bytes, trial: int, place: int) -> tuple[int | str, int | None]:
    """The writer of a sector, and its file, if the sector is whole, of this trial and in its place."""
    if data == _ZERO_SECTOR:
        return "zero", None
    checksum = int.from_bytes(data[-4:], "little")
    if not data.startswith(_MAGIC) or zlib.crc32(data[:-4]) != checksum:
        return "garbage", None
    _, of_trial, file, seq, index, sector = _HEADER.unpack_from(data)
    if of_trial != trial or index * SECTORS + sector != place:
        return f"of trial {of_trial}, file {file}, sector {index * SECTORS + sector}", None
    return int(seq), int(file)
