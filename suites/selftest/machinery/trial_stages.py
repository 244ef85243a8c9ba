"""Scenes with real machines, played in a sandbox; the tests beside this file judge what they return."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from torture.choices.experiments import FAULTS
from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.cells import cells_of
from torture.deadlines import truth, wait_for
from torture.errors import HarnessError
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.folder import PROOF
from torture.facts.recording.crash_state import DiskState, Policy
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import Kind, load_recording
from torture.facts.recording.model import tally
from torture.machines.host.abilities import run_host
from torture.machines.lab.domains import Disk
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.machines.shelf.server import Shelf
from torture.records.record.specs import TrialSpec
from torture.shell import wait_for_path
from torture.trials.trial.prepared_machines import ready_machines
from torture.trials.trial.promises.proof import prove
from torture.trials.trial.setup import plant
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter

_DISK = ShelfDisk(serial="data0", size_mib=64)
_DEVICE = "/dev/vdb"
_MUCH = "echo begun; echo few >&2; head --bytes 12M /dev/zero; echo end; exit 3"
"""More than libvirt hears out."""


def power_cuts(lab: Lab, scratch: Path) -> dict[str, Any]:
    """The shelf's requests from writing to a disk without a flush, until the machine is ended."""
    return {
        "cut": _ended(lab, scratch / "cut", _cut),
        "killed": _ended(lab, scratch / "killed", lambda nas, _shelf: nas.kill()),
        "terminated": _ended(lab, scratch / "terminated", _terminate),
    }


def _cut(nas: Machine, shelf: Shelf) -> None:
    shelf.freeze()
    nas.kill()


def _terminate(nas: Machine, _shelf: Shelf) -> None:
    """SIGTERM, which is what libvirt's destroy sends first."""
    pid = nas.qemu_pid
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: truth(not nas.is_alive()), what="end of QEMU", deadline_s=20)


@contextmanager
def _nas_with_a_disk(
    lab: Lab, *, disks: Path, console_log: Path, shelf_disk: ShelfDisk = _DISK
) -> Iterator[tuple[Machine, Shelf]]:
    """A NAS that sees its one disk on a shelf in `disks`; both are gone in the end."""
    shelf = Shelf(directory=disks, socket=lab.sockets / "shelf.sock")
    shelf.start((shelf_disk,))
    disk = Disk(
        target="vdb",
        serial=shelf_disk.serial,
        source=shelf.source(shelf_disk),
        sector_bytes=shelf_disk.sector_bytes,
        physical_sector_bytes=shelf_disk.physical_sector_bytes,
    )
    with ExitStack() as stack:
        stack.callback(shelf.stop)
        nas = lab.start_nas(console_log=console_log, disks=(disk,))
        stack.callback(nas.kill)
        nas.must("sh", "-c", wait_for_path(_DEVICE), deadline_s=30)
        yield nas, shelf


def _ended(
    lab: Lab, scratch: Path, end: Callable[[Machine, Shelf], None]
) -> dict[str, dict[str, int]]:
    """The disk's activity before the machine was ended, and after."""
    scratch.mkdir(parents=True)
    console = scratch / "console.log"
    with _nas_with_a_disk(lab, disks=scratch, console_log=console) as (nas, shelf):
        write = f"dd if=/dev/urandom of={_DEVICE} bs=4096 count=64 oflag=direct"
        nas.must("sh", "-c", write, deadline_s=30)
        before = _activity(shelf)
        end(nas, shelf)
        time.sleep(0.5)
        after = _activity(shelf)
    return {"before": before, "after": after}


def _activity(shelf: Shelf) -> dict[str, int]:
    """The requests to the disk so far."""
    events = load_recording(shelf.recording).events
    counts = tally(
        events,
        disk=0,
        sector=_DISK.sector_bytes,
        view=DiskState(policy=Policy.FLUSHED),
        cut=len(events) - 1,
        seed=0,
    )
    flushes = sum(event.kind is Kind.FLUSH_SUBMIT for event in events)
    return {"flushes": flushes, "writes": counts.writes, "unflushed": counts.unflushed}


def full_disk(lab: Lab, scratch: Path) -> dict[str, Any]:
    """The messages of guest and shelf when there is no room for the guest's writes."""
    small = scratch / "small"
    small.mkdir(parents=True)
    run_host("mount", "-t", "tmpfs", "-o", "size=2m", "none", str(small))
    console = scratch / "full.log"
    with _nas_with_a_disk(lab, disks=small, console_log=console) as (nas, shelf):
        write = f"dd if=/dev/urandom of={_DEVICE} bs=64k count=200 oflag=direct"
        written = nas.run("sh", "-c", write, deadline_s=60)
        return {"written": written.exit_code, "shelf": _said(shelf.require_healthy)}


_MAKE_POOL = (
    f"zpool create -f -o cachefile=none p {_DEVICE} && "
    f"zdb -l {_DEVICE}1 | sed -n 's/^ *ashift: //p' && zpool destroy p"
)


def ashifts(lab: Lab, scratch: Path) -> dict[str, str]:
    """By physical sector, in bytes: what ZFS chooses for a disk of logical sectors of 512 bytes."""
    said = {}
    for physical_bytes in (512, 4096):
        folder = scratch / str(physical_bytes)
        folder.mkdir(parents=True)
        disk = ShelfDisk(serial="d", size_mib=256, physical_sector_bytes=physical_bytes)
        console = folder / "console.log"
        with _nas_with_a_disk(lab, disks=folder, console_log=console, shelf_disk=disk) as (nas, _):
            made = nas.must("sh", "-c", _MAKE_POOL, deadline_s=60)
            said[str(physical_bytes)] = made.stdout.strip()
    return said


def sectors(lab: Lab, scratch: Path) -> dict[str, Any]:
    """A guest's view of a disk with sectors of 4096 bytes, and the shelf's of its writes."""
    scratch.mkdir()
    large = ShelfDisk(serial="large", size_mib=64, sector_bytes=4096, physical_sector_bytes=4096)
    console = scratch / "console.log"
    with _nas_with_a_disk(lab, disks=scratch, console_log=console, shelf_disk=large) as (
        nas,
        shelf,
    ):
        size = "cat /sys/block/vdb/queue/logical_block_size"
        said = nas.must("sh", "-c", size, deadline_s=10).stdout
        write = f"dd if=/dev/urandom of={_DEVICE} bs=%d count=1 oflag=direct"
        written = {
            bytes_: nas.run("sh", "-c", write % bytes_, deadline_s=30).exit_code
            for bytes_ in (512, 4096)
        }
        shelf.require_healthy()
        diverted = _diverted(nas, shelf, large, into=scratch / "overlay")
    return {"logical_block_size": int(said), "written": written, "diverted": diverted}


def _diverted(nas: Machine, shelf: Shelf, written: ShelfDisk, *, into: Path) -> dict[str, Any]:
    """A write as guest and shelf see it once a disk's writes are kept on the host."""
    disk = Disk(target="vdb", serial=written.serial, source=shelf.source(written))
    before = _activity(shelf)
    nas.divert_writes(disk, into=into)
    overwrite = f"yes new | dd of={_DEVICE} bs=4096 count=1 iflag=fullblock oflag=direct conv=fsync"
    look = f"dd if={_DEVICE} bs=4096 count=1 iflag=direct 2>&- | head --bytes=3"
    found = nas.must("sh", "-c", f"{overwrite} 2>&-; {look}", deadline_s=30).stdout
    return {"found": found, "before": before, "after": _activity(shelf)}


_PROGRAM_BYTES = 8 << 20
"""More than twice a real gobonniego, which does not compress well either."""


def failures(lab: Lab, scratch: Path) -> dict[str, dict[str, Any]]:
    """The machinery's errors, with their time, of guests that hang, fall silent and panic."""
    scratch.mkdir(exist_ok=True)
    nas = lab.start_nas(console_log=scratch / "silent.log", disks=())
    hung = nas.run("sh", "-c", "echo begun; yes | (sleep 61; cat)", deadline_s=1)
    left = nas.run("pgrep", "--full", "sleep 61", deadline_s=5)
    much = nas.run_verbose("sh", "-c", _MUCH, deadline_s=30)
    after_hang = nas.run("echo", "alive", deadline_s=5)
    program = random.Random(8).randbytes(_PROGRAM_BYTES)
    nas.agent.put_program("/run/program", program)
    arrived = nas.run("sha256sum", "/run/program", deadline_s=30).stdout.split()
    silent = _said(lambda: _silence_agent(nas))
    nas.kill()
    nas = lab.start_nas(console_log=scratch / "panic.log", disks=())
    panic = _said(lambda: _panic(nas))
    nas.kill()
    return {
        "hung": {
            "exit_code": hung.exit_code,
            "said": hung.stdout,
            "left": left.stdout,
            "after": after_hang.stdout,
        },
        "verbose": {
            "tool": much.tool,
            "exit_code": much.exit_code,
            "begins": much.stdout[:6],
            "between": re.findall(r"\n\[.*\]\n", much.stdout),
            "ends": much.stdout[-4:],
            "bytes": len(much.stdout),
            "stderr": much.stderr,
        },
        "program": {"put": hashlib.sha256(program).hexdigest(), "arrived": arrived[0]},
        "silent": silent,
        "panic": panic,
    }


def _silence_agent(nas: Machine) -> None:
    nas.agent.start(("sh", "-c", "kill -STOP $(pidof qemu-ga)"))
    time.sleep(1)
    nas.run("true", deadline_s=5)


def _panic(nas: Machine) -> None:
    nas.agent.start(("sh", "-c", "echo c > /proc/sysrq-trigger"))
    nas.run("sleep", "30", deadline_s=30)


def _said(action: Callable[[], None]) -> dict[str, Any]:
    begun = time.monotonic()
    try:
        action()
    except HarnessError as error:
        return {"error": str(error), "after_s": time.monotonic() - begun}
    return {"error": None, "after_s": time.monotonic() - begun}


def trial_in(lab: Lab, scratch: Path) -> Trial:
    """A trial with an empty folder."""
    trial = Trial.begin(
        TrialSpec(cell=cells_of(Matrix.QUICK)[0], index=0, seed=1, load_ms=1000),
        folder=scratch / "folder",
        scratch=scratch / "scratch",
        nas_host=lab.network.nas_host,
    )
    trial.folder.mkdir(parents=True)
    return trial


_FLUSH_AGAIN = "echo 0 > /sys/module/zfs/parameters/zfs_nocacheflush"


def proofs(lab: Lab, scratch: Path) -> dict[str, Any]:
    """The proof before use of a NAS that flushes, and of the same one once its ZFS does not.

    Then of a client that sends no flush.
    """
    trial = trial_in(lab, scratch)
    evidence = EvidenceWriter(folder=trial.folder)
    with closing(Machines(trial=trial, lab=lab)) as machines:
        nas, client = ready_machines(trial, machines, evidence)

        def proof(trial: Trial) -> dict[str, Any]:
            """Its answer, and its observations this time."""
            file = trial.folder / PROOF
            file.unlink(missing_ok=True)
            said = _said(lambda: prove(trial, machines.shelf, evidence, nas=nas, client=client))
            return said | {"proof": json.loads(file.read_text())}

        found = {"none": proof(trial)}
        plant(nas, FAULTS["zfs-nocacheflush"].in_nas)
        found |= {"zfs_nocacheflush": proof(trial)}
        nas.must("sh", "-c", _FLUSH_AGAIN, deadline_s=30)
        client.must("mount", "-o", "remount,nobarrier", MOUNT_POINT, deadline_s=30)
        return found | {"nobarrier": proof(trial)}
