"""Carries out a transaction: the system calls, and the sync that makes it durable."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import stat
import time

from ...blocks import BLOCK_BYTES, SECTOR_BYTES, SECTORS, Encoder
from .. import Performer, Transaction

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

    Entry = tuple[int, str]

_LIBC = ctypes.CDLL(None, use_errno=True)
_KEEP_SIZE, _PUNCH_HOLE, _ZERO_RANGE = 0x01, 0x02, 0x10
"""linux/falloc.h."""
_OFFSET = ctypes.c_int64
_FLAGS = {"dsync": os.O_DSYNC, "osync": os.O_SYNC, "direct": os.O_DIRECT}
_REFUSALS = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.ENODEV})
"""The errors by which a filesystem reports a missing ability."""
_TRIED_S = 1_000_000_000


class Performing(Performer):
    """Keeps directories and files open, so that writeback errors reach their next sync.

    It never removes a name through which a file is open: NFS clients would rename that file
    instead.
    """

    def __init__(self, trial: int, root: str, number: int) -> None:
        super().__init__()
        self._encoder = Encoder(trial)
        self._aligned = memoryview(mmap.mmap(-1, 1 << 18))
        """O_DIRECT takes only buffers that start where a page does."""
        self._root = _directory(root)
        self._directories: dict[int, int] = {number: self._root}
        self._names: dict[int, list[Entry]] = {}
        self._open: dict[int, tuple[int, Entry]] = {}

    def perform(self, transaction: Transaction, seq: int) -> None:
        """Carry out the transaction, and then its syncs; raises `OSError`."""
        what = transaction.what
        for number in what.get("closes", ()):
            self._close(number)
        self.step = what["do"]
        getattr(self, f"_{what['do']}")(what, seq)
        for call, number in what["syncs"]:
            self._sync(call, number)

    def _sync(self, call: str, number: int) -> None:
        self.step = call
        if call == "syncfs":
            begun_ns = time.monotonic_ns()
            _checked(_LIBC.syncfs(self._root))
        else:
            descriptor = self._directories.get(number, -1)
            if descriptor < 0:
                descriptor = self._descriptor(number)
            begun_ns = time.monotonic_ns()
            (os.fdatasync if call == "fdatasync" else os.fsync)(descriptor)
        self.durable_call_took(begun_ns)

    def _descriptor(self, number: int) -> int:
        if number not in self._open:
            at = self._names[number][0]
            self._open[number] = (self._opened(at, os.O_RDWR), at)
        return self._open[number][0]

    def _opened(self, at: Entry, flags: int) -> int:
        directory, name = at
        return os.open(
            name, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644, dir_fd=self._directories[directory]
        )

    def _close(self, number: int) -> None:
        if number in self._open:
            os.close(self._open.pop(number)[0])
        elif number in self._directories:
            os.close(self._directories.pop(number))

    def _create(self, what: dict[str, Any], seq: int) -> None:
        number, at = what["whom"], tuple(what["at"])
        self._names[number] = [at]
        self._open[number] = (self._opened(at, os.O_RDWR | os.O_CREAT | os.O_EXCL), at)
        self._fill(self._open[number][0], what, seq)

    def _write(self, what: dict[str, Any], seq: int) -> None:
        how, number = what["how"], what["whom"]
        if how in ("mmap", "mmap-lazily"):
            self._map(self._descriptor(number), what, seq, is_synced=how == "mmap")
            return
        if how not in _FLAGS:
            self._fill(self._descriptor(number), what, seq)
            return
        self._descriptor(number)
        try:
            descriptor = self._opened(self._open[number][1], os.O_RDWR | _FLAGS[how])
        except OSError as error:
            if how != "direct" or error.errno not in _REFUSALS:
                raise
            self._fill(self._descriptor(number), what, seq)  # its sync makes it durable as well
            return
        begun_ns = time.monotonic_ns()
        try:
            self._fill(descriptor, what, seq)
        except OSError as error:
            if how != "direct" or error.errno != errno.EINVAL:
                raise
            self._fill(self._descriptor(number), what, seq)
        finally:
            os.close(descriptor)
        if how != "direct":
            self.durable_call_took(begun_ns)

    def _fill(self, descriptor: int, what: dict[str, Any], seq: int) -> None:
        for first, count in what["runs"]:
            data = self._aligned[: count * SECTOR_BYTES]
            data[:] = self._content(what["whom"], seq, first, count)
            offset = first * SECTOR_BYTES
            while data:
                written = os.pwrite(descriptor, data, offset)
                data, offset = data[written:], offset + written

    def _content(self, number: int, seq: int, first: int, count: int) -> bytes:
        begin, end = first // SECTORS, -(-(first + count) // SECTORS)
        blocks = [
            self._encoder.block(file=number, seq=seq, index=index) for index in range(begin, end)
        ]
        skipped = (first - begin * SECTORS) * SECTOR_BYTES
        return b"".join(blocks)[skipped : skipped + count * SECTOR_BYTES]

    def _map(self, descriptor: int, what: dict[str, Any], seq: int, *, is_synced: bool) -> None:
        (first, count), *_ = what["runs"]
        with mmap.mmap(descriptor, os.fstat(descriptor).st_size) as memory:
            start = first * SECTOR_BYTES
            memory[start : start + count * SECTOR_BYTES] = self._content(
                what["whom"], seq, first, count
            )
            if is_synced:
                self.step = "msync"
                begun_ns = time.monotonic_ns()
                memory.flush()  # msync(2) with MS_SYNC
                self.durable_call_took(begun_ns)

    def _truncate(self, what: dict[str, Any], seq: int) -> None:
        os.ftruncate(self._descriptor(what["whom"]), what["sectors"] * SECTOR_BYTES)

    def _punch(self, what: dict[str, Any], seq: int) -> None:
        self._fallocate(what, _PUNCH_HOLE | _KEEP_SIZE)

    def _zero(self, what: dict[str, Any], seq: int) -> None:
        self._fallocate(what, _ZERO_RANGE | _KEEP_SIZE)

    def _fallocate(self, what: dict[str, Any], mode: int) -> None:
        first, count = what["run"]
        descriptor = self._descriptor(what["whom"])
        _fallocate(descriptor, mode, first * SECTOR_BYTES, count * SECTOR_BYTES)

    def _xattr(self, what: dict[str, Any], seq: int) -> None:
        descriptor = self._descriptor(what["whom"])
        if what["value"] is None:
            os.removexattr(descriptor, what["name"])
        else:
            os.setxattr(descriptor, what["name"], what["value"].encode())

    def _chmod(self, what: dict[str, Any], seq: int) -> None:
        os.fchmod(self._descriptor(what["whom"]), what["mode"])

    def _utimens(self, what: dict[str, Any], seq: int) -> None:
        # Later writeback would change it again where the server keeps the time.
        descriptor = self._descriptor(what["whom"])
        os.fsync(descriptor)
        os.utime(descriptor, (what["mtime"], what["mtime"]))

    def _mkdir(self, what: dict[str, Any], seq: int) -> None:
        directory, name = what["at"]
        above = self._directories[directory]
        os.mkdir(name, 0o755, dir_fd=above)
        self._directories[what["whom"]] = _directory(name, above)

    def _rmdir(self, what: dict[str, Any], seq: int) -> None:
        directory, name = what["at"]
        os.close(self._directories.pop(what["whom"]))
        os.rmdir(name, dir_fd=self._directories[directory])

    def _symlink(self, what: dict[str, Any], seq: int) -> None:
        directory, name = what["at"]
        os.symlink(what["target"], name, dir_fd=self._directories[directory])

    def _link(self, what: dict[str, Any], seq: int) -> None:
        names = self._names[what["whom"]]
        (directory, name), (new_directory, new_name) = names[0], what["at"]
        os.link(
            name,
            new_name,
            src_dir_fd=self._directories[directory],
            dst_dir_fd=self._directories[new_directory],
            follow_symlinks=False,
        )
        names.append(tuple(what["at"]))

    def _rename(self, what: dict[str, Any], seq: int) -> None:
        was, at, number = tuple(what["was"]), tuple(what["at"]), what["whom"]
        if "instead_of" in what:
            self._keep_open_elsewhere(what["instead_of"], at)
        os.rename(
            was[1],
            at[1],
            src_dir_fd=self._directories[was[0]],
            dst_dir_fd=self._directories[at[0]],
        )
        if number in self._names:
            self._names[number] = [at if name == was else name for name in self._names[number]]
        if number in self._open and self._open[number][1] == was:
            self._open[number] = (self._open[number][0], at)

    def _unlink(self, what: dict[str, Any], seq: int) -> None:
        directory, name = what["at"]
        self._keep_open_elsewhere(what["whom"], (directory, name))
        os.unlink(name, dir_fd=self._directories[directory])

    def _keep_open_elsewhere(self, number: int, at: Entry) -> None:
        """Prepare the removal of a file's name: the file stays open by another name, if it has one."""
        names = self._names[number] = [name for name in self._names[number] if name != at]
        if number not in self._open or self._open[number][1] != at:
            return
        old = self._open.pop(number)[0]
        if names:
            self._descriptor(number)
        os.close(old)


def supported_in(directory: str) -> list[str]:
    """The verbs among the optional ones that work in a directory, by a trial of each."""
    path, other = f"{directory}/tried", f"{directory}/tried-too"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    os.pwrite(descriptor, b"x" * BLOCK_BYTES * 2, 0)

    def mapped() -> bool:
        with mmap.mmap(descriptor, BLOCK_BYTES) as memory:
            memory[:1] = b"m"
            memory.flush()
        return os.pread(descriptor, 1, 0) == b"m"

    def zeroed(mode: int) -> bool:
        _fallocate(descriptor, mode | _KEEP_SIZE, SECTOR_BYTES, SECTOR_BYTES)
        return os.pread(descriptor, 1, SECTOR_BYTES) == b"\0"

    def has_xattr() -> bool:
        os.setxattr(descriptor, "user.a", b"1")
        return os.getxattr(path, "user.a") == b"1"

    def has_mode() -> bool:
        os.fchmod(descriptor, 0o600)
        return stat.S_IMODE(os.stat(path).st_mode) == 0o600  # noqa: PTH116

    def has_time() -> bool:
        os.fsync(descriptor)
        os.utime(descriptor, (_TRIED_S, _TRIED_S))
        return os.stat(path).st_mtime_ns == _TRIED_S * 10**9  # noqa: PTH116

    def has_holes() -> bool:
        os.pwrite(descriptor, b"y", 1 << 20)
        return os.pread(descriptor, 1, 1 << 19) == b"\0"

    def has_symlinks() -> bool:
        os.symlink("x" * 90, other)  # noqa: PTH211
        is_kept = os.readlink(other) == "x" * 90  # noqa: PTH115
        os.unlink(other)  # noqa: PTH108
        return is_kept

    def has_links() -> bool:
        os.link(path, other)
        count = os.stat(path).st_nlink  # noqa: PTH116
        os.unlink(other)  # noqa: PTH108
        return count == 2

    tried = {
        "mmap": mapped,
        "punch": lambda: zeroed(_PUNCH_HOLE),
        "zero": lambda: zeroed(_ZERO_RANGE),
        "xattr": has_xattr,
        "chmod": has_mode,
        "sparse": has_holes,
        "utimens": has_time,
        "symlink": has_symlinks,
        "link": has_links,
    }
    understood = []
    for verb, is_understood in tried.items():
        try:
            if is_understood():
                understood.append(verb)
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
    os.close(descriptor)
    os.unlink(path)  # noqa: PTH108
    return understood


def _directory(path: str, dir_fd: int | None = None) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)


def _fallocate(descriptor: int, mode: int, offset: int, length: int) -> None:
    _checked(_LIBC.fallocate(descriptor, mode, _OFFSET(offset), _OFFSET(length)))


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
