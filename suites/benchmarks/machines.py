"""A NAS in a sandbox, with one disk on the shelf and one as a raw file."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from torture.choices.transports.protocol import DiskSource
from torture.errors import HarnessError
from torture.facts.recording.disks import ShelfDisk
from torture.machines.lab.domains import Disk
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.machines.nas.pool import wait_for_disks_script
from torture.machines.shelf.server import Shelf
from torture.shell import wait_for_path

_SHELF = ShelfDisk(serial="data0", size_mib=512)
_RAW = ShelfDisk(serial="raw0", size_mib=512)
_TARGETS = {"shelf": "vdb", "raw": "vdc"}
_ZVOL_MIB = 128
_ROUNDS = 40
_ROUND_S = 0.6
"""Short, so that both sides of a round meet the same other load on the host."""
_WRITES_OF_WARM_UP = 200
_WRITES_MAX = _ZVOL_MIB * 256
_DEADLINE_S = 120
_TAKEN = re.compile(r"copied, ([0-9.e-]+) s")


def synchronous_writes(lab: Lab, scratch: Path) -> dict[str, Any]:
    """Synchronous 4 KiB writes a second with the shelf and with a raw file, round by round.

    `disk`: to the disks themselves. `zvol`: to a zvol with sync=always of a pool on each. Everything
    is in `scratch`: the recording and the raw file share a filesystem.
    """
    scratch.mkdir(parents=True)
    image = scratch / "raw.img"  # on a filesystem that supports O_DIRECT
    with image.open("wb") as file:
        file.truncate(_RAW.size_mib << 20)
    shelf = Shelf(directory=scratch / "recordings", socket=lab.sockets / "shelf.sock")
    with ExitStack() as stack:
        stack.callback(shelf.stop)
        shelf.start((_SHELF,))
        raw = DiskSource(kind="file", attributes={"file": str(image)})
        disks = (
            Disk(target=_TARGETS["shelf"], serial=_SHELF.serial, source=shelf.source(_SHELF)),
            Disk(target=_TARGETS["raw"], serial=_RAW.serial, source=raw),
        )
        nas = lab.start_nas(console_log=scratch / "console.log", disks=disks)
        stack.callback(nas.kill)
        # which also ensures that both have a write cache, so that each write is flushed
        script = wait_for_disks_script((_SHELF, _RAW))
        nas.must("sh", "-c", script, deadline_s=_DEADLINE_S)
        return {
            "disk": _measured(
                nas, shelf, {side: f"/dev/{target}" for side, target in _TARGETS.items()}
            ),
            "zvol": _measured(nas, shelf, {side: _zvol(nas, side) for side in _TARGETS}),
        }


def _zvol(nas: Machine, side: str) -> str:
    """The device of a zvol on this side's disk, made as in a trial but for its sync."""
    device = f"/dev/zvol/{side}/vm"
    script = (
        f"zpool create -f -o cachefile=none -O compression=off {side} /dev/{_TARGETS[side]} && "
        f"zfs create -s -V {_ZVOL_MIB}M -o sync=always {side}/vm && "
        f"{wait_for_path(device)}"
    )
    nas.must("sh", "-c", script, deadline_s=_DEADLINE_S)
    return device


def _measured(nas: Machine, shelf: Shelf, devices: dict[str, str]) -> dict[str, Any]:
    """The rounds, the writes in each, and how many events the shelf recorded in all of them."""
    slower = min(_per_s(nas, device, _WRITES_OF_WARM_UP) for device in devices.values())
    writes = max(_WRITES_OF_WARM_UP, min(round(slower * _ROUND_S), _WRITES_MAX))
    # the raw file gets its places on the host now, as the measured writes overwrite
    for device in devices.values():
        _per_s(nas, device, writes)
    before = shelf.control.status().seq
    rounds = []
    for number in range(_ROUNDS):
        sides = sorted(devices, reverse=number % 2 == 0)
        rounds.append({side: _per_s(nas, devices[side], writes) for side in sides})
    events = shelf.control.status().seq - before
    shelf.require_healthy()
    return {"rounds": rounds, "writes": writes, "events": events}


def _per_s(nas: Machine, device: str, writes: int) -> float:
    write = (
        f"LC_ALL=C dd if=/dev/zero of={device} bs=4096 count={writes} "
        "oflag=direct,dsync conv=notrunc"
    )
    begun = time.monotonic()
    timing = nas.must("sh", "-c", write, deadline_s=_DEADLINE_S).stderr
    taken = _TAKEN.search(timing)
    if taken is None or float(taken[1]) > time.monotonic() - begun + 1:
        raise HarnessError(f"dd in the NAS reports an impossible time: {timing!r}")
    return writes / float(taken[1])
