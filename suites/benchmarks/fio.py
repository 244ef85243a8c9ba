"""fio as the client (fio(1), ioengine nbd)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from suites.benchmarks.servers import Served
from torture.errors import DeadlineExceeded, HarnessError

_DEADLINE_S = 1800
_POLL_S = 0.02


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
    for _ in range(round(_DEADLINE_S / _POLL_S)):
        try:
            client.wait(_POLL_S)
            return
        except subprocess.TimeoutExpired:
            watch()
    raise DeadlineExceeded(f"fio did not end within {_DEADLINE_S} s")
