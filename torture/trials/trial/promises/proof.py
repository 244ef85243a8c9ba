"""Proof before use: the write caches of the whole chain, and a client's flush that reaches the disks.

A chain that drops flushes would find every setting unsafe, one without caches every setting safe.
"""

from __future__ import annotations

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.guarantees import flushes_its_log
from torture.choices.volumes import VolumeKind, zvol
from torture.errors import HarnessError
from torture.facts.axes.sync import Sync
from torture.facts.evidence.folder import PROOF, write_document
from torture.facts.recording.events import LOG, RECORD_BYTES, Kind, parse_event
from torture.machines.lab.machine import Machine
from torture.machines.nas import pool
from torture.machines.nas.settings import settings_of
from torture.machines.nas.slog import slog_layout
from torture.shell import write_cache_of
from torture.trials.trial.context import TrialContext

_DEADLINE_S = 60
_WRITE_BACK = "write back"


def prove(context: TrialContext, *, nas: Machine, client: Machine) -> None:
    """Assert the chain from the client's flush to the shelf, and keep what was seen as evidence.

    Raises `HarnessError` when a cache is not write-back, when a setting of the cell is not in effect,
    or when the cell says that a flush must arrive at the disks that hold the ZIL and none did. Where ZFS
    itself is doubted, one that reached the volume is enough: what became of it is the trial's question.
    """
    cell = context.spec.cell
    scripts = pool.cache_scripts(context.disks) | dict(context.transport.cache_scripts())
    asked = {setting.name: setting for setting in settings_of(cell)}
    printed = _printed_by(nas, scripts | {name: setting.script for name, setting in asked.items()})
    caches = {f"nas/{name}": printed[name] for name in scripts}
    settings = {name: printed[name] for name in asked}
    if context.attachment.device is not None and context.attachment.has_write_cache:
        caches |= _printed_by(client, {"client": write_cache_of(context.attachment.device)})
    flushes = _flushes_of_a_synced_write(context, client)
    is_required = _must_flush(context)
    holders = slog_layout(cell).disks or context.disks
    is_missing = is_required and not any(flushes.get(disk.serial) for disk in holders)
    is_doubted = is_missing and context.spec.flush_is_doubted
    seen = {
        "write_cache": caches,
        "settings": settings,
        "flushes": flushes,
        "flush_required": is_required,
        "flushes_of_volume": _flushes_of_volume(context, nas, client) if is_doubted else None,
    }
    write_document(context.folder, PROOF, seen)
    if wrong := {where: cache for where, cache in caches.items() if cache != _WRITE_BACK}:
        raise HarnessError(f"not write-back, so nothing would be tested: {wrong}")
    if unset := {name: seen for name, seen in settings.items() if seen != asked[name].expected}:
        raise HarnessError(f"what the cell sets is not in effect: {unset}")
    if is_missing and not seen["flushes_of_volume"]:
        raise HarnessError(
            f"a flush of the client did not reach the disks with the ZIL: {flushes}",
            hint=f"read {context.folder / PROOF}",
        )


def _must_flush(context: TrialContext) -> bool:
    """Whether a synced write of the client must reach the ZIL in this cell."""
    options = context.volume_options
    if not flushes_its_log(context.spec.cell):
        return False
    if options.is_exported_async:
        return options.sync is Sync.ALWAYS
    return options.sync is not Sync.DISABLED


def _printed_by(machine: Machine, scripts: dict[str, str]) -> dict[str, str]:
    """The line that each of these prints, by its name, in one round trip."""
    if not scripts:
        return {}
    script = "\n".join(["set -eu", *scripts.values()])
    lines = machine.must("sh", "-c", script, deadline_s=_DEADLINE_S).stdout.splitlines()
    if len(lines) != len(scripts):
        raise HarnessError(f"{machine.name} printed {lines} for {', '.join(scripts)}")
    return dict(zip(scripts, lines, strict=True))


def _flushes_of_volume(context: TrialContext, nas: Machine, client: Machine) -> int:
    """Flushes that the kernel of the NAS handed to the volume meanwhile; none where it is no zvol."""
    if context.transport.traits.volume is not VolumeKind.ZVOL:
        return 0
    nas.must("sh", "-c", zvol.begin_flush_trace_script(), deadline_s=_DEADLINE_S)
    _write_and_sync(context, client)
    counted = nas.must("sh", "-c", zvol.end_flush_trace_script(), deadline_s=_DEADLINE_S)
    return int(counted.stdout)


def _write_and_sync(context: TrialContext, client: Machine) -> None:
    """Have the client write one block, and sync it."""
    target = f"{MOUNT_POINT}/.proof" if context.is_mounted else context.device
    write = f"dd if=/dev/urandom of={target} bs=4096 count=1 conv=fsync status=none"
    client.must("sh", "-c", write, deadline_s=_DEADLINE_S)


def _flushes_of_a_synced_write(context: TrialContext, client: Machine) -> dict[str, int]:
    """Flushes that each disk completed while the client wrote and synced one block."""
    before = context.shelf.control.status().seq
    _write_and_sync(context, client)
    after = context.shelf.control.status().seq
    counts = dict.fromkeys((disk.serial for disk in context.disks), 0)
    with (context.shelf.recording / LOG).open("rb") as log:
        log.seek((before + 1) * RECORD_BYTES)
        for _ in range(after - before):
            event = parse_event(log.read(RECORD_BYTES))
            if event.kind is Kind.FLUSH_COMPLETE and event.disk is not None and not event.error:
                counts[context.disks[event.disk].serial] += 1
    return counts
