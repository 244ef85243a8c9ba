"""The stages of a recorded trial: a NAS recovers the same bytes on every disk, with a new check."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
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
from torture.facts.recording.crash_state import read_crash_state
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import LOG, load_recording, verify_payloads
from torture.facts.recording.legal import require_legal
from torture.trials.trial.check import inspect
from torture.trials.trial.outage import keep_outage
from torture.trials.trial.recovery import bring_nas_back
from torture.trials.trial.shared.archive import unpack_recordings
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.machines import Machines, PowerCut
from torture.trials.trial.shared.trial import Trial
from torture.trials.trial.walk.ground import Around
from torture.trials.trial.walk.walk import walk


def recorded_stages(trial: Trial, machines: Machines, evidence: EvidenceWriter) -> None:
    """Start a NAS on a crash state of the recording, and inspect it.

    When both machines died, or a finding was confirmed, it is the state after the cut. A client that
    lived continued to write: then it is the last state that its trial reached.

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
    confirmed = cut.confirmed
    with keep_outage(machines, evidence):
        if trial.spec.walk_states:
            _walk_around(trial, machines, evidence, recordings, cut)
        machines.begin_checker()
        lived = trial.client_lives_on and not confirmed.is_made
        with evidence.stage("bring NAS back"):
            view = recovered_state(recordings, lived=lived)
            if confirmed.is_made:
                require_legal_view(view, trial.disks_left)
            back = bring_nas_back(trial, machines, evidence, view)
        if back is not None:
            inspect(trial, machines, evidence, back.nas, cut=None)


def _walk_around(
    trial: Trial, machines: Machines, evidence: EvidenceWriter, recordings: Path, cut: CutDocument
) -> None:
    """Walk the states of cuts around the recorded one, which may be one amid a recovery."""
    state = read_crash_state(recordings / CUT_STATE)
    power_cut = PowerCut(
        recording=load_recording(recordings / cut.view["recording"]),
        seq=state.cut if cut.log_seq is None else cut.log_seq,
        t_ms=cut.t_ms or 0.0,
        took_ms=cut.took_ms or 0.0,
    )
    around = Around(state=state, acknowledged=cut.confirmed.event or power_cut.seq)
    with evidence.stage("walk"):
        walk(trial, machines, evidence, power_cut, around=around)


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
