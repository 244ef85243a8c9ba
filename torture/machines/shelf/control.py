"""Connections to the shelf over libnbd, and its control: freeze it, query it, write marks into it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbd

from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.evidence.documents import strictly
from torture.facts.recording.events import Kind
from torture.facts.recording.intent_log import Role

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
            self._until(lambda: bool(self._handle.aio_command_completed(cookie)), deadline_s)
        except nbd.Error as error:
            kind = HarnessError if self._handle.aio_is_ready() else ShelfGoneError
            raise kind(f"the shelf's export {self._export!r}: {error}") from error

    def _until(self, is_over: Callable[[], bool], deadline_s: float) -> None:
        end = time.monotonic() + deadline_s
        while not is_over():
            left_ms = (end - time.monotonic()) * 1000
            if left_ms <= 0:
                raise DeadlineExceeded(
                    f"{self._export!r} on the shelf gave no answer in {deadline_s:g} s"
                )
            self._handle.poll(max(1, min(_POLL_MS, int(left_ms))))


_STATUS_BYTES = 8192
"""Enough for the disks of a NAS; the rest of the export is padding."""
_DEADLINE_S = 10.0
_MARK_DEADLINE_S = 30.0
"""Longer than a frozen shelf lives: it is killed right after the machines."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShelfStatus:
    """The status of the shelf. `seq` is the last event's number; once frozen, the cut."""

    frozen: bool
    seq: int
    errors: int
    last_error: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FreezeOn:
    """The event to freeze with: the `count`-th of its kind, role and disk from now on; None is any.

    An event counts only if its disk then has `zil_uncovered` blocks of the intent log that no flush
    covers. With `is_zil_reused` one of them must lie where an older block of the log was.
    """

    event: Kind
    role: Role | None = None
    disk: str | None = None
    count: int = 1
    zil_uncovered: int = 0
    is_zil_reused: bool = False

    def as_json(self) -> dict[str, Any]:
        """The form that the export `control` takes."""
        wanted: dict[str, object] = {
            "disk": self.disk,
            "role": self.role,
            "zil_uncovered": self.zil_uncovered,
            "zil_reused": self.is_zil_reused,
        }
        given = {key: value for key, value in wanted.items() if value}
        return {"event": self.event, "count": self.count, **given}


class Control:
    """The shelf's export `control`."""

    def __init__(self, socket: Path) -> None:
        self._connection = Connection(socket=socket, export="control")

    def freeze(self) -> int:
        """Freeze all disks: they accept and acknowledge nothing afterwards. Returns the cut's number."""
        self._obey("now")
        return self.status().seq

    def freeze_on(self, trigger: FreezeOn) -> None:
        """Make the shelf freeze by itself with an event to come."""
        self._obey(trigger.as_json())

    def halt_with_freeze(self, pids: Sequence[int]) -> None:
        """Make the shelf stop these processes as it freezes; raises `HarnessError` when one is gone."""
        self._command({"halt": list(pids)})

    def turn(self, sources: Mapping[str, Mapping[str, str]]) -> None:
        """Give disks another content; raises `HarnessError` when the shelf refuses it."""
        self._command({"turn": sources})

    def slow(self, times: float) -> None:
        """Make all disks so many times as slow as their profiles say; 0: as fast as the host allows."""
        self._command({"slow": times})

    def status(self) -> ShelfStatus:
        """Its present status; raises `HarnessError` when the shelf does not report it."""
        text = self._connection.read(_STATUS_BYTES, deadline_s=_DEADLINE_S).decode()
        return strictly(ShelfStatus, json.loads(text))

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _obey(self, freeze: object) -> None:
        self._command({"freeze": freeze})

    def _command(self, command: dict[str, object]) -> None:
        self._connection.write(json.dumps(command).encode(), deadline_s=_DEADLINE_S)


class MarkWriter:
    """The shelf's export `marks`; connects at the first mark."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._connection: Connection | None = None
        self.spans_ns: list[tuple[int, int]] = []
        """For each mark in the last server's recording: its times of sending and acknowledgement,
        by the host's clock."""

    def write(self, payload: bytes) -> bool:
        """Whether the payload is in the recording; False when the shelf was frozen or ended before.

        Raises `HarnessError` when the shelf refuses it.
        """
        try:
            if self._connection is None:
                self._connection = Connection(socket=self._socket, export="marks")
                self.spans_ns = []
            sent_ns = time.time_ns()
            self._connection.write(payload, deadline_s=_MARK_DEADLINE_S)
            self.spans_ns.append((sent_ns, time.time_ns()))
        except (ShelfGoneError, DeadlineExceeded):
            self._connection = None  # the NAS may come back, on another shelf
            return False
        return True
