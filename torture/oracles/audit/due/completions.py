"""The writes that a completion of the client's disk or server promises as durable, and when.

With `sync=always` a completed write is durable. With `standard` a completed forced (FUA) write is. A
completed flush makes all writes durable that completed before it began (virtio 1.2, 5.2.6.2; NVMe
Command Set 1.0, 3.2.1; SBC-4, 4.15; zfsprops(7)). `file_promises` has the rules of files.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from torture.facts.axes.sync import Sync
from torture.facts.evidence.block_requests import BlockKind, BlockRequest
from torture.facts.evidence.file_requests import FileRequest
from torture.facts.recording.events import Event
from torture.oracles.audit.due.durable import DueWrite, Durable
from torture.oracles.audit.due.file_promises import due_of_files
from torture.oracles.audit.extents import sectors_of
from torture.oracles.audit.invariants import Finding, Invariant

_time_ns = attrgetter("time_ns")


@dataclass(frozen=True, kw_only=True, slots=True)
class Completions:
    """The completed requests of the client's disk or server, in the time of the recording.

    The times may be wrong by `error_ns`.
    """

    requests: tuple[BlockRequest | FileRequest, ...]
    error_ns: int
    names_are_stable: bool = False
    """Whether a server answers a change of names only once it is durable."""

    def due(self, *, sync: Sync, cut_ns: int) -> Iterator[DueWrite]:
        """The writes that had to be durable by `cut_ns`, each once; later completions do not count.

        The recording may be that of the NAS that came back to a surviving client. Then requests from
        before its start do not count: they may have been in the memory of the NAS that died.
        """
        done = [request for request in self.requests if request.completed_ns <= cut_ns]
        blocks = [request for request in done if isinstance(request, BlockRequest)]
        files = [request for request in done if isinstance(request, FileRequest)]
        yield from due_of_disk(blocks, sync=sync)
        yield from due_of_files(files, sync=sync, names_are_stable=self.names_are_stable)


def overdue_in(
    completions: Completions, durable: Durable, events: Sequence[Event], *, sync: Sync, cut: int
) -> tuple[int, list[Finding]]:
    """How many writes were due by the cut, and a finding for each one that was not durable in time."""
    error_ns = completions.error_ns
    count, found = 0, []
    for due in completions.due(sync=sync, cut_ns=events[cut].time_ns):
        count += 1
        if durable.keeps(due, error_ns=error_ns):
            continue
        kept_ns = durable.since_ns(due, error_ns=error_ns)
        at = bisect_right(events, due.due_ns, hi=cut + 1, key=_time_ns) - 1
        until = cut if kept_ns is None else bisect_left(events, kept_ns, key=_time_ns) - 1
        found.append(
            Finding(
                invariant=Invariant.COMPLETED_IS_DURABLE,
                event=at,
                offset_bytes=due.offset_bytes,
                until=max(at, min(until, cut)),
            )
        )
    return count, found


def due_of_disk(done: Sequence[BlockRequest], *, sync: Sync) -> Iterator[DueWrite]:
    """The writes that a disk promises by completing these requests."""
    writes = [
        request for request in done if request.kind is BlockKind.WRITE and request.submitted_ns >= 0
    ]
    if sync is Sync.ALWAYS:
        yield from (_due(write, write.completed_ns) for write in writes)
    if sync is not Sync.STANDARD:
        return
    yield from (_due(write, write.completed_ns) for write in writes if write.is_forced)
    writes = [write for write in writes if not write.is_forced]
    flushes = sorted(
        (request for request in done if request.kind is BlockKind.FLUSH),
        key=lambda flush: flush.completed_ns,
    )
    writes.sort(key=lambda write: write.completed_ns)
    completed_ns = [write.completed_ns for write in writes]
    known = 0
    for flush in flushes:
        before = bisect_right(completed_ns, flush.submitted_ns)
        for write in writes[known:before]:
            yield _due(write, flush.completed_ns)
        known = max(known, before)


def _due(write: BlockRequest, due_ns: int) -> DueWrite:
    return DueWrite(
        submitted_ns=write.submitted_ns,
        due_ns=due_ns,
        places=tuple((x,) for x in sectors_of(write.offset_bytes, write.length_bytes)),
        offset_bytes=write.offset_bytes,
    )
