"""The nbdkit that is measured: started, asked for its first byte, ended by SIGKILL."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbd

from torture.deadlines import wait_for
from torture.errors import HarnessError
from torture.host.native import shelf_plugin

DISK_NAME = "data0"

_DEADLINE_S = 300
"""For the first read of a view whose index has to be built, on a slow disk."""
_POLL_S = 0.0005
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """An nbdkit that runs, and the one disk it serves."""

    pid: int
    socket: Path
    export: str

    @property
    def uri(self) -> str:
        """The disk's address, as fio and QEMU take it."""
        return f"nbd+unix:///{self.export}?socket={self.socket}"

    def processor_s(self) -> float:
        """The processor time it has taken so far, user and system."""
        stat = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / _TICKS_PER_S

    def memory_bytes(self, field: str) -> int:
        """A field of its `/proc/PID/status`, as `RssAnon`."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == field:
                return int(value.split()[0]) * 1024
        raise HarnessError(f"/proc/{self.pid}/status has no {field}")

    def first_read(self, length: int, offset: int) -> bytes:
        """These bytes, over a connection of its own: asked for until the server is there."""

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
def _plugin() -> str:
    """Looked for once: how long that takes is no part of what is measured."""
    return str(shelf_plugin())


@contextmanager
def serve_shelf(
    folder: Path, *, disk_bytes: int, recording: str, source: dict[str, Any] | None = None
) -> Iterator[Served]:
    """The shelf with one disk, recorded in `folder`; returns before it answers."""
    disk = {"name": DISK_NAME, "size": disk_bytes} | ({"source": source} if source else {})
    configuration = folder / f"{recording}.json"
    configuration.write_text(json.dumps({"schema": 1, "recording": recording, "disks": [disk]}))
    arguments = (_plugin(), f"config={configuration}")
    with _serve(folder, arguments, export=DISK_NAME) as served:
        yield served


@contextmanager
def serve_file(folder: Path, *, disk_bytes: int) -> Iterator[Served]:
    """The `file` plugin of nbdkit with a new sparse file in `folder`, which is removed in the end."""
    image = folder / "raw.img"
    with image.open("wb") as file:
        file.truncate(disk_bytes)
    try:
        with _serve(folder, ("file", str(image)), export="") as served:
            yield served
    finally:
        image.unlink()


@contextmanager
def _serve(folder: Path, arguments: tuple[str, ...], *, export: str) -> Iterator[Served]:
    socket = folder / "nbd.sock"
    socket.unlink(missing_ok=True)
    with (folder / "nbdkit.err").open("ab") as errors:
        server = subprocess.Popen(
            ["nbdkit", "--foreground", "--unix", str(socket), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
        )
    try:
        yield Served(pid=server.pid, socket=socket, export=export)
        if server.poll() is not None:
            said = (folder / "nbdkit.err").read_text(errors="replace")
            raise HarnessError(f"nbdkit ended by itself: {said}")
    finally:
        server.kill()
        server.wait()
