"""The measured nbdkit: started, read for a first byte, ended by SIGKILL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbd

from torture.deadlines import wait_for
from torture.errors import HarnessError
from torture.machines.shelf.server import Launch, NbdkitProcess, write_configuration

DISK_NAME = "data0"

_DEADLINE_S = 300
"""For the first read of a view whose index has to be built, on a slow disk."""
_POLL_S = 0.0005
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """A running nbdkit, and the one disk it serves."""

    process: NbdkitProcess
    export: str

    @property
    def socket(self) -> Path:
        """Its socket."""
        return self.process.socket

    @property
    def uri(self) -> str:
        """The disk's address for fio and QEMU."""
        return f"nbd+unix:///{self.export}?socket={self.socket}"

    def processor_s(self) -> float:
        """The processor time it has used so far, user and system."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / _TICKS_PER_S

    def memory_bytes(self, field: str) -> int:
        """A field of its `/proc/PID/status`, as `RssAnon`."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == field:
                return int(value.split()[0]) * 1024
        raise HarnessError(f"/proc/{self.process.pid}/status has no {field}")

    def first_read(self, length: int, offset: int) -> bytes:
        """Read these bytes over a separate connection, trying until the server is there."""

        def read() -> bytes | None:
            handle = nbd.NBD()
            handle.set_export_name(self.export)
            try:
                handle.connect_unix(str(self.socket))
            except nbd.Error:
                return None
            return bytes(handle.pread(length, offset))

        return wait_for(
            read,
            what=f"answer on {self.socket}",
            deadline_s=_DEADLINE_S,
            poll_s=_POLL_S,
            poll_max_s=_POLL_S,
        )


@cache
def _launch() -> Launch:
    """Found once: the search time is not part of the measurement."""
    return Launch.of_shelf()


@contextmanager
def serve_shelf(
    folder: Path, *, disk_bytes: int, recording: str, source: dict[str, Any] | None = None
) -> Iterator[Served]:
    """The shelf with one disk, recorded in `folder`; returns before it answers."""
    disk = {"name": DISK_NAME, "size": disk_bytes} | ({"source": source} if source else {})
    configuration = folder / f"{recording}.json"
    write_configuration(configuration, [disk], recording=recording)
    with _serve(folder, _launch(), f"config={configuration}", export=DISK_NAME) as served:
        yield served


@contextmanager
def serve_file(folder: Path, *, disk_bytes: int) -> Iterator[Served]:
    """The `file` plugin of nbdkit with a new sparse file in `folder`, which is removed in the end."""
    image = folder / "raw.img"
    with image.open("wb") as file:
        file.truncate(disk_bytes)
    try:
        with _serve(folder, Launch(plugin="file"), str(image), export="") as served:
            yield served
    finally:
        image.unlink()


@contextmanager
def _serve(folder: Path, launch: Launch, *arguments: str, export: str) -> Iterator[Served]:
    server = NbdkitProcess(
        launch, *arguments, socket=folder / "nbd.sock", errors=folder / "nbdkit.err"
    )
    try:
        yield Served(process=server, export=export)
        if server.exit_code is not None:
            raise HarnessError(f"nbdkit ended by itself: {server.output()}")
    finally:
        server.kill()
