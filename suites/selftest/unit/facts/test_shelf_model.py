"""The survivors of a cut: every sentence of that section of the shelf's README, by hand."""

from __future__ import annotations

import pytest

from suites.selftest.unit.facts.shelf_logs import SECTORS, Log, explicit
from torture.facts.recording.crash_state import DiskState, Policy
from torture.facts.recording.events import Kind
from torture.facts.recording.model import coin, survivors, writes_until

ALL = DiskState(policy=Policy.ALL)
FLUSHED = DiskState(policy=Policy.FLUSHED)
SUBSET = DiskState(policy=Policy.SUBSET)
TORN = DiskState(policy=Policy.TORN)
WRITES = (Kind.WRITE_SUBMIT, Kind.ZERO_SUBMIT, Kind.TRIM_SUBMIT)


def lying(lying_ms: int) -> DiskState:
    return DiskState(policy=Policy.LYING, lying_ms=lying_ms)


def first(log: Log, view: DiskState, *, cut: int | None = None) -> str:
    """Whose the first sector of the first disk is."""
    return log.held(view, cut=cut)[0]


# --- the cut ---------------------------------------------------------------------------------------


def test_the_cut_is_the_last_event_that_happened() -> None:
    log = Log()
    write = log.submit(fua=True)
    done = log.complete(write)
    assert first(log, FLUSHED, cut=done) == f"{write}.0"
    assert first(log, FLUSHED, cut=done - 1) == ""


@pytest.mark.parametrize("cut", [-1, 3])
def test_there_is_no_cut_outside_of_the_log(cut: int) -> None:
    log = Log()
    log.write()
    with pytest.raises(ValueError, match=f"no event {cut} in a log of 3"):
        log.held(ALL, cut=cut)


def test_a_log_that_does_not_begin_at_its_beginning_is_refused() -> None:
    log = Log()
    log.write()
    with pytest.raises(ValueError, match="no event 1"):
        writes_until(log.events[1:], disk=0, cut=1)


def test_a_completion_of_nothing_is_refused() -> None:
    log = Log()
    log.complete(log.write())
    with pytest.raises(ValueError, match="event 3 completes no write"):
        log.held(ALL)


def test_the_time_of_the_cut_is_that_of_its_record() -> None:
    log = Log()
    write = log.write()
    flushed = log.flush() + 1
    log.now_ms = 500
    log.submit(at=1)
    assert first(log, lying(100), cut=flushed) == ""
    assert first(log, lying(100)) == f"{write}.0"


# --- covered ---------------------------------------------------------------------------------------


def test_a_flush_covers_writes_completed_before_it_was_submitted() -> None:
    log = Log()
    write = log.write()
    log.flush()
    assert first(log, FLUSHED) == f"{write}.0"


def test_a_flush_covers_no_write_in_flight_at_its_submission() -> None:
    log = Log()
    write = log.submit()
    flush = log.submit(Kind.FLUSH_SUBMIT)
    log.complete(write)
    log.complete(flush)
    assert first(log, FLUSHED) == ""
    assert first(log, ALL) == f"{write}.0"


def test_a_flush_covers_no_write_submitted_after_it() -> None:
    log = Log()
    flush = log.submit(Kind.FLUSH_SUBMIT)
    log.write()
    log.complete(flush)
    assert first(log, FLUSHED) == ""


def test_a_flush_covers_nothing_on_another_disk() -> None:
    log = Log()
    mine, other = log.write(disk=0), log.write(disk=1)
    log.flush(disk=1)
    assert log.held(FLUSHED, disk=0)[0] == ""
    assert log.held(FLUSHED, disk=1)[0] == f"{other}.0"
    assert log.held(ALL, disk=0)[0] == f"{mine}.0"


def test_a_flush_covers_nothing_until_it_is_completed() -> None:
    log = Log()
    write = log.write()
    flush = log.submit(Kind.FLUSH_SUBMIT)
    assert first(log, FLUSHED) == ""
    done = log.complete(flush)
    assert first(log, FLUSHED, cut=done - 1) == ""
    assert first(log, FLUSHED, cut=done) == f"{write}.0"


def test_a_flush_that_failed_covers_nothing() -> None:
    log = Log()
    write = log.write()
    log.complete(log.submit(Kind.FLUSH_SUBMIT), error=5)
    assert first(log, FLUSHED) == ""
    log.flush()
    assert first(log, FLUSHED) == f"{write}.0"


def test_of_two_flushes_under_way_each_covers_its_own() -> None:
    """The one submitted first is completed last: it does not take back what the other covers."""
    log = Log()
    one = log.submit(Kind.FLUSH_SUBMIT)
    write = log.write()
    two = log.submit(Kind.FLUSH_SUBMIT)
    log.complete(two)
    done = log.complete(one)
    assert first(log, FLUSHED, cut=done) == f"{write}.0"


@pytest.mark.parametrize("kind", WRITES)
def test_fua_is_covered_once_it_is_completed_and_covers_nothing_else(kind: Kind) -> None:
    log = Log()
    log.write(at=1)
    write = log.submit(kind, at=0, fua=True)
    assert first(log, FLUSHED) == ""
    log.complete(write)
    owner = f"{write}.0" if kind is Kind.WRITE_SUBMIT else "zero"
    assert log.held(FLUSHED)[:2] == [owner, ""]


@pytest.mark.parametrize("kind", [Kind.ZERO_SUBMIT, Kind.TRIM_SUBMIT])
def test_zeroes_and_trims_are_writes(kind: Kind) -> None:
    log = Log()
    log.write(kind, at=1, sectors=2)
    assert log.held(FLUSHED) == [""] * SECTORS
    assert log.held(ALL)[:4] == ["", "zero", "zero", ""]
    log.flush()
    assert log.held(FLUSHED)[:4] == ["", "zero", "zero", ""]


# --- the policies ----------------------------------------------------------------------------------


def test_all_keeps_every_completed_write_and_none_in_flight() -> None:
    log = Log()
    one, two = log.write(at=0), log.write(at=1)
    log.submit(at=2)
    assert log.held(ALL)[:3] == [f"{one}.0", f"{two}.0", ""]


def test_flushed_keeps_only_covered_writes() -> None:
    log = Log()
    one = log.write(at=0)
    log.flush()
    log.write(at=1)
    log.submit(at=2)
    assert log.held(FLUSHED)[:3] == [f"{one}.0", "", ""]


def test_subset_keeps_each_completed_write_or_not_by_the_seed() -> None:
    for seed in range(20):
        log = Log()
        one, two = log.write(at=0, sectors=3), log.write(at=3, sectors=2)
        log.submit(at=5)
        lost = [""] * 3
        kept_one = [f"{one}.{place}" for place in range(3)] if coin(seed, one, 0) else lost
        kept_two = [f"{two}.{place}" for place in range(2)] if coin(seed, two, 0) else lost[:2]
        assert log.held(SUBSET, seed=seed) == [*kept_one, *kept_two, *lost]


def test_torn_keeps_each_sector_or_not_in_flight_ones_included() -> None:
    for seed in range(20):
        log = Log()
        done, open_ = log.write(at=1, sectors=3), log.submit(at=4, sectors=4)
        expected = [""] + [
            f"{write}.{place}" if coin(seed, write, 1 + place) else ""
            for write, sectors in ((done, 3), (open_, 4))
            for place in range(sectors)
        ]
        assert log.held(TORN, seed=seed) == expected


def test_torn_counts_in_sectors_of_the_disks_size() -> None:
    log = Log()
    write = log.write(at=0, sectors=8)
    for seed in range(20):
        kept = survivors(log.events, disk=0, sector=4096, view=TORN, cut=log.last, seed=seed)
        assert kept == {write: (0,) if coin(seed, write, 1) else ()}


@pytest.mark.parametrize(("lying_ms", "is_there"), [(0, True), (700, True), (701, False)])
@pytest.mark.parametrize("fua", [False, True])
def test_lying_counts_nothing_of_the_last_ms(lying_ms: int, is_there: bool, fua: bool) -> None:
    """Completed exactly `lying_ms` before the cut is not in the last `lying_ms`."""
    log = Log()
    log.now_ms = 1000
    write = log.write(fua=fua)
    if not fua:
        log.flush()
    log.now_ms = 1700
    log.submit(at=1)
    assert first(log, lying(lying_ms)) == (f"{write}.0" if is_there else "")


def test_lying_is_measured_at_the_completion() -> None:
    log = Log()
    log.write()
    flush = log.submit(Kind.FLUSH_SUBMIT)
    log.now_ms = 1000
    log.complete(flush)
    assert first(log, lying(500)) == ""


def test_lying_for_longer_than_the_recording_covers_nothing() -> None:
    log = Log()
    log.now_ms = 10
    log.write(at=0, fua=True)
    log.write(at=1)
    log.flush()
    assert log.held(lying(11)) == [""] * SECTORS


def test_lying_leaves_honest_flushes_alone() -> None:
    log = Log()
    old = log.write(at=0)
    log.flush()
    log.now_ms = 1000
    log.write(at=1)
    log.flush()
    assert log.held(lying(500))[:2] == [f"{old}.0", ""]


def test_explicit_keeps_listed_writes_completed_or_in_flight() -> None:
    log = Log()
    log.write(at=0)
    two = log.write(at=1)
    three, _ = log.submit(at=2, sectors=3), log.submit(at=5)
    assert log.held(explicit()) == [""] * SECTORS
    assert log.held(explicit(two, (three, (0, 2)))) == [
        "", f"{two}.0", f"{three}.0", "", f"{three}.2", "", "", "",
    ]  # fmt: skip


def test_explicit_keeps_covered_writes_listed_or_not() -> None:
    log = Log()
    write = log.write(at=0, sectors=2)
    log.flush()
    whole = [f"{write}.0", f"{write}.1"]
    assert log.held(explicit())[:2] == whole
    assert log.held(explicit((write, (1,))))[:2] == whole


# --- order, failure --------------------------------------------------------------------------------


def test_survivors_apply_in_the_order_of_their_completions() -> None:
    log = Log()
    one, two = log.submit(), log.submit()
    log.complete(two)
    log.complete(one)
    assert first(log, ALL) == f"{one}.0"
    log.flush()
    assert first(log, FLUSHED) == f"{one}.0"


def test_a_covered_write_is_overwritten_by_a_later_survivor_only() -> None:
    log = Log()
    early = log.write()
    covered = log.write(fua=True)
    late = log.write()
    assert first(log, explicit(early)) == f"{covered}.0"
    assert first(log, explicit(early, late)) == f"{late}.0"


def test_those_in_flight_apply_last_in_the_order_of_their_submissions() -> None:
    log = Log()
    one, two = log.submit(), log.submit()
    log.write()
    assert first(log, explicit(two, one, 3)) == f"{two}.0"
    assert first(log, explicit(one, 3)) == f"{one}.0"


def test_a_write_that_failed_never_happened() -> None:
    log = Log()
    write = log.submit(fua=True)
    failed = log.complete(write, error=5)
    log.flush()
    for view in (ALL, FLUSHED, explicit(write), lying(1)):
        assert first(log, view) == ""
    assert writes_until(log.events, disk=0, cut=log.last) == ()
    # until it has failed, it is in flight
    assert first(log, explicit(write), cut=failed - 1) == f"{write}.0"
