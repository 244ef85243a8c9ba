"""The fate of the load's writers, by the last event of each."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from torture.facts.evidence.ledger import Begin, Cut, Done, Failed, Ledger


@dataclass(frozen=True, kw_only=True, slots=True)
class FailedWriters:
    """Writers of a client that lived on, whose last event after the cut is a failure.

    `first` is the earliest failure. A writer stops at its first failed call.
    """

    count: int
    of: int
    """The number of writers, by the load; at least the number of those that began something."""
    first: Failed | None

    @property
    def in_words(self) -> str:
        """E.g. `1 of 3 writers failed for good: errno 17 in open`; empty where none did."""
        if self.first is None:
            return ""
        how = f"errno {self.first.errno} in {self.first.call}"
        return f"{self.count} of {self.of} writers failed for good: {how}"


_ANSWER_OF_REPEATED = {
    **dict.fromkeys(("unlink", "rmdir", "rename"), errno.ENOENT),
    **dict.fromkeys(("link", "mkdir"), errno.EEXIST),
}
"""The answer to a call that was done before. A creation has a verifier against that (RFC 1813, 3.3.8)."""


def failed_writers(ledger: Ledger, *, repeats_requests: bool = False) -> FailedWriters:
    """The ledger's writers whose last event failed after the first cut.

    `repeats_requests`: a NAS that comes back may do a request again that was under way in a cut. A call
    that failed for that reason alone does not count.
    """
    writer_of: dict[int, int] = {}
    last: dict[int, Failed | None] = {}
    is_cut = False
    begun, under_way = set[int](), set[int]()
    for event in ledger.events:
        match event:
            case Cut():
                is_cut = True
                under_way |= begun
            case Begin():
                begun.add(event.seq)
                writer_of[event.seq] = event.writer
                last[event.writer] = None
            case Done():
                begun.discard(event.seq)
                last[writer_of.get(event.seq, -1)] = None
            case Failed() if is_cut:
                is_repeated = repeats_requests and event.seq in under_way
                if not (is_repeated and _ANSWER_OF_REPEATED.get(event.call) == event.errno):
                    last[writer_of.get(event.seq, -1)] = event
            case _:
                pass
    failed = [event for event in last.values() if event is not None]
    return FailedWriters(
        count=len(failed),
        of=max(ledger.writers, len(set(writer_of.values()))),
        first=min(failed, key=lambda event: event.t_ms, default=None),
    )
