"""The distinct crash states of a recording: each content that its disks can have after a cut (pure).

A state is known by the owner of each sector: the last write that survives there. Two states with
equal owners have equal disks. Each state is given with the last cut that can leave it. Most operations
were acknowledged by then, so a state that keeps its promises there kept them at every earlier cut.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2
from typing import Self

import numpy as np
import numpy.typing as npt

from torture.facts.recording.crash_state import CrashState, DiskState, Policy, Survivor, Torn
from torture.facts.recording.disks import Persistence
from torture.facts.recording.events import WRITE_COMPLETES, WRITE_SUBMITS, Event, Kind, Recording
from torture.features.walk.documents import SetsTaken
from torture.features.walk.states.course import (
    ALL_SUBSETS_MAX,
    Course,
    UndecidedWrites,
    course_of,
    number_of_sets,
    survivor_sets,
)
from torture.features.walk.states.origins import lengths_of_labels

_SECTOR = 512
_LAST = 1 << 62
"""Writes in flight apply after all completed ones."""
_STATES_MAX = 100_000
"""The memory and the time of a walk are bounded: so many states take some 20 s to find."""
_BATCH = 100
"""Of the drawn states, so many are put in the order of their cuts (`in_batches`). A walk compares the
times of its first and its last hundred: each has states of all cuts, as late ones take longer."""
_CHANGES = WRITE_SUBMITS | WRITE_COMPLETES | {Kind.FLUSH_COMPLETE}

_Words = npt.NDArray[np.uint64]
_Choice = tuple[Sequence[Event], Event | None]
"""Of the undecided writes those that survive, and the shortened one that survives, too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DistinctState:
    """A state: the last cut that can leave it, and the surviving writes that no flush covers."""

    key: int
    """64 bits by the owners of all sectors; that of the state as it was found."""
    cut: int
    survivors: tuple[int, ...]
    """Submissions, of all disks."""
    dropped: tuple[int, ...]
    """The other writes that no flush covers, with the torn one."""
    torn: Torn | None = None
    """A write of which only the first sectors survive."""

    def dropping_only(self, part: Collection[int]) -> Self:
        """The state in which of the dropped writes only this part is dropped."""
        spared = [write for write in self.dropped if write not in part]
        torn = self.torn if self.torn is not None and self.torn[0] in part else None
        return replace(self, survivors=(*self.survivors, *spared), dropped=tuple(part), torn=torn)

    def crash_state(self, recording: Recording, disks: Sequence[str]) -> CrashState:
        """The same as the shelf's view of these disks."""
        of_disk: dict[str, list[Survivor]] = {name: [] for name in disks}
        torn = () if self.torn is None else (self.torn,)
        for survivor in (*self.survivors, *torn):
            submission = survivor if isinstance(survivor, int) else survivor[0]
            place = recording.events[submission].disk
            assert place is not None
            of_disk[recording.disks[place].name].append(survivor)
        return CrashState(
            recording=recording.folder,
            cut=self.cut,
            seed=0,
            disks={
                name: DiskState(policy=Policy.EXPLICIT, survivors=tuple(survivors))
                for name, survivors in of_disk.items()
            },
        )


def distinct_states(
    recording: Recording, disks: Mapping[str, Persistence], *, first: int, last: int, seed: int
) -> tuple[DistinctState, ...]:
    """The states that cuts from event `first` to `last` can leave, in the order of their cuts.

    After each write and flush, each subset of the undecided writes survives if they are few. Of more
    writes these subsets are taken: none, all, each alone, all but each, those of whole disks, and some
    that the seed draws. The seed also tears one write: only its first physical sectors survive, and all
    other writes. Where these are too many states, the seed draws the events. A disk that lies about
    flushes is refused with `ValueError`.
    """
    generator = random.Random(f"states/{seed}")
    course = _course_of(recording, disks, last=last)
    taken = frozenset(_events_taken(recording, course, first=first, seed=seed))

    def offered(event: Event, undecided: Sequence[Event]) -> Iterator[_Choice]:
        if event.seq in taken:
            yield from ((survivors, None) for survivors in survivor_sets(undecided, generator))
            yield from _torn(undecided, recording, generator)

    return _found(recording, disks, course, offered)


def sets_taken(
    recording: Recording, disks: Mapping[str, Persistence], *, first: int, last: int, seed: int
) -> SetsTaken:
    """The cuts, and their sets of surviving writes, that `distinct_states` takes, of all."""
    course = _course_of(recording, disks, last=last)
    taken = _events_taken(recording, course, first=first, seed=seed)
    many = [counts for seq in taken if sum(counts := course.undecided[seq]) > ALL_SUBSETS_MAX]
    possible = sum(1 << sum(counts) for counts in many)
    return SetsTaken(
        cuts=len(_events_between(recording, course, first=first)),
        cuts_taken=len(taken),
        cuts_drawn=len(many),
        sets_drawn=sum(map(number_of_sets, many)),
        sets_log2=round(log2(possible), 1) if possible else 0.0,
    )


def states_with_torn_labels(
    recording: Recording, disks: Mapping[str, Persistence], *, first: int, last: int
) -> tuple[DistinctState, ...]:
    """The states in which of all undecided writes only the beginning of a label survives.

    There is one for each label write and each number of physical sectors that its configuration fills.
    `distinct_states` draws few of them: it tears one write an event, and keeps all others.
    """
    course = _course_of(recording, disks, last=last)
    labels = lengths_of_labels(recording)

    def offered(event: Event, undecided: Sequence[Event]) -> Iterator[_Choice]:
        if event.seq >= first and event.kind in _CHANGES:
            for write in undecided:
                size = _physical_sector(write, recording)
                for length in range(size, labels.get(write.seq, 0) + size, size):
                    yield [], replace(write, length=length)

    return _found(recording, disks, course, offered)


def _course_of(recording: Recording, disks: Mapping[str, Persistence], *, last: int) -> Course:
    if lying := [name for name, kind in disks.items() if kind is Persistence.LYING]:
        raise ValueError(f"the states of a disk that lies are not walked: {', '.join(lying)}")
    return course_of(recording, disks, last=last)


def _found(
    recording: Recording,
    disks: Mapping[str, Persistence],
    course: Course,
    offered: Callable[[Event, Sequence[Event]], Iterator[_Choice]],
) -> tuple[DistinctState, ...]:
    """The distinct ones of the states offered after each event, in the order of their cuts."""
    found: dict[int, DistinctState] = {}
    walk = _Walk(recording, disks)
    for event in recording.events[: course.last + 1]:
        walk.step(event)
        undecided = walk.undecided
        choices = list(offered(event, undecided))
        if not choices:
            continue
        unsettled = course.unsettled([write for write in undecided if write.seq in walk.in_flight])
        for survivors, torn in choices:
            key, chosen = walk.key(survivors, torn), [write.seq for write in survivors]
            there = {*chosen, *([] if torn is None else [torn.seq])}
            dropped = [write.seq for write in undecided if write.seq not in chosen]
            cut = course.last_cut(event.seq, dropped, there, unsettled)
            if key not in found or cut >= found[key].cut:
                found[key] = DistinctState(
                    key=key,
                    cut=cut,
                    survivors=(*chosen, *walk.kept),
                    dropped=(*dropped, *course.submitted_between(event.seq, cut)),
                    torn=None if torn is None else _first_sectors(torn, recording),
                )
    return tuple(sorted(found.values(), key=lambda state: state.cut))


def _events_between(recording: Recording, course: Course, *, first: int) -> list[int]:
    """The events after which a cut leaves other states than before, and the first one."""
    events = recording.events[first : course.last + 1]
    return [event.seq for event in events if event.kind in _CHANGES or event.seq == first]


def _events_taken(recording: Recording, course: Course, *, first: int, seed: int) -> list[int]:
    """All of these events; where their states are too many, the first one and some that are drawn."""
    between = _events_between(recording, course, first=first)
    share = _STATES_MAX / max(sum(number_of_sets(course.undecided[seq]) for seq in between), 1)
    generator = random.Random(f"states/{seed}/events")
    return [seq for seq in between if generator.random() < share or seq == first]


def _torn(
    writes: Sequence[Event], recording: Recording, generator: random.Random
) -> Iterator[_Choice]:
    """All writes but one, and the first physical sectors of that one as a write; none if it has one."""
    tearable = [
        (place, sectors)
        for place, write in enumerate(writes)
        if write.kind is Kind.WRITE_SUBMIT and (sectors := _physical_sectors(write, recording)) > 1
    ]
    if tearable:
        place, sectors = generator.choice(tearable)
        size = _physical_sector(writes[place], recording)
        end = (writes[place].offset // size + generator.randrange(1, sectors)) * size
        short = replace(writes[place], length=end - writes[place].offset)
        yield [*writes[:place], *writes[place + 1 :]], short


def _first_sectors(short: Event, recording: Recording) -> Torn:
    return short.seq, tuple(range(_physical_sectors(short, recording)))


def _physical_sectors(write: Event, recording: Recording) -> int:
    """The number of physical sectors that a write touches; the shelf counts them so, too."""
    size = _physical_sector(write, recording)
    return (write.offset + write.length - 1) // size - write.offset // size + 1


def _physical_sector(write: Event, recording: Recording) -> int:
    assert write.disk is not None
    return recording.disks[write.disk].physical_sector


class _Disk:
    """One disk during the walk: its undecided writes, and the owners that are certain."""

    def __init__(self, size: int, kind: Persistence) -> None:
        self.writes = UndecidedWrites(keeps_completed=kind is Persistence.PLP)
        self.owners = np.zeros(size // _SECTOR, np.int64)
        """By sector, the last write that is there for certain; 0: the first content."""
        self.completed_at = np.zeros(size // _SECTOR, np.int64)
        """By sector, the completion of that write: an earlier undecided one lies below it."""


class _Walk:
    """The disks from event to event."""

    def __init__(self, recording: Recording, disks: Mapping[str, Persistence]) -> None:
        places = {recording.place_of(name): kind for name, kind in disks.items()}
        self._disks = {
            place: _Disk(recording.disks[place].size, kind) for place, kind in places.items()
        }
        self._certain = 0
        """The key of the owners that are certain."""

    def step(self, event: Event) -> None:
        """Go over one event."""
        if event.disk is None or (disk := self._disks.get(event.disk)) is None:
            return
        for completion, write in disk.writes.step(event):
            self._certain ^= _changed(event.disk, disk, [(completion, write)])
            span = slice(*_sectors(write))
            is_later = disk.completed_at[span] < completion
            disk.owners[span][is_later] = write.seq
            disk.completed_at[span][is_later] = completion

    @property
    def undecided(self) -> list[Event]:
        """The writes that may survive or not, in the order in which they apply on each disk."""
        return [write for disk in self._disks.values() for write in disk.writes.undecided]

    @property
    def in_flight(self) -> frozenset[int]:
        """Of these, the ones that have not completed."""
        return frozenset(seq for disk in self._disks.values() for seq in disk.writes.in_flight)

    @property
    def kept(self) -> tuple[int, ...]:
        """The completed writes of protected disks, which survive without a flush."""
        return tuple(seq for disk in self._disks.values() for seq in disk.writes.kept)

    def key(self, survivors: Sequence[Event], torn: Event | None = None) -> int:
        """The key of the state in which these survive, too, and the shortened one."""
        key = self._certain
        chosen = {write.seq: write for write in (*survivors, *(() if torn is None else (torn,)))}
        for place, disk in self._disks.items():
            writes = disk.writes
            own = [
                (completion, chosen[write.seq])
                for completion, write in writes.completed
                if write.seq in chosen
            ]
            own += [(_LAST, chosen[seq]) for seq in writes.in_flight if seq in chosen]
            if own:
                key ^= _changed(place, disk, own)
        return key


def _sectors(write: Event) -> tuple[int, int]:
    return write.offset // _SECTOR, (write.offset + write.length) // _SECTOR


def _changed(place: int, disk: _Disk, writes: Sequence[tuple[int, Event]]) -> int:
    """The change of the key by these writes and their completions, in the order in which they apply."""
    spans = np.array([_sectors(write) for _, write in writes])
    lengths = spans[:, 1] - spans[:, 0]
    ends = np.cumsum(lengths)
    sectors = np.arange(ends[-1]) + np.repeat(spans[:, 0] - ends + lengths, lengths)
    completions = np.repeat([completion for completion, _ in writes], lengths)
    own = np.repeat([write.seq for _, write in writes], lengths)
    is_later = disk.completed_at[sectors] < completions
    sectors, own = sectors[is_later][::-1], own[is_later][::-1]
    sectors, last = np.unique(sectors, return_index=True)
    own = own[last]
    changed = _mixed(place, sectors, disk.owners[sectors]) ^ _mixed(place, sectors, own)
    return int(np.bitwise_xor.reduce(changed)) if len(changed) else 0


def _mixed(place: int, sectors: npt.NDArray[np.int64], owners: npt.NDArray[np.int64]) -> _Words:
    """64 bits for each sector of a disk and its owner (splitmix64); 0 for the first content."""
    with np.errstate(over="ignore"):
        word = sectors.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        word ^= owners.astype(np.uint64) << np.uint64(24)
        word ^= np.uint64(place) << np.uint64(56)
        word = (word ^ word >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ word >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
    return np.where(owners == 0, np.uint64(0), word)


def drawn(states: Sequence[DistinctState], number: int, *, seed: str) -> list[DistinctState]:
    """So many of the states, in the order that the seed draws."""
    chosen = list(states)
    random.Random(seed).shuffle(chosen)
    return chosen[:number]


def in_batches(states: Sequence[DistinctState]) -> list[DistinctState]:
    """The same states, each batch in the order of the cuts: to go on to the next state is quick then.

    Several batches, so that a walk without time left has states of all cuts.
    """
    batches = (states[at : at + _BATCH] for at in range(0, len(states), _BATCH))
    return [state for batch in batches for state in sorted(batch, key=lambda state: state.cut)]
