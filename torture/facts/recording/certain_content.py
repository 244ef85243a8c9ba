"""The writes of a disk that are certain to survive a cut, and a place's content before a write."""

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
from torture.facts.recording.intent_log import TXG_ROLES, Role, role_of
from torture.facts.recording.model import Write, writes_until


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """Bytes that replace a place's content; both are whole sectors."""

    offset: int
    content: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class CertainContent:
    """One disk of a recording, by its index, at a cut."""

    recording: Recording
    disk: int
    cut: int

    @property
    def sector_bytes(self) -> int:
        """The unit of torn writes on this disk."""
        return self.recording.disks[self.disk].physical_sector

    def payload(self, write: Write) -> bytes:
        """The bytes of a write."""
        return self.recording.payload(self.recording.events[write.submission])

    def content_before(self, write: Write) -> bytes:
        """The content of the write's place when it was submitted; raises as `held` does."""
        return held(
            self.recording,
            disk=self.disk,
            offset=write.offset,
            length=write.length,
            before=write.submission,
        )

    def committed_writes(self) -> tuple[Write, ...]:
        """Covered writes of transaction groups up to the last covered uberblock.

        Data and metadata: they may have been merged. Raises `HarnessError` when there are none.
        """
        found: list[Write] = []
        committed = 0
        for role, write in self._writes():
            if role in TXG_ROLES and write.covered:
                found.append(write)
            elif role is Role.UBERBLOCK and write.covered:
                committed = len(found)
        if not committed:
            raise HarnessError(f"no block was committed on {self._name} before the cut")
        return tuple(found[:committed])

    def needed_log(self) -> Write:
        """A covered block of the intent log that a replay needs.

        It is the first block after the last uberblock that was written. Without such a block that
        uberblock may be lost. The next choice is then the first block since its group's metadata began to
        be written, which holds operations from after that group. The last choice is the last block of
        all. Raises `HarnessError` without any block.
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
            raise HarnessError(f"no block of the intent log is sure to be on {self._name}")
        for since in (uberblock, metadata_of_uberblock):
            if later := [block for block in blocks if block.submission > since]:
                return later[0]
        return blocks[-1]

    def _writes(self) -> Iterator[tuple[Role, Write]]:
        """The surviving candidates with their roles, in the order in which they apply."""
        for write in writes_until(self.recording.events, disk=self.disk, cut=self.cut):
            if write.kind is Kind.WRITE_SUBMIT:
                yield role_of(self.payload(write)), write

    @property
    def _name(self) -> str:
        return self.recording.disks[self.disk].name


def held(recording: Recording, *, disk: int, offset: int, length: int, before: int) -> bytes:
    """The content of a disk's place before event `before`, from its completed writes and first content.

    Raises `HarnessError` for a disk whose first content is unreadable, or a view that had lost writes.
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
                raise HarnessError(f"the view {view} lost writes of {name}")
            below = load_recording(state.recording)
            place = below.place_of(name)
            return held(below, disk=place, offset=offset, length=length, before=state.cut + 1)
        case source:
            raise HarnessError(f"{recording.folder}: cannot read the content of {source}")
