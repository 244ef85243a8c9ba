"""The fate of the load's writers, by the last event of each."""

from __future__ import annotations

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


def failed_writers(ledger: Ledger) -> FailedWriters:
    """The ledger's writers whose last event failed after the first cut."""
    writer_of: dict[int, int] = {}
    last: dict[int, Failed | None] = {}
    is_cut = False
    for event in ledger.events:
        match event:
            case Cut():
                is_cut = True
            case Begin():
                writer_of[event.seq] = event.writer
                last[event.writer] = None
            case Done():
                last[writer_of.get(event.seq, -1)] = None
            case Failed() if is_cut:
                last[writer_of.get(event.seq, -1)] = event
            case _:
                pass
    failed = [event for event in last.values() if event is not None]
    return FailedWriters(
        count=len(failed),
        of=max(ledger.writers, len(set(writer_of.values()))),
        first=min(failed, key=lambda event: event.t_ms, default=None),
    )
