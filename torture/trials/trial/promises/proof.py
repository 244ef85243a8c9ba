"""Proof before use and after a cut: the caches of the whole chain, and the crash state that is served.

A client that sends no flush would show every setting as unsafe. A chain without caches would show
every setting as safe.

A shelf that keeps all writes would show every cell as safe. The expected bytes come from the suite's
own model of a cut (`torture.facts.recording.model`), of which the shelf's plugin shares no code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.volumes import VolumeKind, zvol
from torture.errors import HarnessError
from torture.facts.evidence.folder import PROOF
from torture.facts.recording.crash_state import read_crash_state
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import (
    RecordedDisk,
    Recording,
    ViewSource,
    load_recording,
)
from torture.facts.recording.layers import ZEROES, Layers
from torture.facts.recording.model import uncovered, writes_until
from torture.machines.lab.machine import Machine
from torture.machines.nas import pool
from torture.machines.nas.settings import essentials_of, settings_of
from torture.machines.shelf.control import Connection
from torture.machines.shelf.server import Shelf
from torture.records.record.advertised_promises import (
    Advertised,
    parse_mount_options,
    parse_protocol,
    parse_queue,
)
from torture.shell import advertised_by
from torture.trials.trial.promises.flushes import DEADLINE_S, follow_flush
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.storage import StorageFailed
from torture.trials.trial.shared.trial import Trial

_WRITE_BACK = "write back"
_VOLUME = "volume"


def prove(
    trial: Trial, shelf: Shelf, evidence: EvidenceWriter, *, nas: Machine, client: Machine
) -> None:
    """Assert the chain from the client's flush to the shelf, and keep the findings as evidence.

    Raises `HarnessError` when a cache is not write-back, or a setting of the cell is not in effect.
    It also raises when no flush reached the disks with the intent log, although one must. Where ZFS
    or the NAS's target or server has lost it, the trial goes on: the cut shows the loss.
    """
    cell = trial.cell
    scripts = pool.cache_scripts(trial.disks) | dict(trial.transport.cache_scripts())
    asked = {setting.name: setting for setting in settings_of(cell)}
    asked |= {setting.name: setting for setting in essentials_of(cell)}
    of_settings = {name: setting.script for name, setting in asked.items()}
    printed = _printed_by(nas, scripts | of_settings | _asks_volume(trial))
    caches = {f"nas/{name}": printed[name] for name in scripts}
    settings = {name: printed[name] for name in asked}
    advertised = Advertised(
        client=_offered_to(trial, client), volume=parse_queue(printed.get(_VOLUME, ""))
    )
    if trial.attachment.device is not None and trial.attachment.has_write_cache:
        caches |= {"client": advertised.client.get("write_cache", "")}
    flushes = follow_flush(trial, shelf, nas=nas, client=client)
    seen = {
        "write_cache": caches,
        "settings": settings,
        **flushes.as_json(),
        "advertised": advertised.as_json(),
    }
    evidence.write(PROOF, seen)
    if wrong := {where: cache for where, cache in caches.items() if cache != _WRITE_BACK}:
        raise HarnessError(f"not write-back, so nothing would be tested: {wrong}")
    if unset := {name: seen for name, seen in settings.items() if seen != asked[name].expected}:
        raise HarnessError(f"settings of the cell are not in effect: {unset}")
    if flushes.is_lost_by_us:
        raise HarnessError(
            "a flush of the client did not reach the disks with the intent log, and nothing between "
            f"them is shown to have lost it: {flushes.as_json()}",
            hint=f"read {trial.folder / PROOF}",
        )


def not_in_effect(trial: Trial, nas: Machine, *, when: str) -> tuple[str, ...]:
    """The settings of the cell, and caches of the volume, that a NAS at work has otherwise.

    Raises `StorageFailed` when it hangs.
    """
    every = (*settings_of(trial.cell), *essentials_of(trial.cell))
    expected = {setting.name: setting.expected for setting in every}
    scripts = {setting.name: setting.script for setting in every}
    caches = trial.transport.cache_scripts()
    expected |= dict.fromkeys(caches, _WRITE_BACK)
    printed = _printed_by(nas, scripts | dict(caches))
    return tuple(
        f"{when}: {name}: {line}, not {expected[name]}"
        for name, line in printed.items()
        if line != expected[name]
    )


def _asks_volume(trial: Trial) -> dict[str, str]:
    """The script that asks the zvol in the NAS for its promises; none where there is no zvol."""
    is_zvol = trial.transport.traits.volume is VolumeKind.ZVOL
    return {_VOLUME: advertised_by(zvol.DEVICE)} if is_zvol else {}


def _offered_to(trial: Trial, client: Machine) -> dict[str, str]:
    """The promises of the client's disk, or of its mount."""
    device, of_protocol = trial.attachment.device, trial.attachment.advertised_script
    options = f"findmnt --noheadings --output OPTIONS --mountpoint {MOUNT_POINT}"
    scripts = {"mount": options} if device is None else {"disk": advertised_by(device)}
    printed = _printed_by(client, scripts | ({"protocol": of_protocol} if of_protocol else {}))
    return (
        parse_queue(printed.get("disk", ""))
        | parse_mount_options(printed.get("mount", ""))
        | parse_protocol(printed.get("protocol", ""))
    )


def _printed_by(machine: Machine, scripts: dict[str, str]) -> dict[str, str]:
    """The line that each of these scripts prints, by its name, in one round trip."""
    if not scripts:
        return {}
    script = "\n".join(["set -eu", *scripts.values()])
    completed = machine.run("sh", "-c", script, deadline_s=DEADLINE_S)
    if completed.exit_code is None:
        raise StorageFailed(f"{machine.name} did not print its settings", machine=machine)
    machine.require_success(completed, deadline_s=DEADLINE_S)
    lines = completed.stdout.splitlines()
    if len(lines) != len(scripts):
        raise HarnessError(f"{machine.name} printed {lines} for {', '.join(scripts)}")
    return dict(zip(scripts, lines, strict=True))


_PIECE_BYTES = 4096
_WRITES_MAX = 64
"""The last ones of each disk: of as many writes that a seed decides, a wrong one shows at once."""
_READ_DEADLINE_S = 10


def require_planned(shelf: Shelf, view: Path, disks: Sequence[ShelfDisk]) -> None:
    """Raise `HarnessError` where a disk of a shelf that just started has other bytes than planned.

    It looks where the cut decided: at both ends of the writes that no flush covers.
    """
    layers = Layers(_began_as(view, disks, shelf.recording), [disk.serial for disk in disks])
    for disk in disks:
        pieces = layers.pieces(disk.serial)
        begins = np.array([piece.offset for piece in pieces], np.int64)
        ends = begins + np.array([piece.length for piece in pieces], np.int64)
        connection = Connection(socket=shelf.socket, export=disk.serial)
        for offset in _decided_places(view, disk):
            planned = bytearray(_PIECE_BYTES)
            for number in np.flatnonzero((begins < offset + _PIECE_BYTES) & (ends > offset)):
                piece = pieces[number]
                first = max(piece.offset, offset)
                length = min(piece.offset + piece.length, offset + _PIECE_BYTES) - first
                content = bytes(length)
                if piece.file != ZEROES:
                    place = piece.place + first - piece.offset
                    content = _bytes_of(layers.files[piece.file], place, length)
                planned[first - offset : first - offset + length] = content
            served = connection.read(_PIECE_BYTES, offset, deadline_s=_READ_DEADLINE_S)
            if served != planned:
                raise HarnessError(
                    f"the shelf does not serve the planned crash state: {disk.serial} differs at byte "
                    f"{offset}",
                    hint=f"compare {view} with {shelf.recording}",
                )
        connection.close()


def _began_as(view: Path, disks: Sequence[ShelfDisk], folder: Path) -> Recording:
    """A recording without a request, over the disks of a view."""
    recorded = (
        RecordedDisk(
            name=disk.serial,
            size=disk.size_mib * 1024 * 1024,
            sector=disk.sector_bytes,
            physical_sector=disk.physical_sector_bytes,
            source=ViewSource(view=view, disk=disk.serial),
        )
        for disk in disks
    )
    return Recording(folder=folder, disks=tuple(recorded), events=())


def _decided_places(view: Path, disk: ShelfDisk) -> Iterator[int]:
    """Where the last writes begin and end whose survival the cut decided, by their pieces."""
    state = read_crash_state(view)
    recording = load_recording(state.recording)
    place = recording.place_of(disk.serial)
    decided = uncovered(
        writes_until(recording.events, disk=place, cut=state.cut, view=state.disks[disk.serial])
    )
    for write in decided[-_WRITES_MAX:]:
        for byte in {write.offset, write.offset + write.length - 1}:
            yield byte // _PIECE_BYTES * _PIECE_BYTES


def _bytes_of(file: Path, place: int, length: int) -> bytes:
    with file.open("rb") as data:
        data.seek(place)
        return data.read(length)
