"""What of a disk is certain at a cut, write by write, and what a place held before it was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from torture.errors import HarnessError
from torture.facts.recording.crash_state import Policy, read_crash_state
from torture.facts.recording.events import (
    WRITE_COMPLETES,
    Kind,
    Recording,
    ViewSource,
    load_recording,
)
from torture.facts.recording.model import Write, writes_until
from torture.facts.recording.roles import TXG_ROLES, Role, role_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """Bytes over whatever a place of a disk holds; both in whole sectors."""

    offset: int
    content: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Remains:
    """One disk of a recording, by its place in it, at a cut."""

    recording: Recording
    disk: int
    cut: int

    @property
    def sector_bytes(self) -> int:
        """What a write of this disk is torn into."""
        return self.recording.disks[self.disk].physical_sector

    def payload(self, write: Write) -> bytes:
        """What it wrote."""
        return self.recording.payload(self.recording.events[write.submission])

    def held_before(self, write: Write) -> bytes:
        """What the write's place held when it was submitted; raises as `held` does."""
        return held(
            self.recording,
            disk=self.disk,
            offset=write.offset,
            length=write.length,
            before=write.submission,
        )

    def committed_data(self) -> tuple[Write, ...]:
        """Covered data of transaction groups, as far as the last covered uberblock leads to them.

        Raises `HarnessError` when there are none.
        """
        return self._committed((Role.DATA,))

    def committed_writes(self) -> tuple[Write, ...]:
        """The same of all that transaction groups wrote: data may have been merged with metadata."""
        return self._committed(TXG_ROLES)

    def _committed(self, roles: tuple[Role, ...]) -> tuple[Write, ...]:
        found: list[Write] = []
        committed = 0
        for role, write in self._writes():
            if role in roles and write.covered:
                found.append(write)
            elif role is Role.UBERBLOCK and write.covered:
                committed = len(found)
        if not committed:
            raise HarnessError(f"no block of data was committed on {self._name} before the cut")
        return tuple(found[:committed])

    def needed_log(self) -> Write:
        """A covered block of the intent log that a replay cannot do without.

        It is the first since the last uberblock that was written. Where there is none yet, that one may
        not have survived: then the first since its transaction group's metadata began to be written,
        which holds what came after that group; else the last of all. Raises `HarnessError` when there is
        none.
        """
        blocks: list[Write] = []
        uberblock = metadata = metadata_of_uberblock = -1
        for role, write in sorted(self._writes(), key=lambda found: found[1].submission):
            if role is Role.ZIL and write.covered:
                blocks.append(write)
            elif role is Role.METADATA and metadata <= uberblock:
                metadata = write.submission
            elif role is Role.UBERBLOCK:
                uberblock, metadata_of_uberblock = write.submission, metadata
        if not blocks:
            raise HarnessError(f"no block of the intent log is on {self._name} for certain")
        for since in (uberblock, metadata_of_uberblock):
            if later := [block for block in blocks if block.submission > since]:
                return later[0]
        return blocks[-1]

    def _writes(self) -> Iterator[tuple[Role, Write]]:
        """In the order in which they apply."""
        for write in writes_until(self.recording.events, disk=self.disk, cut=self.cut):
            if write.kind is Kind.WRITE_SUBMIT:
                yield role_of(self.payload(write)), write

    @property
    def _name(self) -> str:
        return self.recording.disks[self.disk].name


def held(recording: Recording, *, disk: int, offset: int, length: int, before: int) -> bytes:
    """What a place of a disk held before event `before`: of its completed writes, and from the first.

    Raises `HarnessError` for a disk that began as a view which had lost something, or cannot be read.
    """
    content = bytearray(_held_at_first(recording, disk=disk, offset=offset, length=length))
    for event in islice(recording.events, before):
        if event.disk != disk or event.kind not in WRITE_COMPLETES or event.error:
            continue
        write = recording.events[event.reference]
        begin, end = max(offset, write.offset), min(offset + length, write.offset + write.length)
        if begin >= end:
            continue
        is_data = write.kind is Kind.WRITE_SUBMIT
        written = recording.payload(write) if is_data else bytes(write.length)
        content[begin - offset : end - offset] = written[begin - write.offset : end - write.offset]
    return bytes(content)


def _held_at_first(recording: Recording, *, disk: int, offset: int, length: int) -> bytes:
    match recording.disks[disk].source:
        case None:
            return bytes(length)
        case ViewSource(view=view, disk=name):
            state = read_crash_state(view)
            if name not in state.disks or state.disks[name].policy is not Policy.ALL:
                raise HarnessError(f"{view} did not keep all of {name}")
            below = load_recording(state.recording)
            place = below.place_of(name)
            return held(below, disk=place, offset=offset, length=length, before=state.cut + 1)
        case source:
            raise HarnessError(f"{recording.folder}: nobody reads what was in {source}")
