"""A NAS recovers the same bytes on every disk as in another trial, with a new check."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import (
    ADMINISTRATION,
    CHECK_STATE,
    CUT,
    CUT_STATE,
    LEDGER,
    PROOF,
    SECOND_CUT_STATE,
    load_evidence,
)
from torture.facts.evidence.requests import BLOCK_REQUESTS
from torture.facts.recording.crash_state import read_crash_state, require_legal
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import LOG, load_recording, verify_payloads
from torture.records.tasks.core_tasks import Replay
from torture.trials.trial.check import inspect
from torture.trials.trial.courses.protocol import Course
from torture.trials.trial.outage import keep_outage
from torture.trials.trial.recovery import bring_nas_back
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter, unpack_recordings

Look = Callable[[Path, CutDocument], None]
"""A look at the recordings and the cut of the first trial."""


def _looks_away(_recordings: Path, _cut: CutDocument) -> None:
    pass


def recover_again(
    trial: Trial, machines: Machines, evidence: EvidenceWriter, look: Look = _looks_away
) -> None:
    """Start a NAS on a crash state of the recording, and inspect it.

    When both machines died, or a finding was confirmed, it is the state after the cut. A client that
    lived continued to write: then it is the last state that its trial reached. `look` is asked before.

    Raises `HarnessError` when there is no recording, its payloads are damaged, or a walk or a
    confirmation has chosen a state that no cut leaves.
    """
    first = Path(trial.spec.replay_of)
    recordings = trial.scratch / "replayed"
    unpack_recordings(first, recordings)
    for folder in sorted(path.parent for path in recordings.rglob(LOG)):
        verify_payloads(load_recording(folder))
    for name in (LEDGER, CUT, PROOF, ADMINISTRATION, BLOCK_REQUESTS):
        if (first / name).exists():  # a load may keep no ledger, a pool may have no administration
            shutil.copy(first / name, trial.folder / name)
    cut = load_evidence(first).cut
    with keep_outage(machines, evidence):
        look(recordings, cut)
        machines.begin_checker()
        lived = trial.client_lives_on and not cut.confirmed.is_made
        with evidence.stage("bring NAS back"):
            view = recovered_state(recordings, lived=lived)
            if cut.confirmed.is_made:
                require_legal_view(view, trial.disks_left)
            back = bring_nas_back(trial, machines, evidence, view)
        if back is not None:
            inspect(trial, machines, evidence, back.nas, cut=None)


def require_legal_view(view: Path, disks: Sequence[ShelfDisk]) -> None:
    """Raise `HarnessError` for a file with a crash state that no cut leaves, as older walks have."""
    state = read_crash_state(view)
    require_legal(load_recording(state.recording), state, disks)


def recovered_state(recordings: Path, *, lived: bool) -> Path:
    """The file of the crash state to recover: the state at the check, or the state after the cut.

    For example, a trial whose pool was lost never reached its check.
    """
    last_first = (CHECK_STATE, SECOND_CUT_STATE) if lived else ()
    states = (recordings / name for name in last_first)
    return next((state for state in states if state.exists()), recordings / CUT_STATE)


COURSE = Course(task=Replay, stages=recover_again, makes_recording=False)
