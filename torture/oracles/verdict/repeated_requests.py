"""Requests that a server does twice: the second answer says that the first one was done (pure).

A client of NFS sends a request again that was under way in a cut. A server that rebooted has forgotten
its answer. Linux's does so (fs/nfsd/nfscache.c), and a server may (RFC 8881, 2.10.6.5). The name to
remove or to move is then gone. The directory or link to make is there.

The creation of a file has a verifier against that (RFC 1813, 3.3.8), so its error stays one. ZFS
forgets a part of the verifier, and the error then has a reason that names this finding.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace

from torture.facts.evidence.folder import CUT, Evidence, Step
from torture.facts.evidence.ledger import (
    Begin,
    Cut,
    Done,
    Event,
    Failed,
    Hello,
    Ledger,
    OperationKind,
)
from torture.oracles.verdict.guarantee import Terms, UnreadableError

_DONE_BEFORE = {
    (OperationKind.UNLINK, "unlink", errno.ENOENT),
    (OperationKind.REPLACE, "rename", errno.ENOENT),
}
_NAME_DONE_BEFORE = {
    ("unlink", errno.ENOENT),
    ("rmdir", errno.ENOENT),
    ("rename", errno.ENOENT),
    ("mkdir", errno.EEXIST),
    ("symlink", errno.EEXIST),
    ("link", errno.EEXIST),
}
"""The same for transactions whose names are durable with the call (`trees/tree_syncs.py`)."""

_MADE_BEFORE = {
    (OperationKind.CREATE, "open", errno.EEXIST),
    (OperationKind.REPLACE, "open", errno.EEXIST),
}
_OWN_FILE = (
    "the creation of operation {} was under way in the cut, and met its own file: see docs/findings.md, "
    "'A file's access time does not survive a power cut'"
)


def repeated_as_done(ledger: Ledger) -> Ledger:
    """The ledger with each such answer as the acknowledgement that it is: its effect must be there.

    The operation must have been under way in a cut. Later ones were sent once. The syncs after the
    call were not made.
    """
    done = {
        event.seq: Done(t_ms=event.t_ms, seq=event.seq)
        for begin, event in _failed_under_way(ledger)
        if _was_done(begin, event)
    }
    events: list[Event] = []
    for event in ledger.events:
        if isinstance(event, Failed) and event.seq in done:
            events.append(done[event.seq])
        elif isinstance(event, Begin) and event.seq in done and event.what:
            events.append(replace(event, what={**event.what, "syncs": []}))
        else:
            events.append(event)
    return replace(ledger, events=tuple(events))


def _was_done(begin: Begin, failed: Failed) -> bool:
    if begin.what.get("names_are_stable") and begin.what["do"] == failed.call:
        return (failed.call, failed.errno) in _NAME_DONE_BEFORE
    return (begin.kind, failed.call, failed.errno) in _DONE_BEFORE


def creations_that_met_their_file(ledger: Ledger) -> tuple[str, ...]:
    """A reason for each exclusive creation that ended with EEXIST, and was under way in a cut."""
    return tuple(
        _OWN_FILE.format(event.seq)
        for begin, event in _failed_under_way(ledger)
        if (begin.kind, event.call, event.errno) in _MADE_BEFORE
    )


def _failed_under_way(ledger: Ledger) -> Iterator[tuple[Begin, Failed]]:
    """The failures of operations that were under way in a cut, each with the operation's beginning."""
    begun: dict[int, Begin] = {}
    under_way: set[int] = set()
    for event in ledger.events:
        match event:
            case Begin():
                begun[event.seq] = event
            case Cut():
                under_way |= begun.keys()
            case Done():
                begun.pop(event.seq, None)
            case Failed() if event.seq in under_way and event.seq in begun:
                yield begun.pop(event.seq), event
            case _:
                pass


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
