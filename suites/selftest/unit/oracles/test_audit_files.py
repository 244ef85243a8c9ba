"""An answer of an NFS or SMB server is a promise: its data, its due time, and each gap."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suites.selftest.unit.audit_story import (
    Story,
    log_of,
    logged,
    logged_name,
)
from suites.selftest.unit.oracles.audit_scenes import Stage, Verbs
from torture.facts.axes.sync import Sync
from torture.facts.evidence.requests import FileKind, FileRequest, whole_sectors_of
from torture.oracles.audit.durable import due_of_files
from vmimages.client.load.blocks import Encoder

WRITE, COMMIT, NAME, RESIZE = FileKind.WRITE, FileKind.COMMIT, FileKind.NAME, FileKind.RESIZE
FILE, OTHER = "aa", "bb"
OFFSET = 8192


def block_of(operation: int) -> bytes:
    return Encoder(7).block(file=1, seq=operation, index=2)


def write_of(story: Story, operation: int, *, is_forced: bool = False) -> FileRequest:
    content = block_of(operation)
    return story.server_takes(
        WRITE,
        file=FILE,
        offset_bytes=OFFSET,
        length_bytes=len(content),
        is_forced=is_forced,
        sectors=whole_sectors_of(content, offset_bytes=OFFSET),
    )


SPLIT, LATER_SPLIT = 512 + 16, 7 * 512 + 24
"""The log splits a write at any eight bytes: even the header of a sector may be in two blocks."""
LOGS = {
    "log": log_of(logged(OFFSET, block_of(3))),
    "log-of-newer": log_of(logged(OFFSET, block_of(4))),
    "log-of-another": log_of(logged(OFFSET, block_of(9))),
    "head": log_of(logged(OFFSET, block_of(3)[:SPLIT])),
    "tail": log_of(logged(OFFSET + SPLIT, block_of(3)[SPLIT:])),
    "long-head": log_of(logged(OFFSET, block_of(3)[:LATER_SPLIT])),
    "short-tail": log_of(logged(OFFSET + LATER_SPLIT, block_of(3)[LATER_SPLIT:])),
}
DUE = {
    "a stable write is due at its answer": (
        "write=take 3 forced, write log, answer write, flush, accuses 8K"
    ),
    "an unstable write is due at the answer to its commit": (
        "write=take 3, answer write, commit=commit, write log, answer commit, flush, accuses 8K"
    ),
    "its log is flushed by then": (
        "write=take 3, answer write, commit=commit, write log, flush, answer commit, flush, accuses"
    ),
    "a log of another file at the same place does not count": (
        "write=take 3 forced, write log-of-another, flush, write log, answer write, flush, accuses 8K"
    ),
    "a write that was overwritten before it was logged is held by its place": (
        "older=take 3, newer=take 4, answer older, answer newer, commit=commit, "
        "write log-of-newer, flush, answer commit, accuses"
    ),
    "a sector that two log blocks share is held by both": (
        "write=take 3 forced, write head, write tail, flush, answer write, accuses"
    ),
    "a group that was being written vouches for nothing that came later": (
        "write metadata, group 20, write metadata, write=take 3 forced, group 21, "
        "answer write, accuses 8K"
    ),
    "a group vouches for writes before its first one": (
        "write metadata, group 20, write=take 3 forced, write metadata, group 21, "
        "answer write, accuses"
    ),
    "a sector in two blocks is not taken for its later copy, which a client sent once more": (
        "write=take 3 forced, write long-head, write short-tail, flush, answer write, "
        "write log, accuses"
    ),
    "a write that was only logged later is found": (
        "write=take 3 forced, write log-of-another, flush, answer write, "
        "write log, flush, accuses 8K"
    ),
}


@pytest.mark.parametrize("scene", DUE.values(), ids=DUE)
def test_a_write_is_durable_when_it_is_due(scene: str, story: Story) -> None:
    def lost(story: Story) -> list[int]:
        count, places = story.uncovered(sync=Sync.STANDARD)
        assert count == scene.count("take")
        return [place for place in places if place is not None]

    verbs: Verbs = {
        "take": lambda number, *how: write_of(story, int(number), is_forced="forced" in how),
        "commit": lambda: story.server_takes(COMMIT, file=FILE),
    }
    Stage(story, accused=lost, contents=LOGS, verbs=verbs).play(scene)


def test_with_always_every_write_is_due_at_its_answer(story: Story) -> None:
    write = write_of(story, 3)
    story.completes(write)
    assert story.uncovered(sync=Sync.ALWAYS) == (1, [OFFSET])


@pytest.mark.parametrize("logged_names", [("f1.tmp",), ("f1",), (), ("xf1", "f1.tmpx")])
def test_a_rename_is_due_at_its_answer_with_both_of_its_names(
    story: Story, logged_names: tuple[str, ...]
) -> None:
    rename = story.server_takes(NAME, names=("f1.tmp", "f1"))
    story.write(log_of(logged_name(*logged_names)))
    story.flush()
    story.completes(rename)
    count, accused = story.uncovered(sync=Sync.STANDARD)
    assert (count, accused) == (1, [None])


def test_a_rename_that_is_logged_and_flushed_is_kept(story: Story) -> None:
    rename = story.server_takes(NAME, names=("f1.tmp", "f1"))
    story.write(log_of(logged_name("f1.tmp", "f1")))
    story.flush()
    story.completes(rename)
    assert story.uncovered(sync=Sync.STANDARD) == (1, [])


def test_a_name_in_a_log_block_that_was_flushed_too_late_is_found(story: Story) -> None:
    made = story.server_takes(NAME, names=("f1",))
    story.write(log_of(logged_name("f1")))
    story.completes(made)
    story.flush()
    assert story.uncovered(sync=Sync.STANDARD) == (1, [None])


def request(kind: FileKind, at_ns: int, **fields: object) -> FileRequest:
    known = FileRequest(
        kind=kind, submitted_ns=at_ns, completed_ns=at_ns + 1, file=FILE, verifier="1"
    )
    return replace(known, **fields)  # type: ignore[arg-type]


UNSTABLE = request(WRITE, 10, offset_bytes=4096, length_bytes=4096)


@pytest.mark.parametrize(
    "commit",
    [
        request(COMMIT, 20, file=OTHER),
        request(COMMIT, 20, verifier="2"),
        request(COMMIT, 20, offset_bytes=8192),
        request(COMMIT, 20, offset_bytes=0, length_bytes=4096),
        request(COMMIT, 10, completed_ns=30),
    ],
    ids=["other-file", "other-life", "behind", "before", "asked-before-the-write-was-answered"],
)
def test_a_commit_of_something_else_makes_nothing_due(commit: FileRequest) -> None:
    assert list(due_of_files([UNSTABLE, commit], sync=Sync.STANDARD, names_are_stable=True)) == []


def test_a_write_is_due_once_and_not_after_its_file_was_cut_short() -> None:
    whole, part = request(COMMIT, 20), request(COMMIT, 30, offset_bytes=4096, length_bytes=4096)
    [due] = due_of_files([UNSTABLE, part, whole], sync=Sync.STANDARD, names_are_stable=True)
    assert (due.submitted_ns, due.due_ns) == (10, 31)
    cut_short = [UNSTABLE, request(RESIZE, 15), whole]
    assert list(due_of_files(cut_short, sync=Sync.STANDARD, names_are_stable=True)) == []


def test_with_sync_disabled_nothing_is_due() -> None:
    requests = [UNSTABLE, request(COMMIT, 20), request(NAME, 30, names=("f1",))]
    assert list(due_of_files(requests, sync=Sync.DISABLED, names_are_stable=True)) == []
    [_] = due_of_files(requests, sync=Sync.STANDARD, names_are_stable=False)


def test_a_file_request_from_before_the_recording_is_not_due_in_it() -> None:
    early = [replace(UNSTABLE, submitted_ns=-5, is_forced=True), request(NAME, -3, names=("f1",))]
    assert list(due_of_files(early, sync=Sync.STANDARD, names_are_stable=True)) == []
