"""Which disks are part of the pool: a vdev may join it, or leave it, while the recording goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torture.facts.recording.events import Event, RecordedDisk
from torture.facts.recording.intent_log import Change


class _Known(Protocol):
    def forget(self, disk: int) -> None: ...


@dataclass(kw_only=True)
class Members:
    """Follows a recording."""

    known: Sequence[_Known]
    """They forget a disk that joins or leaves: its former content means nothing."""
    outside: set[int] = field(default_factory=set)
    """The disks that have left: the pool depends on nothing there."""
    _changes: list[tuple[int, int, Change]] = field(default_factory=list)
    """The event, the disk, and its change."""
    _latest: dict[int, Change] = field(default_factory=dict)

    def hear(self, event: Event, change: Change | None) -> bool:
        """Note a write; returns whether the pool depends on none of it."""
        disk = event.disk
        if disk is None:
            return False
        if change in (Change.JOINS, Change.LEAVES) and change is not self._latest.get(disk):
            self._latest[disk] = change
            self._changes.append((event.seq, disk, change))
            (self.outside.add if change is Change.LEAVES else self.outside.discard)(disk)
            for part in self.known:
                part.forget(disk)
        return change is not None or disk in self.outside

    def in_words(self, disks: Sequence[RecordedDisk], *, since: int) -> tuple[str, ...]:
        """E.g. `slog0 left` and `slog0 joined`, in their order; without those before that event."""
        later = (one for one in self._changes if one[0] >= since)
        return tuple(f"{disks[disk].name} {change}" for _, disk, change in later)
