"""Proof before use: the write caches of the whole chain, and a client's flush that reaches the disks.

A chain that drops flushes would find every setting unsafe, one without caches every setting safe.
"""

from __future__ import annotations

from torture.errors import HarnessError
from torture.evidence.folder import PROOF, write_document
from torture.filesystems import DEVICE
from torture.lab.machine import Machine
from torture.matrix.axes import Sync
from torture.nas import pool
from torture.nas.slog import slog_layout
from torture.recording.events import LOG, RECORD_BYTES, Kind, parse_event
from torture.trial.context import TrialContext

_DEADLINE_S = 60
_FLUSHED_WRITE = f"dd if=/dev/urandom of={DEVICE} bs=4096 count=1 conv=fsync status=none"


def prove(
    context: TrialContext, *, nas_caches: dict[str, str], nas: Machine, client: Machine
) -> None:
    """Assert the chain from the client's flush to the shelf, and keep what was seen as evidence.

    Raises `HarnessError` when a cache is not write-back, or when the cell says that a flush must
    arrive at the disks that hold the ZIL and none did.
    """
    caches = {
        **{f"nas/{serial}": cache for serial, cache in nas_caches.items()},
        "nas/zvol": _cache_of(nas, pool.ZVOL_DEVICE),
        "client": _cache_of(client, DEVICE),
    }
    flushes = _flushes_of_a_synced_write(context, client)
    is_required = context.spec.cell.sync is not Sync.DISABLED
    seen = {"write_cache": caches, "flushes": flushes, "flush_required": is_required}
    write_document(context.folder, PROOF, seen)
    if wrong := {where: cache for where, cache in caches.items() if cache != "write back"}:
        raise HarnessError(f"not write-back, so nothing would be tested: {wrong}")
    holders = (
        slog_layout(context.spec.cell.slog, context.spec.cell.slog_class).disks or context.disks
    )
    if is_required and not any(flushes.get(disk.serial) for disk in holders):
        raise HarnessError(
            f"a flush of the client did not reach the disks with the ZIL: {flushes}",
            hint=f"read {context.folder / PROOF}",
        )


def _cache_of(machine: Machine, device: str) -> str:
    script = f"cat /sys/block/$(basename $(readlink -f {device}))/queue/write_cache"
    return machine.must("sh", "-c", script, deadline_s=_DEADLINE_S).stdout.strip()


def _flushes_of_a_synced_write(context: TrialContext, client: Machine) -> dict[str, int]:
    """Flushes that each disk completed while the client wrote and synced one block."""
    before = context.shelf.control.status().seq
    client.must("sh", "-c", _FLUSHED_WRITE, deadline_s=_DEADLINE_S)
    after = context.shelf.control.status().seq
    counts = dict.fromkeys((disk.serial for disk in context.disks), 0)
    with (context.shelf.recording / LOG).open("rb") as log:
        log.seek((before + 1) * RECORD_BYTES)
        for _ in range(after - before):
            event = parse_event(log.read(RECORD_BYTES))
            if event.kind is Kind.FLUSH_COMPLETE and event.disk is not None and not event.error:
                counts[context.disks[event.disk].serial] += 1
    return counts
