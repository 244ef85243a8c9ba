"""The load on a disk of the shelf, and no NAS in between: what is lost there is no NAS's doing."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.cells import Cell
from torture.choices.transports.protocol import Attachment
from torture.choices.volumes import SIZE_MIB
from torture.facts.evidence.folder import SPEC, Evidence, load_evidence, write_document
from torture.facts.recording.accounting import keep_all
from torture.facts.recording.crash_state import write_crash_state
from torture.facts.recording.disks import DiskFault, Persistence, ShelfDisk
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.machines.nas.devices import data_profile_of
from torture.records.record.specs import DRAW, TrialSpec
from torture.records.scoring.judge import judge
from torture.trials.plan.cut_plan import Aim, CutPlan
from torture.trials.plan.survivors import draw_disk_states
from torture.trials.plan.trial_plan import TrialPlan
from torture.trials.trial.check import check
from torture.trials.trial.context import TrialContext
from torture.trials.trial.cut import cut_power, wait_for_moment
from torture.trials.trial.setup import attach, prepare_disk, run_script, start_loads

FILESYSTEMS = ("ext4", "btrfs")
SOUND_CUTS, IGNORING_CUTS = 1, 1
_LOAD_MS = 1_500
_SCRIPT_DEADLINE_S = 60
_DELAY_MS_MAX = 40.0
_DISK = ShelfDisk(
    serial="vm",
    size_mib=SIZE_MIB,
    persistence=Persistence.VOLATILE,
    profile=data_profile_of(Persistence.VOLATILE),
)
_IGNORING = replace(_DISK, fault=DiskFault(drop_flush_every=1))
"""It says of every flush that it was done."""


@dataclass(kw_only=True)
class DirectContext(TrialContext):
    """A trial whose client has a disk of the shelf for its own; `disk` is what it does."""

    disk: ShelfDisk = _DISK

    def __post_init__(self) -> None:
        """The cell's pool is not there, and its cut aims at nothing of ZFS."""
        super().__post_init__()
        self.disks = (self.disk,)
        self.disks_left = (_DISK,)
        seed = self.spec.seed
        generator = random.Random(f"no NAS/{seed}")
        self.plan = TrialPlan(
            cut=CutPlan(
                after_ms=generator.uniform(0.25, 1.0) * _LOAD_MS,
                aim=generator.choice((Aim.OPERATION, Aim.ANYWHERE)),
                delay_ms=generator.uniform(0.0, _DELAY_MS_MAX),
                count=0,
            ),
            survivors=draw_disk_states((_DISK,), seed=seed, draw=DRAW),
            gone=frozenset(),
        )

    @property
    def attachment(self) -> Attachment:
        """The export of the shelf."""
        return Attachment(source=self.shelf.source(_DISK), device="/dev/vdb")


def cuts(lab: Lab, scratch: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By filesystem, what a sound disk and one that ignores flushes came to, a cut each.

    The client of the first cut makes the filesystem that the others find on their disk.
    """
    found = {}
    for filesystem in FILESYSTEMS:
        first = _context(lab, scratch / f"{filesystem}-0", filesystem)
        sound, prepared = [_cut(first)], _prepared_by(first)
        for seed in range(1, SOUND_CUTS):
            place = scratch / f"{filesystem}-{seed}"
            sound.append(_cut(_context(lab, place, filesystem, seed=seed), prepared))
        ignoring = []
        for seed in range(IGNORING_CUTS):
            place = scratch / f"{filesystem}-i{seed}"
            context = _context(lab, place, filesystem, disk=_IGNORING, seed=seed)
            ignoring.append(_cut(context, prepared))
        found[filesystem] = {"sound": sound, "ignoring": ignoring}
    return found


def _context(
    lab: Lab, scratch: Path, filesystem: str, *, disk: ShelfDisk = _DISK, seed: int = 0
) -> DirectContext:
    """The cell's NAS is left out: of it only filesystem and load are meant, and nothing is audited."""
    context = DirectContext(
        spec=TrialSpec(
            cell=Cell.parse(f"iscsi-disabled-noslog-{filesystem}-bothdie"),
            index=0,
            seed=seed,
            load_ms=_LOAD_MS,
        ),
        lab=lab,
        folder=scratch / "folder",
        scratch=scratch,
        enter_stage=lambda _stage: None,
        disk=disk,
    )
    context.folder.mkdir(parents=True)
    write_document(context.folder, SPEC, context.spec.as_json())
    return context


def _cut(context: DirectContext, prepared: Path | None = None) -> dict[str, Any]:
    """Load, cut, and check with a fresh client on a disk that does what it is told.

    Of a disk that was not prepared the client makes what it works on, and keeps how that looks.
    """
    with closing(context):
        context.shelf.start((context.disk,), view=prepared)
        client = context.start_client("client")
        attach(context, client)
        if prepared is None:
            _prepare(context, client)
        if context.is_mounted:
            mount = context.filesystem.mount(context.device, MOUNT_POINT)
            client.must(*mount, deadline_s=_SCRIPT_DEADLINE_S)
        start_loads(context, client)
        context.shelf.halt_with_freeze(client)
        hit = wait_for_moment(context, client)
        state = cut_power(context, hit=hit, victims=(client,))
        context.begin_checker()
        context.shelf.start((_DISK,), view=state)
        check(context)
        context.shelf.require_healthy()
    return _outcome(load_evidence(context.folder))


def _prepare(context: DirectContext, client: Machine) -> None:
    """The disk with its filesystem, not mounted and all of it durable, as a crash state."""
    prepare_disk(context, client)
    if context.is_mounted:
        run_script(client, f"umount {MOUNT_POINT}", deadline_s=_SCRIPT_DEADLINE_S)
    context.shelf.require_healthy()
    last = context.shelf.control.status().seq
    state = keep_all(context.shelf.recording, cut=last, disks=(_DISK,))
    write_crash_state(_prepared_by(context), state)


def _prepared_by(context: DirectContext) -> Path:
    return context.shelf.directory / "prepared.view.json"


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
