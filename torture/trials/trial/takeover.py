"""The node that lost its power comes back while another node has its pool, and must not import it."""

from __future__ import annotations

import base64

from torture.choices.volumes import POOL
from torture.facts.evidence.folder import Step
from torture.machines.lab.machine import Machine
from torture.trials.trial.setup import wait_for_disks
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter

_CACHE = "/etc/zfs/zpool.cache"
_READ_CACHE = f"""set -eu
zpool set cachefile={_CACHE} {POOL}
base64 -w 0 {_CACHE}
zpool set cachefile=none {POOL}
"""
_SCRIPT_DEADLINE_S = 60
_IMPORT_DEADLINE_S = 300
"""An activity check takes some ten seconds (zfs(4), `zfs_multihost_import_intervals`)."""


def cache_of(nas: Machine) -> bytes:
    """The content of the pool's cache file, from which a node imports at its boot."""
    read = nas.must("sh", "-c", _READ_CACHE, deadline_s=_SCRIPT_DEADLINE_S)
    return base64.b64decode(read.stdout)


def return_former(trial: Trial, machines: Machines, evidence: EvidenceWriter, cache: bytes) -> None:
    """Start the former node on the same disks, without a network, and let it import as at its boot.

    It is a split brain if it has the pool then: the exit code is that of `zpool list`. The command
    is that of OpenZFS's `etc/systemd/system/zfs-import-cache.service.in`.
    """
    former = machines.start_former(trial.disks)
    wait_for_disks(former, trial.disks)
    forced = "-f " if trial.fault is not None and trial.fault.former_forces else ""
    script = f"""mkdir -p /etc/zfs
echo {base64.b64encode(cache).decode()} | base64 -d > {_CACHE}
zpool import {forced}-c {_CACHE} -aN
exec zpool list -H -o name {POOL}"""
    argv = ("sh", "-c", script)
    try:
        evidence.observe_to_end(former, Step.FORMER_IMPORT, argv, deadline_s=_IMPORT_DEADLINE_S)
    finally:
        former.kill()
