"""Requests that a server does twice: the second answer says that the first one was done (pure).

A client of NFS sends a request again that was under way in a cut. A server that rebooted has forgotten
its answer. Linux's does so (fs/nfsd/nfscache.c), and a server may (RFC 8881, 2.10.6.5). The name to
remove or to move is then gone.

A creation has a verifier against that (RFC 1813, 3.3.8), so its error stays one.
"""

from __future__ import annotations

import errno
from dataclasses import replace

from torture.facts.evidence.ledger import Begin, Cut, Done, Event, Failed, Ledger, OperationKind

_DONE_BEFORE = {
    (OperationKind.UNLINK, "unlink", errno.ENOENT),
    (OperationKind.REPLACE, "rename", errno.ENOENT),
}


def repeated_as_done(ledger: Ledger) -> Ledger:
    """The ledger with each such answer as the acknowledgement that it is: its effect must be there.

    The operation must have been under way in a cut. Later ones were sent once.
    """
    open_kinds: dict[int, OperationKind] = {}
    under_way: set[int] = set()
    events: list[Event] = []
    for event in ledger.events:
        match event:
            case Begin():
                open_kinds[event.seq] = event.kind
            case Cut():
                under_way |= open_kinds.keys()
            case Done():
                open_kinds.pop(event.seq, None)
            case Failed() if event.seq in under_way:
                kind = open_kinds.pop(event.seq, None)
                if (kind, event.call, event.errno) in _DONE_BEFORE:
                    events.append(Done(t_ms=event.t_ms, seq=event.seq))
                    continue
            case _:
                pass
        events.append(event)
    return replace(ledger, events=tuple(events))
