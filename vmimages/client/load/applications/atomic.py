"""Atomic writes: units of a bare disk, each written once, by one request that the disk must not tear.

A writer makes several of them, and then one flush, as a database does at a checkpoint.

The job has their number and length. The disk must offer that length (`atomic_write_unit_max_bytes`, Linux
Documentation/ABI/stable/sysfs-block). The kernel refuses a write with RWF_ATOMIC that it would have to
split (pwritev2(2)).
"""

from __future__ import annotations

import mmap
import os
import time

from ..blocks import BLOCK_BYTES, SECTOR_BYTES, Encoder, decode_block
from . import (
    LAZY_TRANSACTION,
    TRANSACTION,
    Application,
    Performer,
    Transaction,
    TransactionPlanner,
    found,
)

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

_RWF_ATOMIC = 0x40
"""Linux include/uapi/linux/fs.h, since 6.11; Debian's Python has no name for it."""
_FILE = 0
_WRITES_A_FLUSH = 11
"""With a few writers they fill a block of ZFS's intent log, which has 128 KiB at most."""
_SECTORS = BLOCK_BYTES // SECTOR_BYTES


class _Planner(TransactionPlanner):
    """A writer takes every `writers`-th unit, in their order on the disk."""

    def __init__(self, job: dict[str, Any], writer: int) -> None:
        super().__init__(job, writer)
        self._unsettled = 0
        self._left = iter(range(writer, job["units"], job["writers"]))

    def draw(self) -> Transaction:
        if self._unsettled == _WRITES_A_FLUSH:
            self._unsettled = 0
            return Transaction(kind=TRANSACTION, what={"settle": True})
        self._unsettled += 1
        return Transaction(kind=LAZY_TRANSACTION, what={"unit": next(self._left)})


class _Performer(Performer):
    def __init__(self, application: Atomic) -> None:
        super().__init__()
        self._unit_bytes: int = application.job["unit_bytes"]
        self._encoder = Encoder(application.job["trial"])
        self._buffer = memoryview(mmap.mmap(-1, self._unit_bytes))
        self._descriptor = os.open(application.device, os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC)

    def perform(self, transaction: Transaction, seq: int) -> None:
        begun_ns = time.monotonic_ns()
        if "settle" in transaction.what:
            self.step = "fdatasync"
            os.fdatasync(self._descriptor)
            self.durable_call_took(begun_ns)
            return
        unit: int = transaction.what["unit"]
        blocks = self._unit_bytes // BLOCK_BYTES
        self._buffer[:] = b"".join(
            self._encoder.block(file=_FILE, seq=seq, index=unit * blocks + block)
            for block in range(blocks)
        )
        self.step = "pwritev2"
        os.pwritev(self._descriptor, [self._buffer], unit * self._unit_bytes, _RWF_ATOMIC)


class Atomic(Application):
    """One disk, which all writers share."""

    def __init__(self, job: dict[str, Any]) -> None:
        super().__init__(job)
        self.device: str = job["device"]

    def begin(self) -> None:
        """Refuse a disk that does not offer such writes."""
        name = os.path.basename(os.path.realpath(self.device))  # noqa: PTH119 - slow to import
        offered = _number_in(f"/sys/block/{name}/queue/atomic_write_unit_max_bytes")
        wanted = self.job["unit_bytes"]
        if offered < wanted:
            raise SystemExit(
                f"{self.device} offers atomic writes of {offered} bytes, not of {wanted}"
            )

    def planner(self, writer: int) -> TransactionPlanner:
        """The planner of this writer's units."""
        return _Planner(self.job, writer)

    def performer(self, writer: int) -> Performer:
        """The performer of this writer's writes."""
        return _Performer(self)

    def read(self) -> dict[str, Any]:
        """The writes that are there whole, and those that are there in part."""
        whole: list[int] = []
        parts: dict[int, str] = {}
        with open(self.device, "rb", buffering=0) as disk:  # noqa: PTH123 - pathlib is slow to import
            # Linux's NVMe target refuses the 8 MiB that a read-ahead asks for
            os.posix_fadvise(disk.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            for unit in range(self.job["units"]):
                sectors = self._sectors_of(disk.read(self.job["unit_bytes"]), unit)
                seqs = {sector for sector in sectors if isinstance(sector, int)}
                if len(seqs) == 1 and set(sectors) == seqs:
                    whole.extend(seqs)
                    continue
                for seq in seqs:
                    there = f"{sectors.count(seq)} of {len(sectors)} sectors"
                    parts[seq] = f"{there} of unit {unit} are there"
        return found(whole=sorted(whole), parts=parts)

    def _sectors_of(self, data: bytes, unit: int) -> list[int | str]:
        """The origin of each sector of a unit."""
        trial, sectors = self.job["trial"], []
        first = unit * (self.job["unit_bytes"] // BLOCK_BYTES)
        for start in range(0, len(data), BLOCK_BYTES):
            index = first + start // BLOCK_BYTES
            block = decode_block(
                data[start : start + BLOCK_BYTES], trial=trial, file=_FILE, index=index
            )
            sectors += block if isinstance(block, list) else [block] * _SECTORS
        return sectors


def _number_in(path: str) -> int:
    """The number in a file of sysfs; 0 where the kernel has no such file."""
    try:
        with open(path) as file:  # noqa: PTH123 - pathlib is slow to import
            return int(file.read())
    except FileNotFoundError:
        return 0


APPLICATION = Atomic
