"""Records of the requests to the client's disk, and of their completions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torture.errors import HarnessError
from torture.facts.evidence.requests import BlockRequest, FileRequest, parse_trace
from torture.facts.wire.disk_requests import DiskWire
from torture.facts.wire.files_on_wire import FileWire
from torture.facts.wire.frames import read_frames
from torture.machines.lab.network.packets import PacketRecorder


class DiskTrace(Protocol):
    """The requests to one disk, by the host's clock."""

    @property
    def error_ns(self) -> int:
        """The maximum number of nanoseconds by which its times may be too early."""

    def requests(self) -> tuple[BlockRequest | FileRequest, ...]:
        """All requests that completed since the last call; raises `HarnessError`."""

    def close(self) -> None:
        """Stop recording."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QemuTrace:
    """The trace of a disk of the client's QEMU, which writes `file`: each call reads all of it."""

    file: Path
    error_ns: int = 1_000
    """QEMU writes whole microseconds, rounded down."""

    def requests(self) -> tuple[BlockRequest, ...]:
        """The requests in its lines."""
        try:
            return parse_trace(self.file.read_text(errors="replace"))
        except OSError as error:
            raise HarnessError(f"QEMU wrote no trace of the client's disk: {error}") from error

    def close(self) -> None:
        """QEMU ends with its machine."""


class WireTrace:
    """The trace of a disk of the client's kernel: the frames of its connections to the NAS.

    `listen` writes the frames into a file; the files are beside the recordings. Each of the `spans`
    ends with a call of `requests`: the client that checks a disk reads all of it.
    """

    error_ns = 0

    def __init__(
        self,
        wire: DiskWire | FileWire,
        *,
        sector_bytes: int,
        spans: int,
        folder: Path,
        listen: Callable[[Path], PacketRecorder],
    ) -> None:
        self._wire = wire
        self._sector_bytes = sector_bytes
        self._spans = spans
        self._folder = folder
        self._listen = listen
        self._files = 0
        self._recorder = self._next()

    def _next(self) -> PacketRecorder:
        self._files += 1
        return self._listen(self._folder / f"wire-{self._files}.pcap")

    def requests(self) -> tuple[BlockRequest | FileRequest, ...]:
        """The requests in the frames; a NAS that comes back has new connections."""
        self._recorder.stop()
        frames = read_frames(self._recorder.file)
        requests = self._wire.requests(frames, sector_bytes=self._sector_bytes)
        if self._files < self._spans:
            self._recorder = self._next()
        return requests

    def close(self) -> None:
        """Stop listening."""
        self._recorder.stop()
