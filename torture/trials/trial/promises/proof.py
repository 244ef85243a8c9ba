"""Proof before use: the write caches of the whole chain, and a client's flush that reaches the disks.

A chain that drops flushes would show every setting as unsafe. A chain without caches would show
every setting as safe.
"""

from __future__ import annotations

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.guarantees import flushes_its_log
from torture.choices.volumes import VolumeKind, zvol
from torture.errors import HarnessError
from torture.facts.axes.sync import Sync
from torture.facts.evidence.folder import PROOF
from torture.facts.recording.events import LOG, RECORD_BYTES, Kind, parse_event
from torture.machines.lab.machine import Machine
from torture.machines.nas import pool
from torture.machines.nas.settings import settings_of
from torture.machines.shelf.server import Shelf
from torture.records.record.advertised import Advertised, parse_mount_options, parse_queue
from torture.shell import advertised_by
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.trial import Trial

_DEADLINE_S = 60
_WRITE_BACK = "write back"
_VOLUME = "volume"


def prove(
    trial: Trial, shelf: Shelf, evidence: EvidenceWriter, *, nas: Machine, client: Machine
) -> None:
    """Assert the chain from the client's flush to the shelf, and keep the findings as evidence.

    Raises `HarnessError` when a cache is not write-back, or a setting of the cell is not in effect.
    It also raises when no flush reached the disks with the intent log, although one must. Where the
    trial doubts ZFS itself, a flush that reached the volume is enough: the trial shows whether it
    was durable.
    """
    cell = trial.cell
    scripts = pool.cache_scripts(trial.disks) | dict(trial.transport.cache_scripts())
    asked = {setting.name: setting for setting in settings_of(cell)}
    of_settings = {name: setting.script for name, setting in asked.items()}
    printed = _printed_by(nas, scripts | of_settings | _asks_volume(trial))
    caches = {f"nas/{name}": printed[name] for name in scripts}
    settings = {name: printed[name] for name in asked}
    advertised = Advertised(
        client=_offered_to(trial, client), volume=parse_queue(printed.get(_VOLUME, ""))
    )
    if trial.attachment.device is not None and trial.attachment.has_write_cache:
        caches |= {"client": advertised.client.get("write_cache", "")}
    flushes = _flushes_of_a_synced_write(trial, shelf, client)
    is_required = _must_flush(trial)
    holders = pool.log_disks(cell) or trial.disks
    is_missing = is_required and not any(flushes.get(disk.serial) for disk in holders)
    is_doubted = is_missing and trial.spec.flush_is_doubted
    seen = {
        "write_cache": caches,
        "settings": settings,
        "flushes": flushes,
        "flush_required": is_required,
        "advertised": advertised.as_json(),
        "flushes_of_volume": _flushes_of_volume(trial, nas, client) if is_doubted else None,
    }
    evidence.write(PROOF, seen)
    if wrong := {where: cache for where, cache in caches.items() if cache != _WRITE_BACK}:
        raise HarnessError(f"not write-back, so nothing would be tested: {wrong}")
    if unset := {name: seen for name, seen in settings.items() if seen != asked[name].expected}:
        raise HarnessError(f"settings of the cell are not in effect: {unset}")
    if is_missing and not seen["flushes_of_volume"]:
        raise HarnessError(
            f"a flush of the client did not reach the disks with the intent log: {flushes}",
            hint=f"read {trial.folder / PROOF}",
        )


def _must_flush(trial: Trial) -> bool:
    """Whether a synced write of the client must reach the intent log in this cell."""
    options = trial.volume_options
    if not flushes_its_log(trial.cell):
        return False
    if options.is_exported_async:
        return options.sync is Sync.ALWAYS
    return options.sync is not Sync.DISABLED


def _asks_volume(trial: Trial) -> dict[str, str]:
    """The script that asks the zvol in the NAS for its promises; none where there is no zvol."""
    is_zvol = trial.transport.traits.volume is VolumeKind.ZVOL
    return {_VOLUME: advertised_by(zvol.DEVICE)} if is_zvol else {}


def _offered_to(trial: Trial, client: Machine) -> dict[str, str]:
    """The promises of the client's disk, or of its mount."""
    device = trial.attachment.device
    if device is not None:
        return parse_queue(_printed_by(client, {"disk": advertised_by(device)})["disk"])
    options = f"findmnt --noheadings --output OPTIONS --mountpoint {MOUNT_POINT}"
    return parse_mount_options(_printed_by(client, {"mount": options})["mount"])


def _printed_by(machine: Machine, scripts: dict[str, str]) -> dict[str, str]:
    """The line that each of these scripts prints, by its name, in one round trip."""
    if not scripts:
        return {}
    script = "\n".join(["set -eu", *scripts.values()])
    lines = machine.must("sh", "-c", script, deadline_s=_DEADLINE_S).stdout.splitlines()
    if len(lines) != len(scripts):
        raise HarnessError(f"{machine.name} printed {lines} for {', '.join(scripts)}")
    return dict(zip(scripts, lines, strict=True))


def _flushes_of_volume(trial: Trial, nas: Machine, client: Machine) -> int:
    """Flushes that the NAS's kernel sent to the volume at a synced write; 0 where it is no zvol."""
    if trial.transport.traits.volume is not VolumeKind.ZVOL:
        return 0
    nas.must("sh", "-c", zvol.begin_flush_trace_script(), deadline_s=_DEADLINE_S)
    _write_and_sync(trial, client)
    counted = nas.must("sh", "-c", zvol.end_flush_trace_script(), deadline_s=_DEADLINE_S)
    return int(counted.stdout)


def _write_and_sync(trial: Trial, client: Machine) -> None:
    """Make the client write one block, and sync it."""
    target = f"{MOUNT_POINT}/.proof" if trial.is_mounted else trial.device
    write = f"dd if=/dev/urandom of={target} bs=4096 count=1 conv=fsync status=none"
    client.must("sh", "-c", write, deadline_s=_DEADLINE_S)


def _flushes_of_a_synced_write(trial: Trial, shelf: Shelf, client: Machine) -> dict[str, int]:
    """Flushes that each disk completed while the client wrote and synced one block."""
    before = shelf.control.status().seq
    _write_and_sync(trial, client)
    after = shelf.control.status().seq
    counts = dict.fromkeys((disk.serial for disk in trial.disks), 0)
    with (shelf.recording / LOG).open("rb") as log:
        log.seek((before + 1) * RECORD_BYTES)
        for _ in range(after - before):
            event = parse_event(log.read(RECORD_BYTES))
            if event.kind is Kind.FLUSH_COMPLETE and event.disk is not None and not event.error:
                counts[trial.disks[event.disk].serial] += 1
    return counts
