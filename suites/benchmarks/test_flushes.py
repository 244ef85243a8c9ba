"""Ten requests of each kind to each target: calls of `zil_commit`, and flushes of the NAS's disk.

`tools/run suites/benchmarks -k each_flush -rP` prints them.

The client's own kernel is the initiator of each target, so that it passes forced writes on. A SCSI disk
gets each request by SG_IO (Linux `include/scsi/sg.h`; SBC-4, 5.2 and following). An NVMe disk gets
writes by NVME_IOCTL_SUBMIT_IO (Linux `include/uapi/linux/nvme_ioctl.h`), and flushes by fsync.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.machinery.sandbox import in_sandbox
from torture.choices.matrix.cells import AXES, TRANSPORT, Cell
from torture.choices.transports.iscsi import ISCSI_PORT, attachment_of
from torture.choices.transports.nvme_tcp import PORT as NVME_PORT
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.oracles.verdict.mount import KERNEL_DEATH
from torture.records.record.specs import TrialSpec
from torture.trials.trial.promises.proof import flushes_during, zil_commits
from torture.trials.trial.setup import attach, set_up_nas
from torture.trials.trial.shared.machines import Machines, Trial

_TEST_DEADLINE_S = 900
_TARGETS = [
    choice.name
    for choice in AXES[TRANSPORT.field].choices
    if {ISCSI_PORT, NVME_PORT} & set(choice.value.traits.ports)
]
_SWALLOWED = [f"scst_file{end}" for end in ("", "_guest", "_head", "_nv", "_ext4", "_xfs")]
"""SCST on a file: docs/findings.md."""
_UNSERVED = ["tgt", *(f"scst_file{end}" for end in ("_through", "_nv", "_xfs_through"))]
"""tgt refuses a flush that wants its answer at once, as it may. SCST does not survive it."""
_REQUESTS = 10
_DEADLINE_S = 30
_NO_GROUPS = "echo 600 > /sys/module/zfs/parameters/zfs_txg_timeout"
"""Shell: a group that is due would flush, too."""
_PROGRAM = """\
import ctypes, fcntl, os, struct, sys
disk = os.open(sys.argv[1], os.O_RDWR)
block_bytes, = struct.unpack("<I", fcntl.ioctl(disk, 0x1268, bytes(4)))
blocks = 4096 // block_bytes
def place_of(number):
    return (1048576 + 4096 * number) // block_bytes
def ioctl(request, header):
    if status := fcntl.ioctl(disk, request, header):
        sys.exit(f"status {status}")
def scsi(command, data=b""):
    block, sense, buffer = ctypes.create_string_buffer(command), ctypes.create_string_buffer(32), None
    header = bytearray(88)
    address = 0
    if data:
        buffer = ctypes.create_string_buffer(data, len(data))
        address = ctypes.addressof(buffer)
    struct.pack_into(
        "<iiBBHIQQQI", header, 0, ord("S"), -2 if data else -1, len(command), 32, 0, len(data), address,
        ctypes.addressof(block), ctypes.addressof(sense), 60000)
    ioctl(0x2285, header)
    status, = struct.unpack_from("<B", header, 64)
    if status:
        sys.exit(f"status {status}, sense {sense.raw.hex()}")
def write(number, forced=False):
    if "nvme" not in sys.argv[1]:
        return scsi(struct.pack(">BBIxHx", 0x2A, forced << 3, place_of(number), blocks), os.urandom(4096))
    data = ctypes.create_string_buffer(os.urandom(4096), 4096)
    ioctl(0x4030_4E42, bytearray(struct.pack(
        "<BBHHHQQQIIHH", 1, 0, forced << 14, blocks - 1, 0, 0, ctypes.addressof(data), place_of(number),
        0, 0, 0, 0)))
def sync(first=0, blocks=0, immediate=False):
    if "nvme" in sys.argv[1]:
        return os.fsync(disk)
    scsi(struct.pack(">BBIxHx", 0x35, immediate << 1, first, blocks))
for number in range(int(sys.argv[3])):
    write(number, sys.argv[2] == "forced writes")
    match sys.argv[2]:
        case "flushes": sync()
        case "flushes of a range": sync(place_of(number), blocks)
        case "flushes answered at once": sync(immediate=True)
"""
_KINDS = ("writes", "flushes", "flushes of a range", "forced writes", "flushes answered at once")
_ONLY_SCSI = ("flushes of a range", "flushes answered at once")


@pytest.mark.parametrize("transport", _TARGETS)
def test_each_flush_reaches_the_log(transport: str, tmp_path: Path) -> None:
    found = in_sandbox(
        "suites.benchmarks.test_flushes:flush_counts",
        scratch=tmp_path / transport,
        log=tmp_path / "log",
        deadline_s=_TEST_DEADLINE_S,
    )
    print(json.dumps({transport: found}))
    unserved = [kind for kind, counts in found.items() if isinstance(counts, str)]
    assert unserved == (["flushes answered at once"] if transport in _UNSERVED else [])
    commits = {counts[0] for kind, counts in found.items() if kind not in ("writes", *unserved)}
    if transport in _SWALLOWED:
        assert commits == {0}
    else:
        assert min(commits) >= _REQUESTS


class _Unserved(Exception):
    """A request that the target refused, or did not answer."""


def flush_counts(lab: Lab, scratch: Path) -> dict[str, Any]:
    """Calls of `zil_commit` and flushes of the disk, by the kind of request.

    The last part of `scratch` is the name of the transport.
    """
    trial = _trial_of(scratch.name, lab, scratch)
    found: dict[str, Any] = {}
    with closing(Machines(trial=trial, lab=lab)) as machines:
        nas, client = _machines_of(trial, machines)
        nas.must("sh", "-c", _NO_GROUPS, deadline_s=_DEADLINE_S)
        device = str(trial.attachment.device)
        kinds = [kind for kind in _KINDS if "nvme" not in device or kind not in _ONLY_SCSI]
        if not _takes_forced_writes(client, device):
            kinds.remove("forced writes")
        # the first flush makes the log, and waits for a group
        _send(client, device, "flushes", 1)
        for kind in kinds:
            before = zil_commits(nas)
            send = partial(_send, client, device, kind, _REQUESTS)
            try:
                flushes = flushes_during(trial, machines.shelf, nas, send)
            except _Unserved as unserved:
                crash = KERNEL_DEATH.search(nas.console())
                found[kind] = f"{unserved}: {crash[0]}" if crash else str(unserved)
            else:
                found[kind] = [zil_commits(nas) - before, sum(flushes.values())]
    return found


def _trial_of(transport: str, lab: Lab, scratch: Path) -> Trial:
    cell = Cell.parse(f"{transport}-standard-noslog-raw-bothdie")
    host = lab.network.nas_host
    trial = Trial.begin(
        TrialSpec(cell=cell, index=0, seed=1, load_ms=1000),
        folder=scratch / "folder",
        scratch=scratch / "scratch",
        nas_host=host,
    )
    trial.folder.mkdir(parents=True)
    if trial.transport.traits.client_has_network:
        return trial
    cached = trial.attachment.has_write_cache
    by_guest = replace(attachment_of(host, is_of_guest=True), has_write_cache=cached)
    return replace(trial, attachment=by_guest)


def _machines_of(trial: Trial, machines: Machines) -> tuple[Machine, Machine]:
    """The NAS with its target, and a client that logged in by itself."""
    lab = machines.lab
    lab.boot_from(**trial.images)
    nas = set_up_nas(trial, machines)
    spec = lab.client_spec(trial.folder / "client.console.log", lab.sockets / "client.sock")
    words = trial.attachment.kernel_words
    networked = lab.networked(spec, is_checker=False, kernel_words=words)
    client = machines.own(lab.start(networked, ()))
    attach(trial, client)
    return nas, client


def _takes_forced_writes(client: Machine, device: str) -> bool:
    """Whether it says so: else no kernel sends one (Documentation/ABI/stable/sysfs-block, `fua`)."""
    name = f"/sys/block/$(basename $(readlink -f {device}))/queue/fua"
    return client.must("sh", "-c", f"cat {name}", deadline_s=_DEADLINE_S).stdout.strip() == "1"


def _send(client: Machine, device: str, kind: str, requests: int) -> None:
    program = ("python3", "-c", _PROGRAM, device, kind, str(requests))
    sent = client.run(*program, deadline_s=_DEADLINE_S)
    if sent.exit_code is None:
        raise _Unserved("not answered")
    if sent.stderr.startswith("status"):
        raise _Unserved(f"refused: {sent.stderr.strip()}")
    client.require_success(sent, deadline_s=_DEADLINE_S)
