"""A scene: ten requests of each kind to one target, and what reached ZFS's log and the NAS's disk.

A SCSI disk of the client's own kernel gets each request by SG_IO (Linux `include/scsi/sg.h`; SBC-4, 5.2
and following), other disks get flushes by fsync.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from torture.choices.matrix.cells import Cell
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.records.record.specs import TrialSpec
from torture.trials.trial.prepared_machines import ready_machines
from torture.trials.trial.promises.proof import flushes_during, zil_commits
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter

REQUESTS = 10
_DEADLINE_S = 120
_NO_GROUPS = "echo 600 > /sys/module/zfs/parameters/zfs_txg_timeout"
"""Shell: a group that is due would flush, too."""
_SCSI = """\
import ctypes, fcntl, os, struct, sys
disk = os.open(sys.argv[1], os.O_RDWR)
def send(command, data=b""):
    block, sense, buffer = ctypes.create_string_buffer(command), ctypes.create_string_buffer(32), None
    header = bytearray(88)
    place = 0
    if data:
        buffer = ctypes.create_string_buffer(data, len(data))
        place = ctypes.addressof(buffer)
    struct.pack_into(
        "<iiBBHIQQQI", header, 0, ord("S"), -2 if data else -1, len(command), 32, 0, len(data), place,
        ctypes.addressof(block), ctypes.addressof(sense), 60000)
    fcntl.ioctl(disk, 0x2285, header)
    status, = struct.unpack_from("<B", header, 64)
    if status:
        sys.exit(f"status {status}, sense {sense.raw.hex()}")
def write(number, forced):
    send(struct.pack(">BBIxHx", 0x2A, forced << 3, 2048 + 8 * number, 8), os.urandom(4096))
def sync(first=0, blocks=0, immediate=False):
    send(struct.pack(">BBIxHx", 0x35, immediate << 1, first, blocks))
for number in range(int(sys.argv[3])):
    match sys.argv[2]:
        case "writes": write(number, False)
        case "forced writes": write(number, True)
        case "flushes": write(number, False); sync()
        case "flushes of a range": write(number, False); sync(2048 + 8 * number, 8)
        case "flushes answered at once": write(number, False); sync(immediate=True)
"""
SCSI_KINDS = (
    "writes",
    "flushes",
    "flushes of a range",
    "flushes answered at once",
    "forced writes",
)
_OTHERS = {
    "writes": "oflag=direct",
    "flushes": "oflag=direct conv=fsync,notrunc",
}


def flush_counts(lab: Lab, scratch: Path) -> dict[str, Any]:
    """Calls of `zil_commit` and flushes of the disk, by the kind of request.

    The last part of `scratch` is the name of the transport.
    """
    spec = TrialSpec(
        cell=Cell.parse(f"{scratch.name}-standard-noslog-raw-bothdie"),
        index=0,
        seed=1,
        load_ms=1000,
    )
    trial = Trial.begin(
        spec,
        folder=scratch / "folder",
        scratch=scratch / "scratch",
        nas_host=lab.network.nas_host,
    )
    trial.folder.mkdir(parents=True)
    lab.boot_from(**trial.images)
    evidence = EvidenceWriter(folder=trial.folder)
    with closing(Machines(trial=trial, lab=lab)) as machines:
        nas, client = ready_machines(trial, machines, evidence)
        nas.must("sh", "-c", _NO_GROUPS, deadline_s=_DEADLINE_S)
        device = str(trial.device)
        kinds = SCSI_KINDS if device.startswith("/dev/sd") else tuple(_OTHERS)
        if not trial.attachment.has_write_cache:  # such a disk refuses forced writes
            kinds = tuple(kind for kind in kinds if kind != "forced writes")
        _send(client, device, kinds[1], 1)  # the first request makes the log, and waits for a group
        found = {}
        for kind in kinds:
            before = zil_commits(nas)
            send = partial(_send, client, device, kind, REQUESTS)
            flushes = flushes_during(trial, machines.shelf, nas, send)
            found[kind] = [zil_commits(nas) - before, sum(flushes.values())]
        return found


def _send(client: Machine, device: str, kind: str, requests: int) -> None:
    command: tuple[str, ...] = ("python3", "-c", _SCSI, device, kind, str(requests))
    if not device.startswith("/dev/sd"):
        write = (
            f"dd if=/dev/urandom of={device} bs=4096 count=1 seek=$i {_OTHERS[kind]} status=none"
        )
        command = ("sh", "-ec", f"for i in $(seq {requests}); do {write}; done")
    client.must(*command, deadline_s=_DEADLINE_S)
