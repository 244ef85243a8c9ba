"""A large recording, views on it, and the image of one of them, to measure the opening of views."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from suites.benchmarks.servers import DISK_NAME, Work, run_fio, serve_shelf
from suites.benchmarks.settings import GIB, MIB
from torture.facts.recording.crash_state import CrashState, DiskState, Policy, write_crash_state
from torture.facts.recording.events import LOG, RECORD_BYTES
from torture.machines.host.abilities import run_host
from torture.machines.shelf.control import Control

BLOCK_BYTES = 4096
FLUSH_EVERY = 1000
_DISK_BYTES_PER_WRITE = 4 * GIB / 1_000_000
_LYING_MS = 700
_SEED = 42
_DEADLINE_S = 900

_KIND_AT = 16
"""Bytes of a record; and the numbers of its kinds there (native/README.md, "The log")."""
_WRITE_SUBMIT = 1
_FLUSH_COMPLETE = 8


def disk_bytes_for(writes: int) -> int:
    """A disk on which so many random writes leave most blocks written, some several times."""
    return max(round(writes * _DISK_BYTES_PER_WRITE) // MIB, 1) * MIB


@dataclass(kw_only=True)
class Recorded:
    """The recording `base` in `folder`, which is complete."""

    folder: Path
    disk_bytes: int
    writes: int
    flushes: int
    last: int
    """The number of its last event."""
    _opened: int = field(default=0)

    @property
    def image(self) -> Path:
        """The raw image that `make_image` makes."""
        return self.folder / "image.raw"

    def view(self, policy: Policy, cut: int) -> Path:
        """A file with this crash state."""
        path = self.folder / f"{policy}-{cut}.view.json"
        disk = DiskState(policy=policy, lying_ms=_LYING_MS if policy is Policy.LYING else None)
        view = CrashState(
            recording=self.folder / "base", cut=cut, seed=_SEED, disks={DISK_NAME: disk}
        )
        write_crash_state(path, view)
        return path

    def open(self, view: Path | None, *, offset: int) -> tuple[float, bytes]:
        """Milliseconds from starting nbdkit on a view (None: an empty disk) to its first block.

        As in a trial, nbdkit would record later writes. Returns the block as well.
        """
        self._opened += 1
        recording = f"opened-{self._opened}"
        source = None if view is None else {"view": str(view), "disk": DISK_NAME}
        begun = time.perf_counter()
        with serve_shelf(
            self.folder, disk_bytes=self.disk_bytes, recording=recording, source=source
        ) as served:
            block = served.first_read(BLOCK_BYTES, offset)
            taken_ms = (time.perf_counter() - begun) * 1000
        shutil.rmtree(self.folder / recording)
        return taken_ms, block

    def make_image(self, view: Path) -> None:
        """A full copy of the view's disk, on the host's disk as well as in its page cache."""
        source = {"view": str(view), "disk": DISK_NAME}
        with serve_shelf(
            self.folder, disk_bytes=self.disk_bytes, recording="copied", source=source
        ) as served:
            served.first_read(BLOCK_BYTES, 0)
            convert = ("qemu-img", "convert", "-f", "raw", "-O", "raw", "-S", "0")
            run_host(*convert, served.uri, str(self.image), deadline_s=_DEADLINE_S)
        shutil.rmtree(self.folder / "copied")
        descriptor = os.open(self.image, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    def copy_image(self) -> float:
        """Milliseconds that `cp` takes to copy the image to a new file, which is removed again."""
        copy = self.folder / "copy.raw"
        argv = ["cp", "--sparse=never", "--reflink=never", str(self.image), str(copy)]
        begun = time.perf_counter()
        subprocess.run(argv, check=True, timeout=_DEADLINE_S)
        taken_ms = (time.perf_counter() - begun) * 1000
        copy.unlink()
        return taken_ms

    def block_of_image(self, offset: int) -> bytes:
        """The image's bytes there."""
        with self.image.open("rb") as file:
            file.seek(offset)
            return file.read(BLOCK_BYTES)


def record(folder: Path, *, writes: int) -> Recorded:
    """Record this number of random 4 KiB writes, with flushes between them."""
    disk_bytes = disk_bytes_for(writes)
    work = Work(
        pattern="randwrite",
        block_bytes=BLOCK_BYTES,
        depth=32,
        disk_bytes=disk_bytes,
        total_bytes=writes * BLOCK_BYTES,
        flush_every=FLUSH_EVERY,
        overwrites=True,
    )
    with serve_shelf(folder, disk_bytes=disk_bytes, recording="base") as served:
        run_fio(served, work, folder=folder)
        control = Control(served.socket)
        last = control.freeze()
        control.close()
    kinds = (folder / "base" / LOG).read_bytes()[
        _KIND_AT : (last + 1) * RECORD_BYTES : RECORD_BYTES
    ]
    return Recorded(
        folder=folder,
        disk_bytes=disk_bytes,
        writes=kinds.count(_WRITE_SUBMIT),
        flushes=kinds.count(_FLUSH_COMPLETE),
        last=last,
    )


def offsets(disk_bytes: int, count: int) -> Sequence[int]:
    """Offsets of blocks spread over a disk."""
    blocks = disk_bytes // BLOCK_BYTES
    return [number * blocks // count * BLOCK_BYTES for number in range(count)]
