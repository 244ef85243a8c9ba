"""Carries out an operation, on files in a directory or on regions of a bare device."""

from __future__ import annotations

import errno
import mmap
import os
import time

from . import plan
from .blocks import BLOCK_BYTES, SECTOR_BYTES, Encoder
from .plan import Operation

TEMPORARY_SUFFIX = ".tmp"


def file_name(file: int) -> str:
    """The name of a file in the load's directory."""
    return f"f{file:05d}"


class Storage:
    """The common part of both kinds; `step` names the present system call, for reports of failures."""

    def __init__(self, encoder: Encoder, blocks_max: int) -> None:
        self._encoder = encoder
        self._aligned = memoryview(mmap.mmap(-1, blocks_max * BLOCK_BYTES))
        """O_DIRECT takes only buffers that start where a page does."""
        self.step = ""
        self.sync_ms: list[float] = []
        """The time of each durable call: fsync, fdatasync, or a write through O_DSYNC."""
        self.thought_ms = 0.0

    def take_times(self) -> tuple[list[float], float]:
        """`sync_ms`, and the milliseconds slept, since the last call."""
        taken = self.sync_ms, self.thought_ms
        self.sync_ms, self.thought_ms = [], 0.0
        return taken

    def perform(self, operation: Operation, seq: int) -> None:
        """Carry out an operation; returns once it is as durable as its kind says; raises `OSError`."""
        raise NotImplementedError

    def _write_blocks(self, descriptor: int, operation: Operation, seq: int, base: int) -> None:
        self.step = "pwrite"
        is_durable = operation.kind == plan.DSYNC
        for first, count in _runs(operation.blocks):
            encoded = b"".join(
                self._encoder.block(file=operation.file, seq=seq, index=index)
                for index in range(first, first + count)
            )
            data = self._aligned[: len(encoded)]
            data[:] = encoded
            offset = base + first * BLOCK_BYTES
            if operation.sectors is not None:  # its blocks are never neighbours: it has one
                skipped, length = (count * SECTOR_BYTES for count in operation.sectors)
                data, offset = data[skipped : skipped + length], offset + skipped
            while data:
                begun_ns = time.monotonic_ns()
                written = os.pwrite(descriptor, data, offset)
                if is_durable:
                    self.sync_ms.append(ms_since(begun_ns))
                data, offset = data[written:], offset + written

    def _write_directly(
        self, path: str, operation: Operation, seq: int, base: int, *, dir_fd: int | None = None
    ) -> bool:
        """Write past the page cache; False where filesystem or disk do not support that (EINVAL)."""
        self.step = "open"
        flags = os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, dir_fd=dir_fd)
            try:
                self._write_blocks(descriptor, operation, seq, base)
            finally:
                os.close(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return False
        return True

    def _think(self, descriptor: int, operation: Operation) -> None:
        """Start the writeback, and let some time pass."""
        if operation.think_ms:
            self._sync(descriptor, plan.PUSH)
            begun_ns = time.monotonic_ns()
            time.sleep(operation.think_ms / 1000)
            self.thought_ms += ms_since(begun_ns)

    def _sync(self, descriptor: int, how: str) -> None:
        if how == plan.NONE:
            return
        self.step = how
        if how == plan.PUSH:
            # Linux starts writing dirty pages out upon this advice (mm/fadvise.c), and no flush.
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            return
        begun_ns = time.monotonic_ns()
        if how == "fdatasync":
            os.fdatasync(descriptor)
        else:
            os.fsync(descriptor)
        self.sync_ms.append(ms_since(begun_ns))


class FileStorage(Storage):
    """Files in one directory.

    Each stays open until its last operation, so that writeback errors reach its next fsync.
    """

    def __init__(self, encoder: Encoder, directory: str, blocks_max: int) -> None:
        super().__init__(encoder, blocks_max)
        self._directory = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._open_files: dict[int, int] = {}

    def perform(self, operation: Operation, seq: int) -> None:
        """Carry out an operation; returns once it is as durable as its kind says; raises `OSError`."""
        name = file_name(operation.file)
        match operation.kind:
            case plan.CREATE:
                self._fill_new(name, operation, seq)
                self._sync(self._directory, "fsync")
            case plan.REPLACE:
                self._close(operation.file)
                self._fill_new(name + TEMPORARY_SUFFIX, operation, seq)
                self._rename(name + TEMPORARY_SUFFIX, name)
                self._sync(self._directory, "fsync")
            case plan.UNLINK:
                self._close(operation.file)
                self.step = "unlink"
                os.unlink(name, dir_fd=self._directory)
                self._sync(self._directory, "fsync")
            case plan.DSYNC:
                descriptor = self._open(name, os.O_WRONLY | os.O_DSYNC)
                try:
                    self._write_blocks(descriptor, operation, seq, 0)
                finally:
                    os.close(descriptor)
            case _:
                self._write_and_sync(name, operation, seq, operation.sync)
        if operation.is_last:
            self._close(operation.file)

    def _fill_new(self, name: str, operation: Operation, seq: int) -> None:
        self._open_files[operation.file] = self._open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        self._write_and_sync(name, operation, seq, "fsync")

    def _write_and_sync(self, name: str, operation: Operation, seq: int, how: str) -> None:
        descriptor = self._open_files[operation.file]
        is_written = operation.is_direct and self._write_directly(
            name, operation, seq, 0, dir_fd=self._directory
        )
        if not is_written:
            self._write_blocks(descriptor, operation, seq, 0)
        self._think(descriptor, operation)
        self._sync(descriptor, how)

    def _open(self, name: str, flags: int) -> int:
        self.step = "open"
        return os.open(name, flags | os.O_CLOEXEC, 0o644, dir_fd=self._directory)

    def _rename(self, old: str, new: str) -> None:
        self.step = "rename"
        os.rename(old, new, src_dir_fd=self._directory, dst_dir_fd=self._directory)

    def _close(self, file: int) -> None:
        # Errors of scribbles are dropped with the file: no scribble was acknowledged.
        descriptor = self._open_files.pop(file)
        self.step = "close"
        os.close(descriptor)


class RawStorage(Storage):
    """Regions of a bare device, one a file number, each `blocks_max` blocks long."""

    def __init__(self, encoder: Encoder, device: str, blocks_max: int) -> None:
        super().__init__(encoder, blocks_max)
        self._device = device
        self._region_bytes = blocks_max * BLOCK_BYTES
        self._plain = os.open(device, os.O_RDWR | os.O_CLOEXEC)
        self._synchronous = os.open(device, os.O_RDWR | os.O_DSYNC | os.O_CLOEXEC)

    def perform(self, operation: Operation, seq: int) -> None:
        """Carry out an operation; returns once it is as durable as its kind says; raises `OSError`."""
        base = operation.file * self._region_bytes
        if operation.kind == plan.DSYNC:
            self._write_blocks(self._synchronous, operation, seq, base)
            return
        is_written = operation.is_direct and self._write_directly(
            self._device, operation, seq, base
        )
        if not is_written:
            self._write_blocks(self._plain, operation, seq, base)
        self._think(self._plain, operation)
        self._sync(self._plain, operation.sync)


def ms_since(begun_ns: int) -> float:
    """Milliseconds since a reading of `time.monotonic_ns`, to a microsecond."""
    return (time.monotonic_ns() - begun_ns) // 1000 / 1000


def _runs(blocks: tuple[int, ...]) -> list[tuple[int, int]]:
    """Ascending block numbers as (first, count) of consecutive ones."""
    runs: list[tuple[int, int]] = []
    for block in blocks:
        if runs and block == sum(runs[-1]):
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((block, 1))
    return runs
