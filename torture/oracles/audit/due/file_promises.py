"""The writes and names that an NFS or SMB server's answers promise as durable, and when.

A write is due at its answer if that answer calls it stable. Otherwise it is due at the answer to the
first commit of its file and range. The commit must be sent after the write's answer, to the same
instance of the server. The sources are RFC 1813, 3.3.7 and 3.3.21; RFC 8881, 18.32 and 18.3; [MS-SMB2]
3.3.5.11. With `sync=always` ZFS logs each write before the server answers. An NFS server answers a
change of names once it is stable (Linux fs/nfsd/vfs.c, `commit_metadata`).

The log may lack an older write of a file that was truncated meanwhile (OpenZFS
`module/os/linux/zfs/zfs_vnops_os.c`, `zfs_get_data`: ENOENT). Such a write is not due any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torture.facts.axes.sync import Sync
from torture.facts.evidence.file_requests import FileKind, FileRequest
from torture.facts.evidence.ledger import SECTOR_BYTES
from torture.oracles.audit.due.durable import DueWrite, Place
from torture.oracles.audit.extents import sectors_of


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
