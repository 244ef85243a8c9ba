"""A NAS that logs by pointer, in any order that OpenZFS allows, is accused exactly when at fault."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.audit_story import METADATA, Story, uberblock
from suites.selftest.unit.pointing import BLOCK_BYTES, FIRST_BLOCK, pointer, pointing
from torture.facts.axes.sync import Sync
from torture.oracles.audit.invariants import Invariant
from vmimages.client.load.blocks import Encoder

LOG = FIRST_BLOCK + (64 << 20)
LOG_BLOCK_BYTES = 8192


@dataclass
class Nas:
    """Commits and transaction groups, a step at a time, in the order that is drawn."""

    story: Story
    data: st.DataObject
    syncing: int = 20
    places: int = 0
    logs: int = 0
    unwritten: dict[int, int] = field(default_factory=dict)
    """By transaction group, data on their way."""
    covered: dict[int, bool] = field(default_factory=dict)
    """By operation, whether all that holds it was covered when it was acknowledged."""
    completed_at: dict[int, int] = field(default_factory=dict)
    flushes: list[tuple[int, int]] = field(default_factory=list)
    """Beginning and end of each."""

    def place(self) -> int:
        self.places += 1
        return FIRST_BLOCK + self.places * 2 * BLOCK_BYTES

    def flush(self) -> Iterator[None]:
        begun = self.story.begin_flush()
        yield
        self.flushes.append((begun, self.story.complete(begun)))

    def commit(self, operation: int, *, flushes: bool) -> Iterator[None]:
        """An operation whose data are logged by pointer; its log and data in any order."""
        txg = self.syncing + self.data.draw(st.integers(1, 2))
        self.story.begins(operation)
        places = [self.place() for _ in range(self.data.draw(st.integers(1, 2)))]
        self.logs += 1
        log = pointing(
            *((number * BLOCK_BYTES, pointer(x, txg=txg)) for number, x in enumerate(places))
        )
        writes = [
            (Encoder(7).block(file=1, seq=operation, index=index).ljust(BLOCK_BYTES, b"\0"), place)
            for index, place in enumerate(places)
        ]
        writes.append((log, LOG + self.logs * LOG_BLOCK_BYTES))
        self.unwritten[txg] = self.unwritten.get(txg, 0) + 1
        under_way = []
        for number in self.data.draw(st.permutations(range(len(writes)))):
            payload, place = writes[number]
            under_way.append(self.story.submit(payload, offset=place))
            yield
        for submission in self.data.draw(st.permutations(under_way)):
            self.completed_at[submission] = self.story.complete(submission)
            yield
        self.unwritten[txg] -= 1
        if flushes:
            yield from self.flush()
        done = self.story.is_done(operation)
        self.covered[operation] = all(
            any(begun > self.completed_at[write] and end < done for begun, end in self.flushes)
            for write in under_way
        )

    def sync(self) -> Iterator[None]:
        """The next transaction group: what was born in it is written before it begins."""
        txg = self.syncing
        while self.unwritten.get(txg):
            yield
        for _ in range(self.data.draw(st.integers(1, 3))):
            own = self.story.submit(METADATA, offset=self.place())
            yield
            self.story.complete(own)
        yield from self.flush()
        self.story.write(uberblock(txg), offset=txg * 1024)
        yield from self.flush()
        self.syncing += 1


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(st.booleans(), min_size=1, max_size=6), st.integers(0, 3))
def test_an_operation_is_a_finding_exactly_if_it_was_not_covered(
    data: st.DataObject, flushes: list[bool], groups: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        nas = Nas(story=Story(Path(folder)), data=data)
        commits = [nas.commit(seq, flushes=does) for seq, does in enumerate(flushes)]
        syncs = (step for _ in range(groups) for step in nas.sync())
        left = [*commits, syncs]
        while left:
            one = data.draw(st.sampled_from(left))
            if next(one, one) is one:
                left.remove(one)
        findings = nas.story.findings(sync=Sync.ALWAYS)
    assert {finding.invariant for finding in findings} <= {Invariant.ACKNOWLEDGED_IS_DURABLE}
    assert len(findings) == sum(not covered for covered in nas.covered.values())
