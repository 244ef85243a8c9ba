"""The shelf's specification as functions: what they give, and what holds for every log."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from suites.selftest.unit.facts.shelf_logs import (
    COMPLETION_OF,
    SECTOR,
    SECTORS,
    Log,
    explicit,
    logs,
)
from torture.facts.recording.crash_state import DiskState, Policy
from torture.facts.recording.events import Event, Kind
from torture.facts.recording.model import (
    CutTally,
    Write,
    coin,
    survivors,
    tally,
    uncovered,
    writes_until,
)

ALL = DiskState(policy=Policy.ALL)
FLUSHED = DiskState(policy=Policy.FLUSHED)
VIEWS = (
    ALL,
    FLUSHED,
    DiskState(policy=Policy.SUBSET),
    DiskState(policy=Policy.TORN),
    DiskState(policy=Policy.LYING, lying_ms=5),
    DiskState(policy=Policy.PREFIX, held_bytes=4 * SECTOR),
    DiskState(policy=Policy.OLDEST, held_ms=8),
    DiskState(policy=Policy.BUT_FEW),
    DiskState(policy=Policy.EXPLICIT, survivors=(1,)),
)

seeds = st.integers(0, 2**64 - 1)


def kept(
    log: Log, view: DiskState, *, cut: int | None = None, seed: int = 0
) -> dict[int, set[int]]:
    """For each write of the first disk that happened, the places of its sectors that are there."""
    cut = log.last if cut is None else cut
    writes = writes_until(log.events, disk=0, cut=cut, view=view)
    left = survivors(log.events, disk=0, sector=SECTOR, view=view, cut=cut, seed=seed)
    return {
        write.submission: set(
            range(write.length // SECTOR) if write.covered else left[write.submission]
        )
        for write in writes
    }


def test_the_coin_is_splitmix64s_top_bit() -> None:
    """The published first outputs of splitmix64 for the states 0 and 1234567."""
    for seed, outputs in {
        0: (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC),
        1234567: (6457827717110365317, 3203168211198807973, 9817491932198370423),
    }.items():
        assert [coin(seed, number, 0) for number in range(1, len(outputs) + 1)] == [
            output >= 1 << 63 for output in outputs
        ]
    for place in range(50):
        assert coin(7, 3, place) == coin((7 + place * 0xBF58476D1CE4E5B9) % 2**64, 3, 0)


def test_writes_are_read_from_the_log() -> None:
    log = Log()
    log.flush()
    open_ = log.submit(Kind.TRIM_SUBMIT, at=2, sectors=3)
    done = log.write(at=1, fua=True)
    log.events.append(Event(seq=log.last + 1, time_ns=0, kind=Kind.FREEZE))
    writes = writes_until(log.events, disk=0, cut=log.last)
    trimming = Write(
        submission=open_, completion=None, kind=Kind.TRIM_SUBMIT, fua=False,
        offset=2 * SECTOR, length=3 * SECTOR, covered=False,
    )  # fmt: skip
    written = Write(
        submission=done, completion=done + 1, kind=Kind.WRITE_SUBMIT, fua=True,
        offset=SECTOR, length=SECTOR, covered=True,
    )  # fmt: skip
    assert writes == (written, trimming)
    assert uncovered(writes) == (trimming,)


def test_the_tally_counts_the_fates_of_uncovered_writes() -> None:
    log = Log()
    log.write(fua=True)
    log.complete(log.submit(), error=5)
    whole, part, _ = log.write(), log.write(sectors=3), log.write()
    open_, _ = log.submit(), log.submit()
    view = explicit(whole, open_, (part, (0, 2)))
    assert tally(log.events, disk=0, sector=SECTOR, view=view, cut=log.last, seed=0) == CutTally(
        writes=6, in_flight=2, unflushed=3, survived=2, torn=1
    )
    listed = explicit((part, (0, 1, 2)))
    assert tally(log.events, disk=0, sector=SECTOR, view=listed, cut=log.last, seed=0) == CutTally(
        writes=6, in_flight=2, unflushed=3, survived=1, torn=0
    )


def covered_by_the_text(log: Log, cut: int, lying_ms: int) -> set[int]:
    """The text once more, event against event: for every write, look for what covers it."""
    events = log.events[: cut + 1]
    well = {
        event.reference: event
        for event in events
        if event.kind in COMPLETION_OF.values() and not event.error
    }

    def is_true(completion: Event) -> bool:
        return events[cut].time_ns - completion.time_ns >= lying_ms * 1_000_000

    flushes = [
        event
        for event in events
        if event.kind is Kind.FLUSH_SUBMIT and event.seq in well and is_true(well[event.seq])
    ]
    return {
        write.seq
        for write in events
        if write.kind in COMPLETION_OF and write.kind is not Kind.FLUSH_SUBMIT and write.seq in well
        if (write.fua and is_true(well[write.seq]))
        or any(flush.disk == write.disk and well[write.seq].seq < flush.seq for flush in flushes)
    }


@settings(deadline=None)
@given(log=logs, cut=st.integers(0, 40), lying_ms=st.integers(0, 20))
def test_covered_follows_the_definition_in_the_text(log: Log, cut: int, lying_ms: int) -> None:
    cut = min(cut, log.last)
    view = DiskState(policy=Policy.LYING, lying_ms=lying_ms)
    found = {
        write.submission
        for disk in (0, 1)
        for write in writes_until(log.events, disk=disk, cut=cut, view=view)
        if write.covered
    }
    assert found == covered_by_the_text(log, cut, lying_ms)


@settings(deadline=None)
@given(log=logs)
def test_every_write_is_in_flight_completed_or_failed(log: Log) -> None:
    """The count of `in_flight` and the writes that apply, derived from the events in another way."""
    failed = {event.reference for event in log.events if event.error}
    submitted = [
        event.seq
        for event in log.events
        if event.kind in COMPLETION_OF
        and event.kind is not Kind.FLUSH_SUBMIT
        and event.disk == 0
        and event.seq not in failed
    ]
    writes = writes_until(log.events, disk=0, cut=log.last)
    assert sorted(write.submission for write in writes) == submitted
    order = [(write.completion is None, write.completion or write.submission) for write in writes]
    assert order == sorted(order)


@settings(deadline=None, max_examples=examples(50))
@given(log=logs, cut=st.integers(0, 40), seed=seeds)
def test_a_view_ignores_events_after_its_cut(log: Log, cut: int, seed: int) -> None:
    cut = min(cut, log.last)
    for view in VIEWS:
        now = log.held(view, cut=cut, seed=seed)
        assert Log(events=log.events[: cut + 1]).held(view, cut=cut, seed=seed) == now
        later = Log(events=log.events[: cut + 1], now_ms=log.now_ms + 100)
        later.write(sectors=SECTORS, fua=True)
        later.flush()
        assert later.held(view, cut=cut, seed=seed) == now


@settings(deadline=None, max_examples=examples(50))
@given(log=logs, seed=seeds)
def test_every_policy_keeps_flushed_writes_and_no_more_than_happened(log: Log, seed: int) -> None:
    flushed, everything = kept(log, FLUSHED), kept(log, ALL)
    writes = {write.submission: write for write in writes_until(log.events, disk=0, cut=log.last)}
    for view in VIEWS:
        found = kept(log, view, seed=seed)
        assert found.keys() == writes.keys()
        for number, places in found.items():
            assert places <= set(range(writes[number].length // SECTOR))
            if view.policy is not Policy.LYING:
                assert places >= flushed[number]
            if view.policy in (Policy.ALL, Policy.SUBSET, Policy.FLUSHED, Policy.LYING):
                assert places <= everything[number]


@settings(deadline=None, max_examples=examples(50))
@given(log=logs, seed=seeds)
def test_after_a_flush_that_covers_everything_only_a_liar_loses(log: Log, seed: int) -> None:
    done = {event.reference for event in log.events if event.kind in COMPLETION_OF.values()}
    for event in list(log.events):
        if event.kind in COMPLETION_OF and event.seq not in done:
            log.complete(event.seq)
    log.now_ms += 1
    log.flush()
    for view in VIEWS:
        if view.policy is not Policy.LYING:
            assert log.held(view, seed=seed) == log.held(ALL)
    nothing_honest = DiskState(policy=Policy.LYING, lying_ms=log.now_ms + 1)
    assert log.held(nothing_honest) == [""] * SECTORS


@settings(deadline=None, max_examples=examples(50))
@given(log=logs, lies_ms=st.tuples(st.integers(0, 20), st.integers(0, 20)))
def test_the_longer_a_disk_lies_the_less_it_holds(log: Log, lies_ms: tuple[int, int]) -> None:
    views = [DiskState(policy=Policy.LYING, lying_ms=each_ms) for each_ms in (0, *sorted(lies_ms))]
    honest, short, long = (kept(log, view) for view in views)
    assert honest == kept(log, FLUSHED)
    assert all(long[number] <= short[number] <= honest[number] for number in honest)


@settings(deadline=None, max_examples=examples(50))
@given(log=logs, seed=seeds)
def test_explicit_can_express_any_policy_that_covers_the_same_writes(log: Log, seed: int) -> None:
    for view in VIEWS:
        if view.policy is Policy.LYING or view.held_ms is not None or view.held_bytes is not None:
            continue
        left = survivors(log.events, disk=0, sector=SECTOR, view=view, cut=log.last, seed=seed)
        said = DiskState(
            policy=Policy.EXPLICIT,
            survivors=tuple(left.items()),
        )
        assert log.held(said) == log.held(view, seed=seed)


@settings(deadline=None, max_examples=examples(50))
@given(log=logs, seed=seeds, cut=st.integers(0, 40))
def test_the_tally_counts_the_survivors(log: Log, seed: int, cut: int) -> None:
    cut = min(cut, log.last)
    for view in VIEWS:
        writes = writes_until(log.events, disk=0, cut=cut, view=view)
        left = survivors(log.events, disk=0, sector=SECTOR, view=view, cut=cut, seed=seed)
        sectors = {write.submission: write.length // SECTOR for write in writes}
        assert tally(log.events, disk=0, sector=SECTOR, view=view, cut=cut, seed=seed) == CutTally(
            writes=len(writes),
            in_flight=len([write for write in writes if write.completion is None]),
            unflushed=len(left) - len([write for write in writes if write.completion is None]),
            survived=len([number for number in left if len(left[number]) == sectors[number]]),
            torn=len([number for number in left if 0 < len(left[number]) < sectors[number]]),
        )


def test_a_failed_request_of_another_disk_changes_nothing() -> None:
    log = Log()
    write = log.write()
    log.events.append(Event(seq=log.last + 1, time_ns=0, kind=Kind.FAILED, disk=1, error=28))
    assert kept(log, ALL) == {write: {0}}


@pytest.mark.parametrize("policy", [Policy.SUBSET, Policy.TORN])
def test_the_seed_decides(policy: Policy) -> None:
    log = Log()
    for place in range(SECTORS):
        log.write(at=place)
    view = DiskState(policy=policy)
    states = {tuple(log.held(view, seed=seed)) for seed in range(64)}
    assert len(states) > 32
