"""The stages of a recorded trial: the same bytes on every disk, recovered and checked once more."""

from __future__ import annotations

import shutil
from pathlib import Path

from torture.facts.evidence.administration_document import ADMINISTRATION
from torture.facts.evidence.folder import (
    CHECK_STATE,
    CUT,
    CUT_STATE,
    LEDGER,
    PROOF,
    SECOND_CUT_STATE,
    load_evidence,
)
from torture.facts.recording.events import LOG, load_recording, verify_payloads
from torture.trials.trial.archive import unpack_recordings
from torture.trials.trial.context import TrialContext
from torture.trials.trial.inspect import inspect
from torture.trials.trial.outage import after_the_cut
from torture.trials.trial.recovery import bring_nas_back


def recorded_stages(context: TrialContext) -> None:
    """Bring a NAS up on a crash state of the recording, and inspect.

    When both machines died, or a finding was confirmed, it is the one that the cut left. A client that
    lived wrote on: then it is the last one that its trial came to.

    Raises `HarnessError` when no recording was kept, or its payloads are not what was written.
    """
    evidence = Path(context.spec.replay_of)
    recordings = context.scratch / "replayed"
    unpack_recordings(evidence, recordings)
    for folder in sorted(path.parent for path in recordings.rglob(LOG)):
        verify_payloads(load_recording(folder))
    for name in (LEDGER, CUT, PROOF, ADMINISTRATION):
        if (
            evidence / name
        ).exists():  # not every load keeps a ledger, not every pool is administered
            shutil.copy(evidence / name, context.folder / name)
    with after_the_cut(context):
        _recover(context, recordings)


def _recover(context: TrialContext, recordings: Path) -> None:
    context.begin_checker()
    confirmed = load_evidence(context.folder).cut.confirmed
    lived = context.client_lives_on and not confirmed.is_made
    with context.stage("bring NAS back"):
        nas = bring_nas_back(context, recovered_state(recordings, lived=lived))
    if nas is not None:
        inspect(context, nas)


def recovered_state(recordings: Path, *, lived: bool) -> Path:
    """The crash state that is recovered: what the check found, or what was to be recovered before it.

    A trial whose pool was lost, say, never came to its check.
    """
    last_first = (CHECK_STATE, SECOND_CUT_STATE) if lived else ()
    states = (recordings / name for name in last_first)
    return next((state for state in states if state.exists()), recordings / CUT_STATE)
