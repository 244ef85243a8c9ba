"""Proof before use and after a cut: the caches of the whole chain, and the crash state that is served.

A client that sends no flush would show every setting as unsafe. A chain without caches would show
every setting as safe.

A shelf that keeps all writes would show every cell as safe. The expected bytes come from the suite's
own model of a cut (`torture.facts.recording.model`), of which the shelf's plugin shares no code.

A client's flush, followed to the disks with the intent log, and to its end where none arrives.

A client that asks for none, and disks that take none, are the machinery's failure. All between them
is on trial: a target, a server or a version of ZFS that drops flushes has to reach its verdict.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.cell_terms import flushes_its_log
from torture.choices.volumes import DIRECTORY, VolumeKind, zvol
from torture.errors import HarnessError
from torture.facts.axes.sync import Sync
from torture.facts.evidence.folder import PROOF
from torture.facts.recording.crash_state import read_crash_state
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import (
    LOG,
    RECORD_BYTES,
    Kind,
    RecordedDisk,
    Recording,
    ViewSource,
    load_recording,
    parse_event,
)
from torture.facts.recording.layers import ZEROES, Layers
from torture.facts.recording.model import uncovered, writes_until
from torture.machines.lab.machine import Machine
from torture.machines.nas import pool
from torture.machines.nas.settings import essentials_of, settings_of
from torture.machines.shelf.control import Connection
from torture.machines.shelf.server import Shelf
from torture.records.record.trials import (
    Advertised,
    parse_mount_options,
    parse_protocol,
    parse_queue,
)
from torture.shell import advertised_by
from torture.trials.trial.shared.machines import SCRATCH_FILE, Trial
from torture.trials.trial.shared.resident import EvidenceWriter, StorageFailed

DEADLINE_S = 60
_NODES = json.dumps({"execute": "query-named-block-nodes", "arguments": {"flat": True}})
_COUNT_OF_MOUNT = """\
cat /proc/self/mountstats /proc/fs/cifs/Stats 2> /dev/null |
awk '$1 ~ /^(WRITE|COMMIT|Flushes):$/ { sent += $2 } END { print sent + 0 }'
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Detour:
    """The places that a flush reached, of those on its way to the disks."""

    of_client: int
    """Requests to make data durable that the client sent at a synced write."""
    is_kept_by_qemu: bool
    """Whether the client's own QEMU is set to keep flushes."""
    zil_commits: int
    """Requests to ZFS's intent log at a synced write of the client."""
    of_volume: int | None
    """Flushes that the zvol got at a synced write of the client. None where there is no zvol."""
    of_dataset: dict[str, int] | None
    """Flushes of each disk at a synced write of the NAS itself. None where there is a zvol."""
    of_disks: dict[str, int]
    """Flushes of each disk as the NAS flushed the disks, without ZFS."""

    def is_lost_by_zfs(self, holders: Sequence[ShelfDisk]) -> bool:
        """Whether ZFS got a flush and kept it from `holders`, which the NAS can flush without ZFS.

        Where the client has files, a synced write of the NAS itself stands for the client's.
        """
        return self._is_of_zfs(holders) and self._reaches(holders)

    def is_lost_by_the_chain(self, holders: Sequence[ShelfDisk]) -> bool:
        """Whether the client's request came to the NAS, and none to ZFS, which would have taken it.

        A client whose own QEMU keeps its flushes sends the NAS nothing: that is no fault of a target.
        """
        has_sent = self.of_client > 0 and not self.is_kept_by_qemu
        return has_sent and not self._is_of_zfs(holders) and self._reaches(holders)

    def _is_of_zfs(self, holders: Sequence[ShelfDisk]) -> bool:
        if self.of_dataset is None:
            return bool(self.of_volume)
        return not any(self.of_dataset.get(disk.serial) for disk in holders)

    def _reaches(self, holders: Sequence[ShelfDisk]) -> bool:
        return all(self.of_disks.get(disk.serial) for disk in holders)


@dataclass(frozen=True, kw_only=True, slots=True)
class FlushProof:
    """The way of one flush of the client."""

    of_client: dict[str, int]
    """Flushes of each disk at a synced write of the client."""
    is_required: bool
    """Whether the cell promises that the write is durable in the intent log."""
    detour: Detour | None
    """Asked only where a flush is required and none came."""
    is_lost_by_zfs: bool
    """Whether it was ZFS that lost that flush."""
    is_lost_by_the_chain: bool
    """Whether it was lost on its way from the client to ZFS."""

    @property
    def is_lost_by_us(self) -> bool:
        """Whether a flush was lost, and nothing that is on trial is shown to have lost it."""
        is_shown = self.is_lost_by_zfs or self.is_lost_by_the_chain
        return self.detour is not None and not is_shown

    def as_json(self) -> dict[str, Any]:
        """The flushes as plain data."""
        return {
            "flushes": self.of_client,
            "flush_required": self.is_required,
            "flushes_without": asdict(self.detour) if self.detour else None,
            "lost_by_zfs": self.is_lost_by_zfs,
            "lost_by_chain": self.is_lost_by_the_chain,
        }


def follow_flush(trial: Trial, shelf: Shelf, *, nas: Machine, client: Machine) -> FlushProof:
    """Make the client sync a write, and follow its flush."""
    holders = pool.log_disks(trial.cell) or trial.disks
    of_client = flushes_during(trial, shelf, nas, lambda: _write_and_sync(trial, client))
    is_required = _must_flush(trial)
    is_missing = is_required and not any(of_client.get(disk.serial) for disk in holders)
    detour = _detour_of(trial, shelf, holders, nas=nas, client=client) if is_missing else None
    return FlushProof(
        of_client=of_client,
        is_required=is_required,
        detour=detour,
        is_lost_by_zfs=detour is not None and detour.is_lost_by_zfs(holders),
        is_lost_by_the_chain=detour is not None and detour.is_lost_by_the_chain(holders),
    )


def _must_flush(trial: Trial) -> bool:
    """Whether a synced write of the client must reach the intent log in this cell."""
    options = trial.volume_options
    if not flushes_its_log(trial.cell) or options.sync in trial.transport.traits.unflushed:
        return False
    if options.is_exported_async:
        return options.sync is Sync.ALWAYS
    return options.sync is not Sync.DISABLED


def _detour_of(
    trial: Trial, shelf: Shelf, holders: Sequence[ShelfDisk], *, nas: Machine, client: Machine
) -> Detour:
    """Ask for a flush at each place between the client and the disks."""
    has_zvol = trial.transport.traits.volume is VolumeKind.ZVOL
    in_nas = _synced_write_to(f"{DIRECTORY}/{SCRATCH_FILE}")
    during = partial(flushes_during, trial, shelf, nas)
    sent_before = _requests_of(trial, client)
    of_volume = _flushes_of_zvol(trial, nas, client) if has_zvol else None
    if not has_zvol:
        _write_and_sync(trial, client)
    of_client, committed = _requests_of(trial, client) - sent_before, zil_commits(nas)
    _write_and_sync(trial, client)
    return Detour(
        of_client=of_client,
        zil_commits=zil_commits(nas) - committed,
        is_kept_by_qemu=_is_kept_by_qemu(trial, client),
        of_volume=of_volume,
        of_dataset=None if has_zvol else during(lambda: _run(nas, in_nas)),
        of_disks=during(lambda: _run(nas, pool.flush_disks_script(holders))),
    )


def _requests_of(trial: Trial, client: Machine) -> int:
    """Requests to make data durable that the client has sent so far.

    Of a disk they are its flushes (Linux Documentation/block/stat.rst, `flush I/Os`). Of a mount they
    are NFS's WRITE and COMMIT (net/sunrpc/stats.c) and SMB's FLUSH (fs/smb/client/smb2ops.c,
    `smb2_print_stats`).
    """
    device = trial.attachment.device
    if device is None:
        return int(_run(client, _COUNT_OF_MOUNT))
    stat = f"/sys/class/block/$(basename $(readlink -f {device}))/stat"
    return int(_run(client, f"awk '{{ print $16 }}' {stat}"))


def zil_commits(nas: Machine) -> int:
    """Calls of `zil_commit` so far (OpenZFS `include/sys/zil.h`, `zil_commit_count`)."""
    return int(_run(nas, "awk '$1 == \"zil_commit_count\" { print $3 }' /proc/spl/kstat/zfs/zil"))


def _is_kept_by_qemu(trial: Trial, client: Machine) -> bool:
    """Whether a disk that the client's QEMU opened is set so (QEMU qapi/block-core.json, `no-flush`).

    A count of flushes at the NAS would not do: QEMU sends none where nothing was written since the
    last one (block/io.c, `bdrv_co_flush`).
    """
    if trial.attachment.source is None:
        return False
    return keeps_flushes(client.ask_qemu(_NODES))


def keeps_flushes(answer: str) -> bool:
    """Whether a writable node of QEMU's keeps flushes, by its answer to `query-named-block-nodes`."""
    nodes = json.loads(answer)["return"]
    return any(node["cache"]["no-flush"] for node in nodes if not node["ro"])


def _flushes_of_zvol(trial: Trial, nas: Machine, client: Machine) -> int:
    """Flushes that the NAS's kernel sent to the zvol at a synced write of the client."""
    _run(nas, zvol.begin_flush_trace_script())
    _write_and_sync(trial, client)
    return int(_run(nas, zvol.end_flush_trace_script()))


def _write_and_sync(trial: Trial, client: Machine) -> None:
    """Make the client write one block, and sync it."""
    target = f"{MOUNT_POINT}/{SCRATCH_FILE}" if trial.is_mounted else trial.device
    _run(client, _synced_write_to(str(target)))


def _synced_write_to(target: str) -> str:
    """Shell: write one block, and sync it."""
    return f"dd if=/dev/urandom of={target} bs=4096 count=1 conv=fsync status=none"


def _run(machine: Machine, script: str) -> str:
    """Run a script in a machine; its output. Raises `HarnessError` if it fails."""
    return machine.must("sh", "-c", script, deadline_s=DEADLINE_S).stdout


def flushes_during(
    trial: Trial, shelf: Shelf, nas: Machine, action: Callable[[], object]
) -> dict[str, int]:
    """Flushes that each disk completed during an action, by its serial.

    A transaction group flushes, too, and would pass for the action. So the pool commits before it:
    ZFS then waits for the next group's time, some seconds (zfs(4), `zfs_txg_timeout`).
    """
    nas.must(*pool.SYNC, deadline_s=DEADLINE_S)
    before = shelf.control.status().seq
    action()
    after = shelf.control.status().seq
    counts = dict.fromkeys((disk.serial for disk in trial.disks), 0)
    with (shelf.recording / LOG).open("rb") as log:
        log.seek((before + 1) * RECORD_BYTES)
        for _ in range(after - before):
            event = parse_event(log.read(RECORD_BYTES))
            if event.kind is Kind.FLUSH_COMPLETE and event.disk is not None and not event.error:
                counts[trial.disks[event.disk].serial] += 1
    return counts


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
    proofs = trial.attachment.proofs
    settings |= _printed_by(client, {name: script for name, (script, _) in proofs.items()})
    expected = {name: setting.expected for name, setting in asked.items()}
    expected |= {name: line for name, (_, line) in proofs.items()}
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
    if unset := {name: seen for name, seen in settings.items() if seen != expected[name]}:
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
