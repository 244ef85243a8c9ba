"""The terms of a trial: the facts about its cell on which its oracles depend."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """The terms; without any cell they are those of a disk whose client dies in the cut."""

    tears_sectors: bool = False
    """Whether a crash may leave part of a sector of a write in flight."""
    names_are_stable: bool = False
    """Whether a creation, rename or removal is durable once its call returns."""
    content_is_safe: bool = False
    """Whether flushed content of files is guaranteed, although their names may go back."""
    excuses_names: bool = False
    """Whether each name may be as before its last changes, whatever was acknowledged."""
    repeats_requests: bool = False
    """Whether a NAS that comes back may do a request again that its client had sent before the cut."""
    client_lives: bool = False
    """Whether the client lives through the cut, and the host ends its load afterwards."""
    is_replay: bool = False
    """Whether the trial is a replay of an earlier trial's disks: no client ran in it."""
