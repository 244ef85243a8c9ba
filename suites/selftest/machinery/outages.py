"""A NAS that does not come back, in several ways, and one whose machinery is at fault."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from suites.selftest.machinery.trial_stages import trial_in
from torture.errors import HarnessError
from torture.facts.evidence.folder import OUTAGE, SPEC, load_evidence
from torture.facts.recording.crash_state import write_crash_state
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.model import keep_all
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.records.scoring.score import score
from torture.trials.trial import recovery
from torture.trials.trial.outage import keep_outage
from torture.trials.trial.shared.machines import Machines
from torture.trials.trial.shared.resident import EvidenceWriter

_ZPOOLS = {
    "hung": "sleep 600",
    "stopped": 'echo "<0>PANIC: zfs: a thread stops" > /dev/kmsg; sleep 600',
    "panic": "echo c > /proc/sysrq-trigger; sleep 600",
    "no-volume": "[ -e /asked ] && exit 0; touch /asked; exit 1",
    "silent": "kill -STOP $(pidof qemu-ga); sleep 600",
}
"""A stand-in for `zpool` in the NAS that should come back. `no-volume` refuses once before it does
all it is asked; `silent` is no storage's fault."""
_PATIENCE_S = {"stopped": 300}


def outages(lab: Lab, scratch: Path) -> dict[str, Any]:
    """By kind: the error, if it was the machinery's; else the outage, the verdict and the imports."""
    recovery._PANIC_PATIENCE_S = 1
    return {
        kind: _outage(lab, scratch / kind, zpool, import_deadline_s=_PATIENCE_S.get(kind, 2))
        for kind, zpool in _ZPOOLS.items()
    }


def _outage(lab: Lab, scratch: Path, zpool: str, *, import_deadline_s: float) -> dict[str, Any]:
    lab.boot_from(nas="nas", client="client")
    trial = trial_in(lab, scratch)
    machines, evidence = Machines(trial=trial, lab=lab), EvidenceWriter(folder=trial.folder)
    evidence.write(SPEC, trial.spec.as_json())
    shelf = machines.shelf
    shelf.start(trial.disks)
    shelf.stop()
    view = shelf.directory / "empty.view.json"
    write_crash_state(view, keep_all(shelf.recording, cut=0, disks=trial.disks))
    start_nas = machines.start_nas

    def start_with_another_zpool(
        boot: int | str, disks_on_shelf: tuple[ShelfDisk, ...], *, draws_anew: bool = False
    ) -> Machine:
        nas = start_nas(boot, disks_on_shelf, draws_anew=draws_anew)
        script = f"printf '#!/bin/sh\\n{zpool}\\n' > /zpool && chmod +x /zpool"
        nas.must("sh", "-c", script, deadline_s=10)
        nas.must("mount", "--bind", "/zpool", "/usr/sbin/zpool", deadline_s=10)
        return nas

    machines.start_nas = start_with_another_zpool  # type: ignore[method-assign]
    try:
        end = keep_outage(machines, evidence)
        with closing(machines), end, evidence.stage("bring NAS back"):
            recovery.bring_nas_back(
                trial, machines, evidence, view,
                import_deadline_s=import_deadline_s, volume_deadline_s=3,
            )  # fmt: skip
    except HarnessError as error:
        return {"error": str(error)}
    outage = json.loads((trial.folder / OUTAGE).read_text())
    record = score(trial.folder, timings={})
    tools = load_evidence(trial.folder).tools
    return {
        "error": None,
        "outage": outage,
        "verdict": record.verdict,
        "pool": record.judgement.parts,
        "imports": [(tool.step, tool.exit_code) for tool in tools if "import" in tool.argv],
    }
