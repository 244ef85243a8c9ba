"""The writes that a cache with a limit keeps, and the places of tears: the shelf's README, by hand."""

from __future__ import annotations

from suites.selftest.unit.facts.shelf_logs import SECTOR, Log
from torture.facts.recording.crash_state import DiskState, Policy
from torture.facts.recording.events import Kind
from torture.facts.recording.model import coin, survivors

TORN = DiskState(policy=Policy.TORN)


def test_a_write_is_torn_where_the_disk_has_its_sectors() -> None:
    """One that begins amid a physical sector has a part of it first."""
    log = Log()
    write = log.write(at=1, sectors=4)
    for seed in range(20):
        kept = survivors(log.events, disk=0, sector=1024, view=TORN, cut=log.last, seed=seed)
        assert kept == {write: tuple(p for p in range(3) if coin(seed, write, 1 + p))}
        there = log.held(TORN, seed=seed, sector=1024)
        assert [bool(held) for held in there[:6]] == [
            1 <= place < 5 and place // 2 in kept[write] for place in range(6)
        ]


def test_a_prefix_is_proper() -> None:
    log = Log()
    done, open_ = log.write(at=0, sectors=4), log.submit(at=4, sectors=2)
    view = DiskState(policy=Policy.PREFIX)
    seen = set()
    for seed in range(50):
        kept = survivors(log.events, disk=0, sector=SECTOR, view=view, cut=log.last, seed=seed)
        assert kept[done] in {(0,), (0, 1), (0, 1, 2)}
        assert kept[open_] == (0,)
        seen.add(kept[done])
    assert len(seen) == 3


def _lost_by(view: DiskState, log: Log) -> set[tuple[int, ...]]:
    """Its completed writes that are lost, over many seeds."""
    found = set()
    for seed in range(200):
        kept = survivors(log.events, disk=0, sector=SECTOR, view=view, cut=log.last, seed=seed)
        found.add(tuple(write for write, places in kept.items() if not places))
    return found


def test_the_oldest_or_all_but_few_survive() -> None:
    log = Log()
    one, two, three = (log.write(at=place) for place in range(3))
    assert _lost_by(DiskState(policy=Policy.OLDEST), log) == {
        (), (three,), (two, three), (one, two, three),
    }  # fmt: skip
    assert _lost_by(DiskState(policy=Policy.BUT_FEW), log) == {
        (one,), (two,), (three,), (one, two), (one, three), (two, three),
    }  # fmt: skip


def test_a_cache_forgets_only_the_recent() -> None:
    log = Log()
    old = log.write(at=0)
    log.now_ms = 500
    recent, last = log.write(at=1, sectors=2), log.write(at=3)
    log.now_ms = 1000
    trim = log.write(Kind.TRIM_SUBMIT, at=4)

    def lost(*, held_ms: int | None = None, held_bytes: int | None = None) -> set[tuple[int, ...]]:
        view = DiskState(policy=Policy.FLUSHED, held_ms=held_ms, held_bytes=held_bytes)
        return _lost_by(view, log)

    assert lost() == {(old, recent, last, trim)}
    assert lost(held_ms=1001) == lost()
    assert lost(held_ms=1000) == {(recent, last, trim)}
    assert lost(held_ms=500) == {(trim,)}
    assert lost(held_ms=0) == {()}
    assert lost(held_bytes=3 * SECTOR) == {(recent, last, trim)}
    assert lost(held_bytes=3 * SECTOR - 1) == {(last, trim)}
    assert lost(held_bytes=0) == {(trim,)}
