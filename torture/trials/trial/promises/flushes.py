"""A client's flush, followed to the disks with the intent log, and to its end where none arrives.

A client that asks for none, and disks that take none, are the machinery's failure. All between them
is on trial: a target, a server or a version of ZFS that drops flushes has to reach its verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.cell_terms import flushes_its_log
from torture.choices.volumes import DIRECTORY, VolumeKind, zvol
from torture.facts.axes.sync import Sync
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import LOG, RECORD_BYTES, Kind, parse_event
from torture.machines.lab.machine import Machine
from torture.machines.nas import pool
from torture.machines.shelf.server import Shelf
from torture.trials.trial.shared.trial import Trial

DEADLINE_S = 60
_NAME = ".proof"
_COUNT_OF_MOUNT = """\
cat /proc/self/mountstats /proc/fs/cifs/Stats 2> /dev/null |
awk '$1 ~ /^(WRITE|COMMIT|Flushes):$/ { sent += $2 } END { print sent + 0 }'
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Detour:
    """The places that a flush reached, of those on its way to the disks."""

    of_client: int
    """Requests to make data durable that the client sent at a synced write."""
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
        """Whether the client sent a request, and none came to ZFS, which would have taken it."""
        has_sent = self.of_client > 0 and not self._is_of_zfs(holders)
        return has_sent and self._reaches(holders)

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
    of_client = _flushes_during(trial, shelf, lambda: _write_and_sync(trial, client))
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
    if not flushes_its_log(trial.cell):
        return False
    if options.is_exported_async:
        return options.sync is Sync.ALWAYS
    return options.sync is not Sync.DISABLED


def _detour_of(
    trial: Trial, shelf: Shelf, holders: Sequence[ShelfDisk], *, nas: Machine, client: Machine
) -> Detour:
    """Ask for a flush at each place between the client and the disks."""
    has_zvol = trial.transport.traits.volume is VolumeKind.ZVOL
    in_nas = _synced_write_to(f"{DIRECTORY}/{_NAME}")
    sent_before = _requests_of(trial, client)
    of_volume = _flushes_of_zvol(trial, nas, client) if has_zvol else None
    if not has_zvol:
        _write_and_sync(trial, client)
    return Detour(
        of_client=_requests_of(trial, client) - sent_before,
        of_volume=of_volume,
        of_dataset=None if has_zvol else _flushes_during(trial, shelf, lambda: _run(nas, in_nas)),
        of_disks=_flushes_during(trial, shelf, lambda: _run(nas, pool.flush_disks_script(holders))),
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


def _flushes_of_zvol(trial: Trial, nas: Machine, client: Machine) -> int:
    """Flushes that the NAS's kernel sent to the zvol at a synced write of the client."""
    _run(nas, zvol.begin_flush_trace_script())
    _write_and_sync(trial, client)
    return int(_run(nas, zvol.end_flush_trace_script()))


def _write_and_sync(trial: Trial, client: Machine) -> None:
    """Make the client write one block, and sync it."""
    target = f"{MOUNT_POINT}/{_NAME}" if trial.is_mounted else trial.device
    _run(client, _synced_write_to(str(target)))


def _synced_write_to(target: str) -> str:
    """Shell: write one block, and sync it."""
    return f"dd if=/dev/urandom of={target} bs=4096 count=1 conv=fsync status=none"


def _run(machine: Machine, script: str) -> str:
    """Run a script in a machine; its output. Raises `HarnessError` if it fails."""
    return machine.must("sh", "-c", script, deadline_s=DEADLINE_S).stdout


def _flushes_during(trial: Trial, shelf: Shelf, action: Callable[[], object]) -> dict[str, int]:
    """Flushes that each disk completed during an action, by its serial."""
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
