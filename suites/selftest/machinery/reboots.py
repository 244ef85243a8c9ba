"""A NAS that comes back, as its clients see it: resumed from where it was saved, yet another boot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from suites.selftest.machinery.block_sessions import IscsiSession, NvmeQueue
from suites.selftest.machinery.nfs_client import Server, boot_time_s, root_of, write_verifier
from torture.choices.matrix.cells import TRANSPORT, Cell
from torture.choices.transports import iscsi, nvme_tcp
from torture.choices.volumes import DIRECTORY, zvol
from torture.facts.evidence.folder import SPEC
from torture.facts.recording.crash_state import write_crash_state
from torture.facts.recording.model import keep_all
from torture.facts.wire.disk_requests import DiskWire
from torture.facts.wire.frames import read_frames
from torture.facts.wire.iscsi_pdus import IscsiOnWire
from torture.facts.wire.nvme_pdus import NvmeTcpOnWire
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.machines.nas.settings import volume_options_of
from torture.records.record.specs import TrialSpec
from torture.trials.trial.recovery import bring_nas_back
from torture.trials.trial.setup import run_script, set_up_nas
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter

_CELL = "nfs4-standard-noslog-files-bothdie"
_NFS_PORT, _MOUNTD_PORT = 2049, 20048
_BLOCK_CELLS = [
    Cell.parse(f"{name}-standard-noslog-ext4-bothdie") for name in ("iscsi", "nvme_tcp")
]
_BLOCKS = "tank/blocks"
_DEADLINE_S = 30
_MAKE_BLOCKS = f"zfs create -s -V 64M {_BLOCKS} && zpool sync tank"
_LINK_BLOCKS = f"""set -e
udevadm settle --timeout=20
ln -s $(readlink -f /dev/zvol/{_BLOCKS}) {zvol.DEVICE}
"""
"""The zvol stands in for the cell's own volume, which is a dataset: those who publish find it there."""
_LEFT_FROM_BEFORE = """
grep -E '^(nfsd|nvmet|ksmbd) ' /proc/modules
ls -d /sys/kernel/config/target/iscsi /sys/kernel/config/target/core/*_0 /sys/kernel/config/nvmet
zpool list -H
true
"""
"""The state that serves clients, or would remember them, in a NAS that has not published yet."""
_GUID = "zpool get -H -o value guid tank"
_FIRST_GUID = (
    f"truncate -s 64M /tmp/disk && zpool create -o cachefile=none tank /tmp/disk && {_GUID}"
)
"""The first number that ZFS draws at random is that of the first pool it makes."""


def boots(lab: Lab, scratch: Path) -> dict[str, Any]:
    """The answers of two boots of one trial's NAS to clients, and the state a boot begins with."""
    spec = TrialSpec(cell=Cell.parse(_CELL), index=0, seed=1, load_ms=1000)
    host = lab.network.nas_host
    trial = Trial.begin(spec, folder=scratch / "folder", scratch=scratch, nas_host=host)
    trial.folder.mkdir(parents=True)
    evidence = EvidenceWriter(folder=trial.folder)
    evidence.write(SPEC, spec.as_json())
    with closing(Machines(trial=trial, lab=lab)) as machines:
        before = set_up_nas(trial, machines)
        run_script(before, _MAKE_BLOCKS, deadline_s=_DEADLINE_S)
        said = [_said(lab, before)]
        guids = [before.must("sh", "-c", _GUID, deadline_s=_DEADLINE_S).stdout]
        _publish_blocks(before)
        with _new_sessions(host) as opened:
            known = [_known(host, *opened)]
        requests = _requests(lab, scratch)
        before.kill()
        shelf = machines.shelf
        last = shelf.control.status().seq
        shelf.stop()
        state = keep_all(shelf.recording, cut=last, disks=trial.disks)
        view = shelf.directory / "reboot.view.json"
        write_crash_state(view, state)
        back = bring_nas_back(trial, machines, evidence, view)
        assert back is not None, "the pool did not come back"
        after = back.nas
        said.append(_said(lab, after))
        _publish_blocks(after)
        known.append(_known(host, *opened))
        with _new_sessions(host):
            pass  # or what was refused was more than the session of before
        after.kill()
        fresh = lab.start_nas(console_log=scratch / "fresh.console.log", disks=())
        try:
            left = fresh.must("sh", "-c", _LEFT_FROM_BEFORE, deadline_s=_DEADLINE_S).stdout
            guids.append(fresh.must("sh", "-c", _FIRST_GUID, deadline_s=_DEADLINE_S).stdout)
        finally:
            fresh.kill()
    return {"said": said, "left": left, "known": known, "guids": guids, "requests": requests}


def _publish_blocks(nas: Machine) -> None:
    run_script(nas, _LINK_BLOCKS, deadline_s=_DEADLINE_S)
    for cell in _BLOCK_CELLS:
        script = cell[TRANSPORT].publish_script(volume_options_of(cell))
        run_script(nas, script, deadline_s=_DEADLINE_S)


@contextmanager
def _new_sessions(host: str) -> Iterator[tuple[int, int]]:
    """The numbers of a session of iSCSI and of a controller of NVMe, both open."""
    with (
        closing(IscsiSession(host, iscsi.ISCSI_PORT, target=iscsi.IQN, session=0)) as session,
        closing(NvmeQueue(host, nvme_tcp.PORT, subsystem=nvme_tcp.NQN, controller=None)) as queue,
    ):
        assert (session.status, queue.status) == ((0, 0), 0)
        yield session.session, queue.controller


def _known(host: str, session: int, controller: int) -> dict[str, Any]:
    """The answers of targets to a connection that would belong to a session of before."""
    with (
        closing(IscsiSession(host, iscsi.ISCSI_PORT, target=iscsi.IQN, session=session)) as again,
        closing(
            NvmeQueue(host, nvme_tcp.PORT, subsystem=nvme_tcp.NQN, controller=controller)
        ) as queue,
    ):
        return {"iscsi": again.status, "nvme": queue.status}


def _requests(lab: Lab, scratch: Path) -> dict[str, list[Any]]:
    """The readings off the wire of the same requests to both targets."""
    host, file = lab.network.nas_host, scratch / "wire.pcap"
    recorder = lab.record_nas_packets(file)
    with (
        closing(IscsiSession(host, iscsi.ISCSI_PORT, target=iscsi.IQN, session=0)) as session,
        closing(NvmeQueue(host, nvme_tcp.PORT, subsystem=nvme_tcp.NQN, controller=None)) as first,
    ):
        first.enable()
        queue = NvmeQueue(host, nvme_tcp.PORT, subsystem=nvme_tcp.NQN, controller=first.controller)
        with closing(queue):
            for disk in (session, queue):
                disk.write(8, is_forced=False)
                disk.flush()
                disk.write(16, is_forced=True)
    recorder.stop()
    found = {}
    for protocol in (IscsiOnWire(iscsi.ISCSI_PORT), NvmeTcpOnWire(nvme_tcp.PORT)):
        requests = DiskWire(protocol=protocol).requests(read_frames(file), sector_bytes=512)
        found[type(protocol).__name__] = [asdict(request) for request in requests]
    return found


def _said(lab: Lab, nas: Machine) -> dict[str, Any]:
    host = lab.network.nas_host
    with (
        closing(Server(host, _MOUNTD_PORT)) as mountd,
        closing(Server(host, _NFS_PORT)) as server,
    ):
        root = root_of(mountd, DIRECTORY)
        verifiers = [write_verifier(server, root).hex() for _ in range(2)]
        booted_s = boot_time_s(server)
    uuid = nas.must("cat", "/proc/sys/kernel/random/uuid", deadline_s=_DEADLINE_S).stdout.strip()
    return {"root": root.hex(), "verifiers": verifiers, "booted_s": booted_s, "uuid": uuid}
