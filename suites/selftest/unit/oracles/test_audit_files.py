"""An answer of an NFS or SMB server is a promise: its data, its due time, and each gap."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suites.selftest.unit.audit_story import (
    METADATA,
    Story,
    log_of,
    logged,
    logged_name,
    uberblock,
)
from torture.facts.axes.sync import Sync
from torture.facts.evidence.requests import FileKind, FileRequest, whole_sectors_of
from torture.oracles.audit.due.completions import due_of_files
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


def test_a_stable_write_is_due_at_its_answer(story: Story) -> None:
    write = write_of(story, 3, is_forced=True)
    story.write(log_of(logged(OFFSET, block_of(3))))
    story.completes(write)
    story.flush()
    assert story.uncovered(sync=Sync.STANDARD) == (1, [OFFSET])


@pytest.mark.parametrize(("is_flushed", "accused"), [(True, []), (False, [OFFSET])])
def test_an_unstable_write_is_due_at_the_answer_to_its_commit(
    story: Story, is_flushed: bool, accused: list[int]
) -> None:
    write = write_of(story, 3)
    story.completes(write)
    commit = story.server_takes(COMMIT, file=FILE)
    story.write(log_of(logged(OFFSET, block_of(3))))
    if is_flushed:
        story.flush()
    story.completes(commit)
    story.flush()
    assert story.uncovered(sync=Sync.STANDARD) == (1, accused)


def test_with_always_every_write_is_due_at_its_answer(story: Story) -> None:
    write = write_of(story, 3)
    story.completes(write)
    assert story.uncovered(sync=Sync.ALWAYS) == (1, [OFFSET])


def test_a_log_of_another_file_at_the_same_place_does_not_count(story: Story) -> None:
    write = write_of(story, 3, is_forced=True)
    story.write(log_of(logged(OFFSET, block_of(9))))
    story.flush()
    story.write(log_of(logged(OFFSET, block_of(3))))
    story.completes(write)
    story.flush()
    assert story.uncovered(sync=Sync.STANDARD) == (1, [OFFSET])


def test_a_write_that_was_overwritten_before_it_was_logged_is_held_by_its_place(
    story: Story,
) -> None:
    older, newer = write_of(story, 3), write_of(story, 4)
    story.completes(older)
    story.completes(newer)
    commit = story.server_takes(COMMIT, file=FILE)
    story.write(log_of(logged(OFFSET, block_of(4))))
    story.flush()
    story.completes(commit)
    assert story.uncovered(sync=Sync.STANDARD) == (2, [])


def test_a_sector_that_two_log_blocks_share_is_held_by_both(story: Story) -> None:
    """The log splits a write at any eight bytes: even the header of a sector may be in two blocks."""
    write = write_of(story, 3, is_forced=True)
    split = 512 + 16
    story.write(log_of(logged(OFFSET, block_of(3)[:split])))
    story.write(log_of(logged(OFFSET + split, block_of(3)[split:])))
    story.flush()
    story.completes(write)
    assert story.uncovered(sync=Sync.STANDARD) == (1, [])


def test_a_group_that_was_being_written_vouches_for_nothing_that_came_later(story: Story) -> None:
    story.write(METADATA)
    story.flush()
    story.write(uberblock(20))
    story.flush()
    story.write(METADATA)
    write = write_of(story, 3, is_forced=True)
    story.flush()
    story.write(uberblock(21))
    story.flush()
    story.completes(write)
    assert story.uncovered(sync=Sync.STANDARD) == (1, [OFFSET])


def test_a_group_vouches_for_writes_before_its_first_one(story: Story) -> None:
    story.write(METADATA)
    story.flush()
    story.write(uberblock(20))
    story.flush()
    write = write_of(story, 3, is_forced=True)
    story.write(METADATA)
    story.flush()
    story.write(uberblock(21))
    story.flush()
    story.completes(write)
    assert story.uncovered(sync=Sync.STANDARD) == (1, [])


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


def test_a_sector_in_two_blocks_is_not_taken_for_its_later_copy(story: Story) -> None:
    """A client may send an old sector once more: its copy in the log says nothing of the first one."""
    split = 7 * 512 + 24
    write = write_of(story, 3, is_forced=True)
    story.write(log_of(logged(OFFSET, block_of(3)[:split])))
    story.write(log_of(logged(OFFSET + split, block_of(3)[split:])))
    story.flush()
    story.completes(write)
    story.write(log_of(logged(OFFSET, block_of(3))))
    assert story.uncovered(sync=Sync.STANDARD) == (1, [])


def test_a_write_that_was_only_logged_later_is_found(story: Story) -> None:
    write = write_of(story, 3, is_forced=True)
    story.write(log_of(logged(OFFSET, block_of(9))))
    story.flush()
    story.completes(write)
    story.write(log_of(logged(OFFSET, block_of(3))))
    story.flush()
    assert story.uncovered(sync=Sync.STANDARD) == (1, [OFFSET])
