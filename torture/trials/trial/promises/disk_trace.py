"""Who tells what the client's disk was asked, and what it completed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torture.errors import HarnessError
from torture.facts.evidence.block_requests import BlockRequest, parse_trace
from torture.facts.evidence.file_requests import FileRequest
from torture.facts.wire.disk_requests import DiskWire
from torture.facts.wire.files_on_wire import FileWire
from torture.facts.wire.frames import read_frames
from torture.machines.lab.network.packets import PacketRecorder


class DiskTrace(Protocol):
    """What is told of one disk, by the host's clock."""

    @property
    def error_ns(self) -> int:
        """By how much its times may be too early."""

    def requests(self) -> tuple[BlockRequest | FileRequest, ...]:
        """All that were completed since they were last asked for; raises `HarnessError`."""

    def close(self) -> None:
        """Listen no more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToldByQemu:
    """A disk of the client's QEMU, which writes `file`: all of it, whenever it is asked for."""

    file: Path
    error_ns: int = 1_000
    """It tells microseconds, the rest cut off."""

    def requests(self) -> tuple[BlockRequest, ...]:
        """What its lines say."""
        try:
            return parse_trace(self.file.read_text(errors="replace"))
        except OSError as error:
            raise HarnessError(f"QEMU told nothing of the client's disk: {error}") from error

    def close(self) -> None:
        """QEMU ends with its machine."""


class ToldOnWire:
    """A disk of the client's kernel: what passes the NAS's network card, from connections' beginnings on.

    `listen` is given a file to write down what passes; the files stand beside the recordings. They end
    with the last of the `cuts`: whoever checks a disk reads all of it.
    """

    error_ns = 0

    def __init__(
        self,
        wire: DiskWire | FileWire,
        *,
        sector_bytes: int,
        cuts: int,
        folder: Path,
        listen: Callable[[Path], PacketRecorder],
    ) -> None:
        self._wire = wire
        self._sector_bytes = sector_bytes
        self._cuts = cuts
        self._folder = folder
        self._listen = listen
        self._files = 0
        self._recorder = self._next()

    def _next(self) -> PacketRecorder:
        self._files += 1
        return self._listen(self._folder / f"wire-{self._files}.pcap")

    def requests(self) -> tuple[BlockRequest | FileRequest, ...]:
        """What passed; a NAS that comes back is spoken to over new connections."""
        self._recorder.stop()
        frames = read_frames(self._recorder.file)
        heard = self._wire.requests(frames, sector_bytes=self._sector_bytes)
        if self._files < self._cuts:
            self._recorder = self._next()
        return heard

    def close(self) -> None:
        """Stop listening."""
        self._recorder.stop()
