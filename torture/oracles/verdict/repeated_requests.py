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

from torture.facts.evidence.ledger import Begin, Cut, Done, Event, Failed, Ledger, OperationKind

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
