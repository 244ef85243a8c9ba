"""The form of a kind of log device."""

from __future__ import annotations

from dataclasses import dataclass

from torture.facts.recording.disks import Persistence


@dataclass(frozen=True, kw_only=True, slots=True)
class SlogKind:
    """The log devices of a pool, and their fate in the cut."""

    legs: tuple[Persistence, ...]
    """The persistence of each device. Two are a mirror; empty means no SLOG."""
    gone_at_cut: int = 0
    """How many of them are gone after the cut; the trial's seed draws which."""
    is_forgetful: bool = False
    """Whether after the cut it may lack data that ZFS acknowledged on the device's word. The pool
    is then back at its last transaction group, as if nothing had been synchronous."""
