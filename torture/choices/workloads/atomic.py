"""Atomic writes of 16 KiB on a bare disk that offers them: a cut leaves each whole, or none of it.

Linux takes NVMe's NAWUPF for the longest write that a loss of power does not tear (NVM Command Set 1.0,
2.1.4; `nvme_configure_atomic_write`, drivers/nvme/host/core.c). The guest's half is
`vmimages/client/load/applications/atomic.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import Place, Workload
from torture.facts.axes.axis import Choice

_UNIT_BYTES = 16384
"""A zvol's `volblocksize` by default (zfsprops(7)), which Linux's nvmet passes on as NAWUPF."""
_UNITS = 4096
"""64 MiB: more than a load writes, and quick to read back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AtomicWrites(ApplicationWorkload):
    """Each write has a unit of the disk of its own, and is durable with its writer's next flush.

    A disk may lose unflushed writes in any order. ZFS loses a writer's last ones. Its intent log is
    one chain, and a write is in no earlier transaction group than the one before it.
    """

    needs_files: bool = False
    needs_atomic_writes: bool = True

    def job(self, *, seed: int, place: Place) -> dict[str, Any]:
        """Any application's job, with the disk, and the number and length of its units."""
        # `super()` does not know the new class that slots made
        job = ApplicationWorkload.job(self, seed=seed, place=place)
        return job | {"device": place.device, "unit_bytes": _UNIT_BYTES, "units": _UNITS}


CHOICE: Choice[Workload] = Choice(
    name="atomic",
    value=AtomicWrites(name="atomic", application="atomic", has_one_order=False),
    words="atomic writes of 16 KiB",
    explained="writes with `RWF_ATOMIC` on the bare disk, as a database without a double-write buffer",
)
