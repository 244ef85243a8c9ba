"""Random recordings of pools, and each content that a cut of them can leave.

`python -m suites.selftest.unit.walk.legal_states 20000` holds the states of so many recordings against
them.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path

from suites.selftest.unit.facts.shelf_logs import SECTOR, SECTORS, Log
from torture.facts.recording.crash_state import DiskState, fates, why_illegal
from torture.facts.recording.disks import Persistence
from torture.facts.recording.events import (
    WRITE_COMPLETES,
    Event,
    Kind,
    RecordedDisk,
    Recording,
)
from torture.facts.recording.model import survivors, writes_until
from torture.features.walk.states.states import DistinctState, distinct_states

NAMES = ("data0", "data1")
FEW = 4
"""Of so many undecided writes every subset must be a state."""
_SUBMITS = (Kind.WRITE_SUBMIT, Kind.WRITE_SUBMIT, Kind.ZERO_SUBMIT, Kind.TRIM_SUBMIT)
_SAID_EVERY = 1000
_HONEST = (Persistence.PLP, Persistence.VOLATILE)

Owners = tuple[tuple[int, ...], ...]
"""By disk and sector, the last write that is there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """A recording, and the persistence of its disks."""

    recording: Recording
    disks: dict[str, Persistence]

    @property
    def last(self) -> int:
        """Its last event."""
        return self.recording.events[-1].seq


def recording_of(log: Log, *, names: Sequence[str] = NAMES, physical: int = SECTOR) -> Recording:
    """The log as a recording of small disks."""
    return Recording(
        folder=Path("life-1"),
        disks=tuple(
            RecordedDisk(name=name, size=SECTORS * SECTOR, sector=SECTOR, physical_sector=physical)
            for name in names
        ),
        events=tuple(log.events),
    )


def drawn_pool(seed: int) -> Pool:
    """A pool of one to four disks: mirrored legs, a log beside data, disks slower than others.

    Writes, zeroes and trims, with FUA or without, overlap, fail and are in flight. So are flushes.
    """
    generator = random.Random(f"pool/{seed}")
    count = generator.randint(1, 4)
    speeds = [generator.choice((0.2, 1.0, 1.0)) for _ in range(count)]
    is_mirror = count > 1 and generator.random() < 0.4
    flushes, ends = generator.choice((0.05, 0.15, 0.3)), generator.choice((0.4, 0.5, 0.6))
    log, in_flight = Log(), list[int]()
    for _ in range(generator.randint(6, 36)):
        if in_flight and generator.random() < ends:
            weights = [speeds[_disk_of(log.events[one])] for one in in_flight]
            (done,) = generator.choices(in_flight, weights)
            in_flight.remove(done)
            log.complete(done, error=5 * (generator.random() < 0.06))
            continue
        at = generator.randrange(SECTORS)
        sectors = generator.randint(1, SECTORS - at)
        is_flush, has_fua = generator.random() < flushes, generator.random() < 0.15
        kind = Kind.FLUSH_SUBMIT if is_flush else generator.choice(_SUBMITS)
        for disk in (
            (0, 1) if is_mirror and generator.random() < 0.7 else (generator.randrange(count),)
        ):
            fua = has_fua and not is_flush
            in_flight.append(log.submit(kind, at=at, sectors=sectors, disk=disk, fua=fua))
    physical = generator.choice((SECTOR, 2 * SECTOR))
    names = [f"disk{number}" for number in range(count)]
    recording = recording_of(log, names=names, physical=physical)
    return Pool(recording=recording, disks={name: generator.choice(_HONEST) for name in names})


def _disk_of(event: Event) -> int:
    assert event.disk is not None
    return event.disk


def contents_after(pool: Pool, cut: int) -> Iterator[Owners]:
    """Each content that this cut leaves without a torn write; none where many writes are undecided."""
    events = pool.recording.events
    found = [
        fates(events, disk=disk, persistence=persistence, cut=cut)
        for disk, persistence in enumerate(pool.disks.values())
    ]
    undecided = [write for of_disk in found for write in of_disk.open]
    if len(undecided) > FEW:
        return
    certain = {write for of_disk in found for write in of_disk.covered | of_disk.kept}
    for chosen in _subsets(undecided):
        yield _applied(pool, certain | set(chosen), cut)


def _subsets(of: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(of, count) for count in range(len(of) + 1))


def _applied(pool: Pool, writes: set[int], cut: int) -> Owners:
    """These writes in the order of their completions, and behind them those in flight."""
    events = pool.recording.events
    ended = {
        event.reference: event.seq
        for event in events[: cut + 1]
        if event.kind in WRITE_COMPLETES and event.reference in writes
    }
    held = [[0] * SECTORS for _ in pool.disks]
    for write in sorted(writes, key=lambda one: (one not in ended, ended.get(one, one))):
        event = events[write]
        first, count = event.offset // SECTOR, event.length // SECTOR
        held[_disk_of(event)][first : first + count] = [write] * count
    return tuple(map(tuple, held))


def served(pool: Pool, views: Sequence[DiskState], cut: int) -> Owners:
    """The content of a crash state as the shelf's specification has it."""
    return tuple(_served(pool, disk, view, cut) for disk, view in enumerate(views))


def _served(pool: Pool, disk: int, view: DiskState, cut: int) -> tuple[int, ...]:
    events, sector = pool.recording.events, pool.recording.disks[disk].physical_sector
    held = [0] * SECTORS
    left = survivors(events, disk=disk, sector=sector, view=view, cut=cut, seed=0)
    for write in writes_until(events, disk=disk, cut=cut, view=view):
        begin, end = write.offset, write.offset + write.length
        for place in range(begin, end, SECTOR):
            number = place // sector - begin // sector
            if write.covered or number in left[write.submission]:
                held[place // SECTOR] = write.submission
    return tuple(held)


def faults_of(pool: Pool, states: Sequence[DistinctState], *, first: int = 0) -> list[str]:
    """Each state that no cut leaves, each content that no state has, and each content twice.

    A smaller loss is sought among states that drop a part of a state's dropped writes.
    """
    generator, names = random.Random(f"parts/{first}"), tuple(pool.disks)
    faults, known = list[str](), dict[Owners, int]()
    for state in states:
        part = [write for write in state.dropped if generator.random() < 0.5]
        crash_state = state.crash_state(pool.recording, names)
        for one in (crash_state, state.dropping_only(part).crash_state(pool.recording, names)):
            if why := why_illegal(pool.recording, one, pool.disks):
                faults.append(f"illegal at {state.cut}: {why}")
        content = served(pool, tuple(crash_state.disks.values()), state.cut)
        if content in known:
            faults.append(f"twice: {content}")
        known[content] = state.cut
    missing = {
        content: cut
        for cut in range(first, pool.last + 1)
        for content in contents_after(pool, cut)
        if known.get(content, -1) < cut
    }
    return faults + [f"missing at {cut}: {content}" for content, cut in missing.items()]


def faults_of_walk(seed: int) -> list[str]:
    """The faults of the states that a walk finds in a random recording."""
    pool = drawn_pool(seed)
    first = random.Random(f"first/{seed}").choice((0, pool.last // 2))
    states = distinct_states(pool.recording, pool.disks, first=first, last=pool.last, seed=seed)
    return faults_of(pool, states, first=first)


def _main(recordings: int) -> int:
    kinds = Counter[str]()
    with_faults = 0
    for seed in range(recordings):
        found = faults_of_walk(seed)
        with_faults += bool(found)
        kinds.update(fault.split()[0] for fault in found)
        if found and with_faults <= 3:
            print(f"recording {seed}: {found[0]}", flush=True)
        if seed % _SAID_EVERY == _SAID_EVERY - 1:
            print(f"{seed + 1} recordings: {with_faults} with a fault", flush=True)
    print(f"{with_faults} of {recordings} recordings have a fault: {dict(kinds)}")
    return int(with_faults > 0)


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1])))
