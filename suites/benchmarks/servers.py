"""The measured nbdkit: started, read for a first byte, ended by SIGKILL; fio(1) as its client."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbd

from torture.deadlines import wait_for
from torture.errors import DeadlineExceeded, HarnessError
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


_FIO_DEADLINE_S = 1800
_FIO_POLL_S = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """The writes of fio: `total_bytes` in blocks over a disk of `disk_bytes`, so many at once."""

    pattern: str
    """fio's `rw`."""
    block_bytes: int
    depth: int
    disk_bytes: int
    total_bytes: int
    flush_every: int = 0
    """Writes between two flushes; 0: none at all."""
    overwrites: bool = False
    """Whether fio may rewrite a random block before it has written every other."""

    def arguments(self) -> tuple[str, ...]:
        """The arguments of fio."""
        return (
            f"--rw={self.pattern}",
            f"--bs={self.block_bytes}",
            f"--iodepth={self.depth}",
            f"--size={self.disk_bytes}",
            f"--io_size={self.total_bytes}",
            f"--fsync={self.flush_every}",
            f"--norandommap={int(self.overwrites)}",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """The result of fio."""

    writes: int
    writes_per_s: float
    server_us_per_write: float
    """Processor time of the server."""


def run_fio(
    served: Served, work: Work, *, folder: Path, watch: Callable[[], None] = lambda: None
) -> Done:
    """Run fio on the server; `watch` is called every few milliseconds meanwhile.

    Raises `HarnessError` with fio's output when it fails.
    """
    served.first_read(4096, 0)
    output, errors = folder / "fio.json", folder / "fio.err"
    argv = [
        "fio", "--name=bench", "--ioengine=nbd", f"--uri={served.uri}", *work.arguments(),
        "--output-format=json", f"--output={output}",
    ]  # fmt: skip
    before_s = served.processor_s()
    with errors.open("wb") as output_of_fio:
        client = subprocess.Popen(
            argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=output_of_fio, stderr=output_of_fio
        )
    try:
        _wait(client, watch)
    finally:
        client.kill()
        client.wait()
    if client.returncode != 0:
        raise HarnessError(f"fio returned {client.returncode}: {errors.read_text()}")
    written = json.loads(output.read_text())["jobs"][0]["write"]
    taken_s = served.processor_s() - before_s
    return Done(
        writes=written["total_ios"],
        writes_per_s=written["iops"],
        server_us_per_write=taken_s / written["total_ios"] * 1e6,
    )


def _wait(client: subprocess.Popen[bytes], watch: Callable[[], None]) -> None:
    for _ in range(round(_FIO_DEADLINE_S / _FIO_POLL_S)):
        try:
            client.wait(_FIO_POLL_S)
            return
        except subprocess.TimeoutExpired:
            watch()
    raise DeadlineExceeded(f"fio did not end within {_FIO_DEADLINE_S} s")
