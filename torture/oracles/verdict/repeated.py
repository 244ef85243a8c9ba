"""Requests that a server does twice: the second answer says that the first one was done (pure).

A client of NFS sends a request again that was under way in a cut. A server that rebooted has forgotten
its answer. Linux's does so (fs/nfsd/nfscache.c), and a server may (RFC 8881, 2.10.6.5). The name to
remove or to move is then gone.

A creation has a verifier against that (RFC 1813, 3.3.8), so its error stays one. ZFS forgets a part of
the verifier, and the error then has a reason that names this finding.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace

from torture.facts.evidence.ledger import Begin, Cut, Done, Failed, Ledger, OperationKind

_DONE_BEFORE = {
    (OperationKind.UNLINK, "unlink", errno.ENOENT),
    (OperationKind.REPLACE, "rename", errno.ENOENT),
}


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

    The operation must have been under way in a cut. Later ones were sent once.
    """
    done = {
        event.seq: Done(t_ms=event.t_ms, seq=event.seq)
        for kind, event in _failed_under_way(ledger)
        if (kind, event.call, event.errno) in _DONE_BEFORE
    }
    events = tuple(
        done.get(event.seq, event) if isinstance(event, Failed) else event
        for event in ledger.events
    )
    return replace(ledger, events=events)


def creations_that_met_their_file(ledger: Ledger) -> tuple[str, ...]:
    """A reason for each exclusive creation that ended with EEXIST, and was under way in a cut."""
    return tuple(
        _OWN_FILE.format(event.seq)
        for kind, event in _failed_under_way(ledger)
        if (kind, event.call, event.errno) in _MADE_BEFORE
    )


def _failed_under_way(ledger: Ledger) -> Iterator[tuple[OperationKind, Failed]]:
    """The failures of operations that were under way in a cut, each with the operation's kind."""
    open_kinds: dict[int, OperationKind] = {}
    under_way: set[int] = set()
    for event in ledger.events:
        match event:
            case Begin():
                open_kinds[event.seq] = event.kind
            case Cut():
                under_way |= open_kinds.keys()
            case Done():
                open_kinds.pop(event.seq, None)
            case Failed() if event.seq in under_way and event.seq in open_kinds:
                yield open_kinds.pop(event.seq), event
            case _:
                pass
