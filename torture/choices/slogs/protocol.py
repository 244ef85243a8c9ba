"""What a kind of log device is."""

from __future__ import annotations

from dataclasses import dataclass

from torture.facts.recording.disks import Persistence


@dataclass(frozen=True, kw_only=True, slots=True)
class SlogKind:
    """The log devices of a pool, and what the cut does to them."""

    legs: tuple[Persistence, ...]
    """What each device keeps; two are a mirror, none is no SLOG."""
    gone_at_cut: int = 0
    """How many of them, drawn from the trial's seed, are not there any more after it."""
    is_forgetful: bool = False
    """Whether after the cut it may not hold what ZFS acknowledged on its word: the pool is then back
    at its last transaction group, as if nothing had been synchronous."""
