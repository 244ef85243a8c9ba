"""A NAS that comes back, as its clients see it: resumed from where it was saved, yet another boot."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from suites.selftest.machinery.nfs_client import Server, boot_time_s, root_of, write_verifier
from torture.evidence.folder import SPEC, write_document
from torture.lab.lab import Lab
from torture.lab.machine import Machine
from torture.matrix.cells import Cell
from torture.record.specs import TrialSpec
from torture.recording.accounting import everything
from torture.recording.crash_state import write_crash_state
from torture.trial.context import TrialContext
from torture.trial.recovery import bring_nas_back
from torture.trial.setup import set_up_nas
from torture.volumes.dataset import DIRECTORY

_CELL = "nfs4-standard-noslog-files-bothdie"
_NFS_PORT, _MOUNTD_PORT = 2049, 20048
_DEADLINE_S = 30
_LEFT_FROM_BEFORE = """
grep -E '^(nfsd|nvmet|ksmbd) ' /proc/modules
ls -d /sys/kernel/config/target/iscsi /sys/kernel/config/target/core/*_0 /sys/kernel/config/nvmet
zpool list -H
true
"""
"""What serves clients, or would remember them, in a NAS that has not published anything yet."""


def boots(lab: Lab, scratch: Path) -> dict[str, Any]:
    """What two boots of the NAS of one trial say to a client of NFS, and what a boot begins with."""
    spec = TrialSpec(cell=Cell.parse(_CELL), index=0, seed=1, load_ms=1000)
    context = TrialContext(
        spec=spec,
        lab=lab,
        folder=scratch / "folder",
        scratch=scratch,
        enter_stage=lambda _stage: None,
    )
    context.folder.mkdir(parents=True)
    write_document(context.folder, SPEC, spec.as_json())
    with closing(context):
        before = set_up_nas(context)
        said = [_said(lab, before)]
        before.kill()
        last = context.shelf.control.status().seq
        context.shelf.stop()
        state = everything(context.shelf.recording, cut=last, disks=context.disks)
        view = context.shelf.directory / "reboot.view.json"
        write_crash_state(view, state)
        after = bring_nas_back(context, view)
        assert after is not None, "the pool did not come back"
        said.append(_said(lab, after))
        after.kill()
        fresh = lab.start_nas(console_log=scratch / "fresh.console.log", disks=())
        try:
            left = fresh.must("sh", "-c", _LEFT_FROM_BEFORE, deadline_s=_DEADLINE_S).stdout
        finally:
            fresh.kill()
    return {"said": said, "left": left}


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
