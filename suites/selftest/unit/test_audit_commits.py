"""The audit: a NAS that does not commit, what a cut may take back, and sync=always that logs nothing."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, uberblock, zil_block
from torture.audit.audit import Finding, Invariant
from torture.audit.logged import OPERATIONS_MIN, headers_in
from torture.axes.sync import Sync
from torture.evidence.ledger import BLOCK_HEADER_BYTES, BLOCK_MAGIC
from vmimages.client.load.blocks import Encoder


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(folder=tmp_path)


def test_a_nas_that_never_commits_is_told_by_the_acknowledgements_it_gives(story: Story) -> None:
    story.write(BLOCK)
    for number in range(1, 20):
        story.begins(number)
        story.write(zil_block())
        story.flush()
        last = story.is_done(number, later_ms=500)
    late = [find for find in story.findings() if find.invariant is Invariant.TXG_IS_IN_TIME]
    assert len(late) == 1, "said once, not at every acknowledgement"
    assert late[0].event <= last


def test_one_that_commits_every_five_seconds_is_in_time(story: Story) -> None:
    for number in range(1, 40):
        story.begins(number)
        story.write(zil_block())
        story.flush()
        story.is_done(number, later_ms=500)
        if number % 10 == 0:
            story.write(METADATA)
            story.flush()
            story.write(uberblock(number))
    assert story.findings() == []


def test_a_silence_is_nobodys_delay(story: Story) -> None:
    """A NAS that stood still for a minute had nobody to acknowledge anything to."""
    for number in (1, 2, 3):
        story.begins(number)
        story.write(zil_block())
        story.flush()
        story.is_done(number, later_ms=60_000)
    assert story.findings() == []


def test_what_is_not_committed_goes_back_to_where_the_last_committed_txg_began(
    story: Story,
) -> None:
    assert story.uncommitted_ms() is None
    story.write(BLOCK, later_ms=1_000)
    story.flush()
    story.write(uberblock(5), later_ms=100)
    assert story.uncommitted_ms() is None, "its uberblock is not covered"
    story.flush()
    assert story.uncommitted_ms() == 100
    story.write(BLOCK, later_ms=2_000)
    story.write(uberblock(6), later_ms=50)
    assert story.uncommitted_ms() == 2_150
    story.write(uberblock(6), disk=1, later_ms=400)
    story.flush(disk=1)
    assert story.uncommitted_ms() == 450, "a copy is of the same transaction group"


def block(number: int) -> bytes:
    """A block of the volume with one of the load's sectors in it."""
    header = BLOCK_MAGIC + struct.pack("<QQQII", 7, 1, number, 0, 0)
    assert len(header) == BLOCK_HEADER_BYTES
    return header.ljust(16384, b"\0")


def logged(*numbers: int) -> bytes:
    """A block of the intent log that holds these."""
    return zil_block() + b"".join(block(number)[:4096] for number in numbers)


def test_what_a_txg_writes_was_in_the_log_before_where_every_write_is_synchronous(
    story: Story,
) -> None:
    story.write(logged(1, 2))
    story.flush()
    for number in (1, 2):
        story.write(block(number))
    strays = [story.write(block(number)) for number in range(3, 3 + OPERATIONS_MIN)]
    wanted = [
        Finding(invariant=Invariant.WRITTEN_IS_LOGGED, event=strays[-1], uncovered=tuple(strays))
    ]
    assert story.findings(sync=Sync.ALWAYS) == wanted
    story.write(block(100))
    assert story.findings(sync=Sync.ALWAYS) == wanted, "said once a transaction group"
    assert story.findings(sync=Sync.STANDARD) == []


def test_few_that_were_being_written_when_their_txg_began_are_nothing(story: Story) -> None:
    for txg in range(5, 9):
        for number in range(OPERATIONS_MIN - 1):
            story.write(block(10 * txg + number))
        story.flush()
        story.write(uberblock(txg))
    assert story.findings(sync=Sync.ALWAYS) == []


def test_the_guests_blocks_are_known_by_their_headers() -> None:
    """What the guest writes is another program: its words are held against ours."""
    written = Encoder(7).block(file=1, seq=3, index=0)
    headers = headers_in(bytes(100) + written)
    assert len(headers) == 8
    assert all(header.startswith(BLOCK_MAGIC) for header in headers)
    assert headers_in(Encoder(7).block(file=1, seq=4, index=0)).isdisjoint(headers)
    assert headers_in(bytes(4096)) == frozenset()
