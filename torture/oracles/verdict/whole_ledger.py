"""Whether the ledger has everything that the client reported, by other evidence (pure)."""

from __future__ import annotations

from torture.facts.evidence.folder import CUT, Evidence, Step
from torture.facts.evidence.ledger import Hello
from torture.oracles.verdict.guarantee import Terms
from torture.oracles.verdict.verdicts import UnreadableError


def whole_ledger(evidence: Evidence, terms: Terms) -> Hello:
    """The beginning of a whole ledger that has an acknowledgement; raises `UnreadableError`."""
    ledger = evidence.ledger
    hello = next((event for event in ledger.events if isinstance(event, Hello)), None)
    if hello is None:
        raise UnreadableError("the ledger is empty: the load never began")
    if ledger.garbled:
        raise UnreadableError(f"{ledger.garbled} lines of the ledger are garbled")
    if ledger.acknowledged == 0:
        raise UnreadableError("nothing was acknowledged, so nothing could be lost")
    if lack := _lack_of(evidence, terms):
        raise UnreadableError(lack)
    return hello


def _lack_of(evidence: Evidence, terms: Terms) -> str:
    """The client's operations that the ledger lacks, by other evidence; empty where it has all.

    A read-back shows an operation without a line in the ledger as one that never happened. Trials
    without a shelf counted no lines, and their ledger counts as complete.
    """
    ledger, cut = evidence.ledger, evidence.cut
    if not evidence.is_cut_read:
        return f"{CUT} cannot be read, so the ledger's length at the cut is unknown"
    due = cut.marks if cut.confirmed.marks is None else cut.confirmed.marks
    if due is None:
        return ""
    if ledger.received is not None and ledger.received < due:
        return (
            f"the ledger is cut off: {ledger.received} of {due} lines from before the cut are left"
        )
    if ledger.cuts < (1 if cut.second is None else 2):
        return "the ledger is cut off: the cut's line is missing"
    if terms.client_lives and _has_been_ended(evidence) and not ledger.is_ended:
        return "the ledger is cut off: the load's end is missing"
    return ""


def _has_been_ended(evidence: Evidence) -> bool:
    """Whether the host ended the load of a client that lived, and it answered afterwards."""
    has_answered = evidence.output(Step.CLIENT_DMESG) is not None
    lost_root = evidence.output(Step.CLIENT_LOST_ROOT) is not None
    return has_answered and not lost_root and evidence.ledger.cuts == 1
