"""A finding of the audit, confirmed: the disks are cut there, and recovered instead of the drawn cut."""

from __future__ import annotations

from torture.facts.evidence.confirmation import Confirmation
from torture.facts.evidence.ledger import parse_ledger
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.events import Recording, marks_until
from torture.oracles.audit.confirmable import confirmable
from torture.oracles.audit.found import Audit
from torture.trials.trial.context import TrialContext


def confirm(
    context: TrialContext, recording: Recording, found: Audit, *, drawn: CrashState, t_ms: float
) -> tuple[CrashState, Confirmation]:
    """The crash state to recover, and what `cut.json` says of it.

    It is the drawn one, which was at `t_ms`, unless the audit found something that can be confirmed.
    Then the client is taken for dead, too: what was acknowledged to it and is gone is lost either way,
    and what was told to it later never happened.
    """
    if not found.findings:
        return drawn, Confirmation()
    if context.ledger is None or context.loads.acknowledged != context.ledger.acknowledged:
        why_not = "a load keeps its acknowledgements elsewhere than in the log"
        return drawn, Confirmation(why_not=why_not)
    chosen = confirmable(
        found, recording, disks=context.disks_left, client_survives=context.client_lives_on
    )
    if isinstance(chosen, str):
        return drawn, Confirmation(why_not=chosen)
    state = CrashState(
        recording=drawn.recording, cut=chosen.event, seed=drawn.seed, disks=dict(chosen.disks)
    )
    events, marks = recording.events, marks_until(recording, cut=chosen.event)
    earlier_ms = (events[drawn.cut].time_ns - events[chosen.event].time_ns) / 1e6
    context.client_lives_on = False
    return state, Confirmation(
        finding=chosen.finding.in_words(),
        event=chosen.event,
        t_ms=round(t_ms - earlier_ms, 3),
        marks=len(marks),
        acknowledged=parse_ledger(b"".join(marks)).acknowledged,
        view=state.as_json() | {"recording": drawn.recording.name},
    )
