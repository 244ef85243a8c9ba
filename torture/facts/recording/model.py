"""The content of a disk after a cut: native/README.md's contract as a slow and obvious program (pure).

The tests compare the native shelf with this file, so it is written from that text alone. `events` is
always a recording from its event 0 on. `disk` is an index of the recording's disks, and `sector` that
disk's physical sector in bytes. Sectors of a write are counted from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, repeat
from pathlib import Path

from torture.facts.evidence.cut_document import GONE, DiskAtCut
from torture.facts.recording.crash_state import CrashState, DiskState, InFlight, Policy
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import WRITE_COMPLETES, WRITE_SUBMITS, Event, Kind, Recording

_NS_PER_MS = 1_000_000
_U64_MASK = (1 << 64) - 1
_HONEST = DiskState(policy=Policy.FLUSHED)
"""A disk that does not lie, and whose cache has no limits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Write:
    """A write, zeroing or trim, completed or in flight at the cut. It has not failed."""

    submission: int
    completion: int | None
    """None if in flight at the cut."""
    kind: Kind
    """The kind of its submission."""
    fua: bool
    offset: int
    length: int
    covered: bool
    """Whether a flush or its own FUA covers it: it then survives under every policy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CutTally:
    """The counts of a disk's writes at a cut, and of the survivors."""

    writes: int
    """Submitted before the cut, without those that failed."""
    in_flight: int
    unflushed: int
    """Completed and not covered; a lying flush covers nothing."""
    survived: int
    """In-flight and unflushed writes of which every sector survives."""
    torn: int
    """In-flight and unflushed writes of which some sectors survive and some do not."""


def word(seed: int, submission: int, sector: int) -> int:
    """The 64 bits that the seed draws for a write or one of its sectors."""
    z = (seed + submission * 0x9E3779B97F4A7C15 + sector * 0xBF58476D1CE4E5B9) & _U64_MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & _U64_MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & _U64_MASK
    return z ^ z >> 31


def coin(seed: int, submission: int, sector: int) -> bool:
    """Whether the write, or its sector, survives by the seed."""
    return word(seed, submission, sector) >> 63 == 1


def writes_until(
    events: Sequence[Event], *, disk: int, cut: int, view: DiskState = _HONEST
) -> tuple[Write, ...]:
    """The writes of a disk until event `cut`, in the order in which they apply.

    Completed writes come first, in the order of their completion. Writes in flight follow, in the order
    of their submission. With the view's `lying_ms`, flushes and FUA completed less than this long before
    the cut have no effect. With its `held_ms` and `held_bytes`, a cache holds no more writes than they
    allow. Raises `ValueError` when the recording has no event `cut`, or completes a write that was not
    submitted.
    """
    if not 0 <= cut < len(events) or events[cut].seq != cut:
        raise ValueError(f"no event {cut} in a log of {len(events)}")
    honest_until_ns = events[cut].time_ns - (view.lying_ms or 0) * _NS_PER_MS

    def counts(completion: Event) -> bool:
        return not completion.error and completion.time_ns <= honest_until_ns

    in_flight: dict[int, Event] = {}
    completed: list[tuple[Event, Event]] = []
    # of the effective flushes, the one submitted last covers all that the others cover
    last_flush = -1
    for event in islice(events, cut + 1):
        if event.disk != disk:
            continue
        if event.kind in WRITE_SUBMITS:
            in_flight[event.seq] = event
        elif event.kind in WRITE_COMPLETES:
            submission = in_flight.pop(event.reference, None)
            if submission is None:
                raise ValueError(f"event {event.seq} completes no write in flight")
            if not event.error:
                completed.append((submission, event))
        elif event.kind is Kind.FLUSH_COMPLETE and counts(event):
            last_flush = max(last_flush, event.reference)
    held = _held(completed, view, at_ns=events[cut].time_ns)
    return (
        *(
            _write(
                submission,
                completion=completion.seq,
                covered=completion.seq < last_flush
                or (submission.fua and counts(completion))
                or completion.seq not in held,
            )
            for submission, completion in completed
        ),
        *(_write(submission, completion=None, covered=False) for submission in in_flight.values()),
    )


def _held(
    completed: Sequence[tuple[Event, Event]], view: DiskState, *, at_ns: int
) -> frozenset[int]:
    """The completions of the writes that a cache can still hold then, whatever was flushed."""
    held, bytes_ = set(), 0
    for submission, completion in reversed(completed):
        bytes_ += submission.length if submission.kind is Kind.WRITE_SUBMIT else 0
        if view.held_bytes is not None and bytes_ > view.held_bytes:
            break
        age_ns = at_ns - completion.time_ns
        if view.held_ms is not None and age_ns >= view.held_ms * _NS_PER_MS:
            break
        held.add(completion.seq)
    return frozenset(held)


def _spans(write: Write, sector: int) -> list[tuple[int, int]]:
    """The range of a write's bytes in each of its sectors, from the write's beginning."""
    end = write.offset + write.length
    starts = range(write.offset // sector * sector, end, sector)
    return [
        (max(start, write.offset) - write.offset, min(start + sector, end) - write.offset)
        for start in starts
    ]


def _write(submission: Event, *, completion: int | None, covered: bool) -> Write:
    return Write(
        submission=submission.seq,
        completion=completion,
        kind=submission.kind,
        fua=submission.fua,
        offset=submission.offset,
        length=submission.length,
        covered=covered,
    )


def uncovered(writes: Sequence[Write]) -> tuple[Write, ...]:
    """The writes whose survival the policy decides."""
    return tuple(write for write in writes if not write.covered)


def survivors(
    events: Sequence[Event], *, disk: int, sector: int, view: DiskState, cut: int, seed: int
) -> dict[int, tuple[int, ...]]:
    """The surviving sectors of each uncovered write, by its submission, in the order of application.

    Raises `ValueError` as `writes_until` does.
    """
    writes = writes_until(events, disk=disk, cut=cut, view=view)
    fates = _fates(view, writes, disk=disk, sector=sector, seed=seed)
    return {
        write.submission: tuple(place for place, survives in enumerate(fates(write)) if survives)
        for write in uncovered(writes)
    }


def content(
    base: bytes,
    events: Sequence[Event],
    *,
    disk: int,
    sector: int,
    view: DiskState,
    cut: int,
    seed: int,
    payload: Callable[[int], bytes],
) -> bytes:
    """The whole disk after the cut; `base` is its first content.

    `payload` gives the bytes of a submission, by its number. Raises `ValueError` as `writes_until` does,
    and what `payload` raises.
    """
    held = bytearray(base)
    left = survivors(events, disk=disk, sector=sector, view=view, cut=cut, seed=seed)
    for write in writes_until(events, disk=disk, cut=cut, view=view):
        is_data = write.kind is Kind.WRITE_SUBMIT
        written = payload(write.submission) if is_data else bytes(write.length)
        spans = _spans(write, sector)
        for place in range(len(spans)) if write.covered else left[write.submission]:
            start, end = spans[place]
            held[write.offset + start : write.offset + end] = written[start:end]
    return bytes(held)


def tally(
    events: Sequence[Event], *, disk: int, sector: int, view: DiskState, cut: int, seed: int
) -> CutTally:
    """The counts for a trial's record, in one pass over the recording and as few sectors as needed.

    Raises `ValueError` as `writes_until` does.
    """
    writes = writes_until(events, disk=disk, cut=cut, view=view)
    fates = _fates(view, writes, disk=disk, sector=sector, seed=seed)
    survived = torn = 0
    for write in uncovered(writes):
        rest = fates(write)
        first = next(rest, False)
        if any(survives != first for survives in rest):
            torn += 1
        elif first:
            survived += 1
    return CutTally(
        writes=len(writes),
        in_flight=sum(write.completion is None for write in writes),
        unflushed=sum(write.completion is not None for write in uncovered(writes)),
        survived=survived,
        torn=torn,
    )


def _fates(
    view: DiskState, writes: Sequence[Write], *, disk: int, sector: int, seed: int
) -> Callable[[Write], Iterator[bool]]:
    """A function that yields for each sector of an uncovered write, in order, whether it survives."""
    listed = view.listed
    lost = _lost(view.policy, writes, disk=disk, seed=seed)
    in_flight = {
        InFlight.GONE: Policy.FLUSHED,
        InFlight.WHOLE: Policy.SUBSET,
        InFlight.TORN: Policy.TORN,
    }

    def fates(write: Write) -> Iterator[bool]:
        number = write.submission
        places = range(len(_spans(write, sector)))
        if view.policy is Policy.EXPLICIT:
            sectors = listed.get(number, ())
            if sectors is None:
                return repeat(True, len(places))
            return (place in sectors for place in places)
        has_own_policy = view.policy not in (Policy.TORN, Policy.PREFIX)
        is_in_flight = write.completion is None and has_own_policy
        match in_flight[view.in_flight] if is_in_flight else view.policy:
            case Policy.ALL:
                return repeat(True, len(places))
            case Policy.SUBSET:
                return repeat(coin(seed, number, 0), len(places))
            case Policy.TORN:
                return (coin(seed, number, 1 + place) for place in places)
            case Policy.PREFIX if len(places) > 1:
                kept = 1 + word(seed, number, 0) % (len(places) - 1)
                return (place < kept for place in places)
            case Policy.PREFIX:
                return repeat(coin(seed, number, 0), len(places))
            case Policy.OLDEST | Policy.BUT_FEW:
                return repeat(number not in lost, len(places))
            case _:
                return repeat(False, len(places))

    return fates


def _lost(policy: Policy, writes: Sequence[Write], *, disk: int, seed: int) -> frozenset[int]:
    """The lost submissions, under the policies that draw among all completed writes."""
    drawn = [word(seed, 0, 8 * disk + number) for number in range(3)]
    numbers = [write.submission for write in uncovered(writes) if write.completion is not None]
    if policy is Policy.OLDEST:
        return frozenset(numbers[drawn[0] % (len(numbers) + 1) :])
    if policy is not Policy.BUT_FEW or not numbers:
        return frozenset()
    places = drawn[1:] if drawn[0] >> 63 else drawn[1:2]
    return frozenset(numbers[place % len(numbers)] for place in places)


def keep_all(recording: Path, *, cut: int, disks: Sequence[ShelfDisk]) -> CrashState:
    """The crash state that loses no write: the disks as they were at an event."""
    return CrashState(
        recording=recording,
        cut=cut,
        seed=0,
        disks={disk.serial: DiskState(policy=Policy.ALL) for disk in disks},
    )


def count_crash_states(recording: Recording, *, cut: int, disks: Sequence[str]) -> int:
    """The number of states in which the cut can leave these disks; the other disks are gone.

    Each uncovered write, in flight or completed, survives as a whole or not at all: torn writes are
    left out. Different states may have equal content. Raises `ValueError` for an unknown cut or disk.
    """
    places = (recording.place_of(name) for name in disks)
    writes = (writes_until(recording.events, disk=place, cut=cut) for place in places)
    return 1 << sum(len(uncovered(of_disk)) for of_disk in writes)


def account(
    recording: Recording, state: CrashState, disks: Sequence[ShelfDisk]
) -> dict[str, DiskAtCut]:
    """For `cut.json`: each disk's persistence and policy, its writes, and the uncovered ones' fate."""
    return {disk.serial: _account_disk(recording, state, disk) for disk in disks}


def _account_disk(recording: Recording, state: CrashState, disk: ShelfDisk) -> DiskAtCut:
    chosen = state.disks.get(disk.serial)
    number = recording.place_of(disk.serial)
    counts = tally(
        recording.events,
        disk=number,
        sector=disk.physical_sector_bytes,
        view=chosen or DiskState(policy=Policy.FLUSHED),
        cut=state.cut,
        seed=state.seed,
    )
    policy = GONE if chosen is None else chosen.policy
    return DiskAtCut(persistence=disk.persistence, policy=policy, **asdict(counts))
