"""The writes that a completion of the client's disk or server promises as durable, and when.

With `sync=always` a completed write is durable. With `standard` a completed forced (FUA) write is. A
completed flush makes all writes durable that completed before it began (virtio 1.2, 5.2.6.2; NVMe
Command Set 1.0, 3.2.1; SBC-4, 4.15; zfsprops(7)).

A write to a file is due at an NFS or SMB server's answer if that answer calls it stable. Otherwise it is
due at the answer to the first commit of its file and range. The commit must be sent after the write's
answer, to the same instance of the server. The sources are RFC 1813, 3.3.7 and 3.3.21; RFC 8881, 18.32
and 18.3; [MS-SMB2] 3.3.5.11. With `sync=always` ZFS logs each write before the server answers. An NFS
server answers a change of names once it is stable (Linux fs/nfsd/vfs.c, `commit_metadata`).

The log may lack an older write of a file that was truncated meanwhile (OpenZFS
`module/os/linux/zfs/zfs_vnops_os.c`, `zfs_get_data`: ENOENT). Such a write is not due any more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from torture.facts.axes.sync import Sync
from torture.facts.evidence.ledger import SECTOR_BYTES
from torture.facts.evidence.requests import BlockKind, BlockRequest, FileKind, FileRequest
from torture.facts.recording.events import Event
from torture.oracles.audit.due.durable import DueWrite, Durable, Place
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
        kept_ns = durable.since_ns(due, error_ns=error_ns)
        if kept_ns is not None and kept_ns <= due.due_ns + error_ns:
            continue
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


def due_of_files(
    done: Sequence[FileRequest], *, sync: Sync, names_are_stable: bool
) -> Iterator[DueWrite]:
    """The writes and names that a server promises by answering these requests, in their order."""
    if sync is Sync.DISABLED:
        return
    waiting: list[FileRequest] = []
    for request in done:
        match request.kind:
            case FileKind.WRITE if request.submitted_ns < 0:
                pass
            case FileKind.WRITE if sync is Sync.ALWAYS or request.is_forced:
                yield _due_write(request, request.completed_ns)
            case FileKind.WRITE:
                waiting.append(request)
            case FileKind.RESIZE:
                waiting = [write for write in waiting if write.file != request.file]
            case FileKind.COMMIT:
                committed = [write for write in waiting if _covers(request, write)]
                waiting = [write for write in waiting if write not in committed]
                yield from (_due_write(write, request.completed_ns) for write in committed)
            case FileKind.NAME if names_are_stable and request.submitted_ns >= 0:
                yield DueWrite(
                    submitted_ns=request.submitted_ns,
                    due_ns=request.completed_ns,
                    places=tuple((name,) for name in request.names),
                )


def _covers(commit: FileRequest, write: FileRequest) -> bool:
    """Whether a commit covers all of a write."""
    end_bytes = commit.offset_bytes + commit.length_bytes if commit.length_bytes else None
    return (
        write.file == commit.file
        and write.verifier == commit.verifier
        and write.completed_ns <= commit.submitted_ns
        and commit.offset_bytes <= write.offset_bytes
        and (end_bytes is None or write.offset_bytes + write.length_bytes <= end_bytes)
    )


def _due_write(write: FileRequest, due_ns: int) -> DueWrite:
    """The due write: each sector by its content, or by its place if overwritten before it was logged."""
    known: set[int] = set()
    places: list[Place] = []
    for offset, sector in write.sectors:
        touched = sectors_of(offset, SECTOR_BYTES)
        known.update(touched)
        places += [(sector, number) for number in touched]
    whole = sectors_of(write.offset_bytes, write.length_bytes)
    return DueWrite(
        submitted_ns=write.submitted_ns,
        due_ns=due_ns,
        places=(*places, *((number,) for number in whole if number not in known)),
        offset_bytes=write.offset_bytes,
    )
