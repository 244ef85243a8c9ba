"""One NBD connection to the shelf, over libnbd, with a deadline on everything."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import nbd

from torture.errors import DeadlineExceeded, HarnessError

_CONNECT_DEADLINE_S = 10.0
_POLL_MS = 100


class ShelfGoneError(HarnessError):
    """The connection broke: the shelf has died, or was ended."""


class Connection:
    """A connection to one export; use it from one thread at a time."""

    def __init__(self, *, socket: Path, export: str) -> None:
        self._export = export
        self._buffers: dict[int, nbd.Buffer] = {}
        self._handle = nbd.NBD()
        self._handle.set_export_name(export)
        try:
            self._handle.aio_connect_unix(str(socket))
            self._until(lambda: not self._handle.aio_is_connecting(), _CONNECT_DEADLINE_S)
        except nbd.Error as error:
            raise ShelfGoneError(f"no connection to {export!r} on the shelf: {error}") from error
        if not self._handle.aio_is_ready():
            raise ShelfGoneError(f"the shelf refused a connection to {export!r}")

    def write(self, data: bytes, offset: int = 0, *, deadline_s: float) -> None:
        """Return once the write is acknowledged.

        Raises `ShelfGoneError`, `DeadlineExceeded` (a frozen shelf never answers), or
        `HarnessError` when the shelf refuses it.
        """
        buffer = self._buffer(len(data))
        buffer.to_buffer()[:] = data
        self._command(lambda: self._handle.aio_pwrite(buffer, offset), deadline_s)

    def read(self, length: int, offset: int = 0, *, deadline_s: float) -> bytes:
        """The bytes there; raises as `write` does."""
        buffer = self._buffer(length)
        self._command(lambda: self._handle.aio_pread(buffer, offset), deadline_s)
        return bytes(buffer.to_bytearray())

    def close(self) -> None:
        """Drop the connection without a disconnect, as a dying client does."""
        del self._handle  # libnbd closes a handle without references

    def _buffer(self, length: int) -> nbd.Buffer:
        """One buffer for each length: libnbd's Python module (1.14) never releases a buffer."""
        if length not in self._buffers:
            self._buffers[length] = nbd.Buffer.from_bytearray(bytearray(length))
        return self._buffers[length]

    def _command(self, begin: Callable[[], int], deadline_s: float) -> None:
        try:
            cookie = begin()
            self._until(lambda: self._has_ended(cookie), deadline_s)
        except nbd.Error as error:
            kind = HarnessError if self._handle.aio_is_ready() else ShelfGoneError
            raise kind(f"the shelf's export {self._export!r}: {error}") from error

    def _has_ended(self, cookie: int) -> bool:
        return bool(self._handle.aio_command_completed(cookie))

    def _until(self, is_over: Callable[[], bool], deadline_s: float) -> None:
        end = time.monotonic() + deadline_s
        while not is_over():
            left_ms = (end - time.monotonic()) * 1000
            if left_ms <= 0:
                raise DeadlineExceeded(
                    f"{self._export!r} on the shelf gave no answer in {deadline_s:g} s"
                )
            self._handle.poll(max(1, min(_POLL_MS, int(left_ms))))
