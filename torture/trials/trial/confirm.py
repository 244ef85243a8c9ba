"""The confirmation of a finding of the audit: a cut of the disks at the finding.

The NAS recovers from this cut instead of the drawn one.
"""

from __future__ import annotations

import os

from torture.facts.evidence.cut_document import Confirmation
from torture.facts.evidence.ledger import parse_ledger
from torture.facts.recording.crash_state import CrashState, require_legal
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import Recording, marks_until
from torture.oracles.audit.confirmable import confirmable
from torture.oracles.audit.invariants import Audit


def confirm(
    recording: Recording,
    found: Audit,
    *,
    drawn: CrashState,
    t_ms: float,
    disks: tuple[ShelfDisk, ...],
    lives_on: bool,
    acknowledged: int,
    in_ledger: int | None,
) -> tuple[CrashState, Confirmation]:
    """The crash state to recover, and its entry in `cut.json`.

    It is the drawn one, which was at `t_ms`, unless a finding of the audit can be confirmed. After a
    confirmation the client counts as dead: an acknowledged operation that is gone is lost either
    way, and later acknowledgements never happened.

    `acknowledged`: by all loads. `in_ledger`: in the ledger, if there is one. Raises `HarnessError` where
    no cut leaves the chosen state.
    """
    if not found.findings:
        return drawn, Confirmation()
    if acknowledged != in_ledger:
        why_not = "a load keeps its acknowledgements outside the ledger"
        return drawn, Confirmation(why_not=why_not)
    chosen = confirmable(found, recording, disks=disks, client_survives=lives_on)
    if isinstance(chosen, str):
        return drawn, Confirmation(why_not=chosen)
    state = CrashState(
        recording=drawn.recording, cut=chosen.event, seed=drawn.seed, disks=dict(chosen.disks)
    )
    require_legal(recording, state, disks)
    finding = chosen.finding.in_words()
    return state, earlier_cut(recording, state, last=drawn.cut, t_ms=t_ms, finding=finding)


def earlier_cut(
    recording: Recording,
    state: CrashState,
    *,
    last: int,
    t_ms: float,
    finding: str,
    at: int | None = None,
) -> Confirmation:
    """The record of a cut before that at event `last` and `t_ms`: the state recovered in its place.

    `at`: the event of that cut, where the state is that of a further cut amid the recovery.
    """
    place = state.recording.name
    if at is not None:
        place = os.path.relpath(state.recording, recording.folder.parent)
    cut = state.cut if at is None else at
    events, marks = recording.events, marks_until(recording, cut=cut)
    earlier_ms = (events[last].time_ns - events[cut].time_ns) / 1e6
    return Confirmation(
        finding=finding,
        event=cut,
        t_ms=round(t_ms - earlier_ms, 3),
        marks=len(marks),
        acknowledged=parse_ledger(b"".join(marks)).acknowledged,
        view=state.as_json() | {"recording": place},
    )
