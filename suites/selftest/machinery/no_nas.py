"""The load on a disk of the shelf, and no NAS in between: what is lost there is no NAS's doing."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.cells import Cell
from torture.choices.transports.protocol import Attachment
from torture.choices.volumes import SIZE_MIB
from torture.facts.evidence.folder import SPEC, Evidence, load_evidence, write_document
from torture.facts.recording.crash_state import write_crash_state
from torture.facts.recording.disks import DiskFault, Persistence, ShelfDisk
from torture.facts.recording.model import keep_all
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.machines.nas.pool import DATA_PROFILES
from torture.machines.shelf.server import RECORDINGS_OF_SHELF, Shelf
from torture.records.record.specs import DRAW, TrialSpec
from torture.records.scoring.judge import judge
from torture.trials.plan.cut_plan import Aim, CutPlan
from torture.trials.plan.trial_plan import TrialPlan, draw_disk_states
from torture.trials.trial.check import check
from torture.trials.trial.cut import keep_cut
from torture.trials.trial.moment import wait_for_moment
from torture.trials.trial.setup import attach, prepare_disk, run_script, start_loads
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter

FILESYSTEMS = ("ext4", "btrfs")
SOUND_CUTS, IGNORING_CUTS = 1, 1
_LOAD_MS = 1_500
_SCRIPT_DEADLINE_S = 60
_DELAY_MS_MAX = 40.0
_DISK = ShelfDisk(
    serial="vm",
    size_mib=SIZE_MIB,
    persistence=Persistence.VOLATILE,
    profile=DATA_PROFILES[Persistence.VOLATILE],
)
_IGNORING = replace(_DISK, fault=DiskFault(drop_flush_every=1))
"""It says of every flush that it was done."""


def cuts(lab: Lab, scratch: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By filesystem, what a sound disk and one that ignores flushes came to, a cut each.

    The client of the first cut makes the filesystem that the others find on their disk.
    """
    found = {}
    for filesystem in FILESYSTEMS:
        first = _trial(lab, scratch / f"{filesystem}-0", filesystem)
        sound, prepared = [_cut(lab, first)], _prepared_by(first)
        for seed in range(1, SOUND_CUTS):
            place = scratch / f"{filesystem}-{seed}"
            sound.append(_cut(lab, _trial(lab, place, filesystem, seed=seed), prepared))
        ignoring = []
        for seed in range(IGNORING_CUTS):
            place = scratch / f"{filesystem}-i{seed}"
            trial = _trial(lab, place, filesystem, disk=_IGNORING, seed=seed)
            ignoring.append(_cut(lab, trial, prepared))
        found[filesystem] = {"sound": sound, "ignoring": ignoring}
    return found


def _trial(
    lab: Lab, scratch: Path, filesystem: str, *, disk: ShelfDisk = _DISK, seed: int = 0
) -> Trial:
    """A trial whose client has a disk of the shelf for its own; `disk` is what it does.

    The cell's NAS and its pool are left out: of it only filesystem and load are meant. The cut aims at
    nothing of ZFS, and nothing is audited.
    """
    trial = Trial.begin(
        TrialSpec(
            cell=Cell.parse(f"iscsi-disabled-noslog-{filesystem}-bothdie"),
            index=0,
            seed=seed,
            load_ms=_LOAD_MS,
        ),
        folder=scratch / "folder",
        scratch=scratch,
        nas_host=lab.network.nas_host,
    )
    trial.folder.mkdir(parents=True)
    write_document(trial.folder, SPEC, trial.spec.as_json())
    shelf = Shelf(directory=scratch, socket=lab.sockets / "shelf.sock")
    return replace(
        trial,
        plan=_plan_of(seed),
        attachment=Attachment(source=shelf.source(_DISK), device="/dev/vdb"),
        disks=(disk,),
        disks_left=(_DISK,),
    )


def _plan_of(seed: int) -> TrialPlan:
    generator = random.Random(f"no NAS/{seed}")
    return TrialPlan(
        cut=CutPlan(
            after_ms=generator.uniform(0.25, 1.0) * _LOAD_MS,
            aim=generator.choice((Aim.OPERATION, Aim.ANYWHERE)),
            delay_ms=generator.uniform(0.0, _DELAY_MS_MAX),
            count=0,
        ),
        survivors=draw_disk_states((_DISK,), seed=seed, draw=DRAW),
        gone=frozenset(),
    )


def _cut(lab: Lab, trial: Trial, prepared: Path | None = None) -> dict[str, Any]:
    """Load, cut, and check with a fresh client on a disk that keeps its promises.

    Of a disk that was not prepared the client makes what it works on, and keeps how that looks.
    """
    evidence = EvidenceWriter(folder=trial.folder)
    with closing(Machines(trial=trial, lab=lab)) as machines:
        shelf = machines.shelf
        shelf.start(trial.disks, view=prepared)
        client = machines.start_client("client")
        attach(trial, client)
        if prepared is None:
            _prepare(trial, shelf, client)
        if trial.is_mounted:
            mount = trial.filesystem.mount
            client.must(*mount, deadline_s=_SCRIPT_DEADLINE_S)
        loads = start_loads(trial, machines, evidence, client)
        shelf.halt_with_freeze(client)
        hit = wait_for_moment(trial.plan.cut, shelf, loads, client)
        power_cut = machines.cut((client,))
        kept = keep_cut(trial, machines, evidence, loads, power_cut, hit=hit, link=None)
        machines.begin_checker()
        shelf.start((_DISK,), view=kept.view)
        checker = machines.checker()
        if is_sound := check(trial, evidence, checker):
            machines.give_checker_back(checker)
        shelf.require_healthy()
    return _outcome(load_evidence(trial.folder)) | {"checker_is_kept": is_sound}


def _prepare(trial: Trial, shelf: Shelf, client: Machine) -> None:
    """The disk with its filesystem, not mounted and all of it durable, as a crash state."""
    prepare_disk(trial, client)
    if trial.is_mounted:
        run_script(client, f"umount {MOUNT_POINT}", deadline_s=_SCRIPT_DEADLINE_S)
    shelf.require_healthy()
    last = shelf.control.status().seq
    state = keep_all(shelf.recording, cut=last, disks=(_DISK,))
    write_crash_state(_prepared_by(trial), state)


def _prepared_by(trial: Trial) -> Path:
    return trial.scratch / RECORDINGS_OF_SHELF / "prepared.view.json"


def _outcome(evidence: Evidence) -> dict[str, Any]:
    judgement = judge(evidence)
    return {
        "verdicts": [judgement.filesystem, judgement.data],
        "acknowledged": judgement.acknowledged,
        "lost": judgement.lost,
        "unflushed": evidence.cut.disks[_DISK.serial].unflushed,
        "findings": list(evidence.cut.audit.findings),
        "reasons": list(judgement.reasons),
    }
