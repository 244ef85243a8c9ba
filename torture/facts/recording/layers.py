"""Disks as lists of writes: many crash states of one recording, each a few steps from the others (pure).

The surviving writes of a disk's first content come first, then the completed writes of the recording,
in the order of their completions. A state consists of the writes before some place in this list, which
are there for certain, and of patches on top. So a state costs as much as its patches.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torture.facts.recording.crash_state import (
    CrashState,
    DiskState,
    Policy,
    read_crash_state,
)
from torture.facts.recording.events import (
    DATA,
    WRITE_COMPLETES,
    WRITE_SUBMITS,
    Event,
    ImageSource,
    Kind,
    RecordedDisk,
    Recording,
    load_recording,
)
from torture.facts.recording.model import survivors, writes_until

ZEROES = 0xFFFFFFFF
"""The number of no file: the piece is zeroes."""
_PACKED = struct.Struct("<IIQQQ")


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """Bytes of a disk, and the file that has them."""

    offset: int
    length: int
    file: int = ZEROES
    place: int = 0
    """Where they begin in the file."""

    def packed(self, disk: int) -> bytes:
        """As the native engine reads it."""
        return _PACKED.pack(disk, self.file, self.offset, self.length, self.place)


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskLayers:
    """One disk of a state."""

    settled: int
    """So many of the disk's first pieces are there for certain."""
    patches: tuple[Piece, ...]
    """On top of them, in the order in which they apply."""


@dataclass
class _Disk:
    """A disk's pieces, and its events in the recording."""

    recorded: RecordedDisk
    pieces: list[Piece] = field(default_factory=list)
    below: int = 0
    """The number of pieces of the first content."""
    submissions: list[int] = field(default_factory=list)
    """Of the completed writes; those that failed have no effect."""
    completions: list[int] = field(default_factory=list)
    """Of the same writes, ascending."""
    ended: dict[int, int] = field(default_factory=dict)
    """A write's completion, failed or not, by its submission."""
    flushes: list[int] = field(default_factory=list)
    """The completions of flushes, ascending."""
    covered: list[int] = field(default_factory=list)
    """By flush, the event before which all completed writes are covered then."""


class Layers:
    """The pieces of some disks of a recording, and of everything below them."""

    def __init__(self, recording: Recording, disks: Sequence[str]) -> None:
        """Read the recordings below this one, too. Raises `HarnessError` when one cannot be read."""
        self._recording = recording
        self._files: list[Path] = []
        places = {recording.place_of(name): name for name in disks}
        self._disks = {
            name: _Disk(recorded=recording.disks[place]) for place, name in places.items()
        }
        for disk in self._disks.values():
            disk.pieces += self._first_content(disk.recorded)
            disk.below = len(disk.pieces)
        self._file = self._number(recording.folder / DATA)
        for event in recording.events:
            if event.disk in places:
                self._add(self._disks[places[event.disk]], event)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of all pieces, by their numbers."""
        return tuple(self._files)

    def pieces(self, disk: str) -> tuple[Piece, ...]:
        """The disk's pieces, in the order in which they apply."""
        return tuple(self._disks[disk].pieces)

    def spans(self, disk: str) -> Iterator[tuple[int, int]]:
        """Offset and length of each recorded write of a disk: all places that differ among states."""
        place = self._recording.place_of(disk)
        for event in self._recording.events:
            if event.disk == place and event.kind in WRITE_SUBMITS:
                yield event.offset, event.length

    def packed(self, disks: Sequence[str]) -> Iterator[bytes]:
        """All pieces of these disks, which are numbered in this order."""
        for number, name in enumerate(disks):
            yield b"".join(piece.packed(number) for piece in self._disks[name].pieces)

    def of(self, state: CrashState, disk: str) -> DiskLayers:
        """One disk of a state of this recording.

        Raises `ValueError` unless the state lists the disk's survivors: only a list is quick.
        """
        view = state.disks[disk]
        if view.policy is not Policy.EXPLICIT:
            raise ValueError(f"the survivors of {disk} are not listed, but {view.policy}")
        own = self._disks[disk]
        flushes = bisect_right(own.flushes, state.cut)
        covered_before = own.covered[flushes - 1] if flushes else 0
        certain = bisect_left(own.completions, covered_before)
        listed = view.listed
        patches: list[Piece] = []
        for place in range(certain, bisect_right(own.completions, state.cut)):
            submission = own.submissions[place]
            write = self._recording.events[submission]
            if write.fua:
                patches += self._pieces_of(own, write)
            elif submission in listed:
                patches += self._pieces_of(own, write, listed[submission])
        for submission in sorted(listed):
            if submission <= state.cut < own.ended.get(submission, state.cut + 1):
                write = self._recording.events[submission]
                patches += self._pieces_of(own, write, listed[submission])
        return DiskLayers(settled=own.below + certain, patches=tuple(patches))

    def _add(self, disk: _Disk, event: Event) -> None:
        if event.kind in WRITE_COMPLETES:
            disk.ended[event.reference] = event.seq
            if not event.error:
                write = self._recording.events[event.reference]
                disk.pieces.append(self._whole(write, self._file))
                disk.submissions.append(write.seq)
                disk.completions.append(event.seq)
        elif event.kind is Kind.FLUSH_COMPLETE and not event.error:
            disk.flushes.append(event.seq)
            disk.covered.append(max(event.reference, *disk.covered[-1:], 0))

    def _pieces_of(
        self, disk: _Disk, write: Event, sectors: tuple[int, ...] | None = None
    ) -> Iterator[Piece]:
        """The pieces of a write that survive: all of it, or the listed sectors."""
        assert write.kind in WRITE_SUBMITS
        whole = self._whole(write, self._file)
        if sectors is None:
            yield whole
        else:
            yield from _torn(whole, sectors, disk.recorded.physical_sector)

    @staticmethod
    def _whole(write: Event, file: int) -> Piece:
        if write.kind is not Kind.WRITE_SUBMIT:
            return Piece(offset=write.offset, length=write.length)
        return Piece(offset=write.offset, length=write.length, file=file, place=write.reference)

    def _number(self, file: Path) -> int:
        if file not in self._files:
            self._files.append(file)
        return self._files.index(file)

    def _first_content(self, disk: RecordedDisk) -> list[Piece]:
        """The content with which a recorded disk began; without a source it was zeroes."""
        match disk.source:
            case None:
                return []
            case ImageSource(image=image):
                length = min(image.stat().st_size, disk.size)
                return [Piece(offset=0, length=length, file=self._number(image))]
            case source:
                state = read_crash_state(source.view)
                return self._of_view(load_recording(state.recording), state, source.disk)

    def _of_view(self, recording: Recording, state: CrashState, name: str) -> list[Piece]:
        """A disk of a crash state of any policy, in a recording below."""
        place, view = recording.place_of(name), state.disks[name]
        disk = recording.disks[place]
        pieces = self._first_content(disk)
        file = self._number(recording.folder / DATA)
        for write, sectors in _surviving(recording.events, state, view, disk=disk, place=place):
            whole = self._whole(write, file)
            pieces += [whole] if sectors is None else _torn(whole, sectors, disk.physical_sector)
        return pieces


def _surviving(
    events: Sequence[Event], state: CrashState, view: DiskState, *, disk: RecordedDisk, place: int
) -> Iterator[tuple[Event, tuple[int, ...] | None]]:
    """The writes of a disk after a cut, in their order; None: all sectors of it."""
    left = survivors(
        events, disk=place, sector=disk.physical_sector, view=view, cut=state.cut, seed=state.seed
    )
    for write in writes_until(events, disk=place, cut=state.cut, view=view):
        yield events[write.submission], None if write.covered else left[write.submission]


def _torn(whole: Piece, sectors: Iterable[int], sector_bytes: int) -> Iterator[Piece]:
    """These sectors of a write, counted from 0 in the physical sectors that it touches."""
    begin = whole.offset // sector_bytes * sector_bytes
    end = whole.offset + whole.length
    for first, count in _runs(sectors):
        start = max(whole.offset, begin + first * sector_bytes)
        after = min(end, begin + (first + count) * sector_bytes)
        if start < after:
            place = 0 if whole.file == ZEROES else whole.place + start - whole.offset
            yield Piece(offset=start, length=after - start, file=whole.file, place=place)


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first of adjacent numbers, and their count."""
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and sum(runs[-1]) == number:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((number, 1))
    yield from runs
