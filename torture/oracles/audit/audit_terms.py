"""The terms of an audit: the facts about a cell on which ZFS's invariants depend."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from torture.facts.axes.sync import Sync
from torture.oracles.audit.commits import LATE_MS
from torture.oracles.audit.invariants import Invariant


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditTerms:
    """The terms; by default those of a zvol on disks of which each holds whole blocks."""

    sync: Sync
    """Unless disabled, an acknowledgement means that the ZIL, or a transaction group, is durable."""
    completed_sync: Sync | None = None
    """The level for completed block requests; None: the same."""
    waived: Mapping[Invariant, int] = field(default_factory=dict)
    """Invariants that the cell's own settings break, and the event from which on they do. From there
    the audit only counts their violations."""
    whole_on: Collection[str] | None = None
    """The disks that each hold whole data blocks at one place. Empty where blocks are split over disks;
    None: all disks."""
    writes_once: bool = True
    """Whether the client's filesystem writes no second copy of its data
    (`torture.choices.filesystems.protocol`). Only then must every log block with these data be
    covered."""
    names_are_volatile: bool = False
    """Whether an acknowledgement covers only the blocks that it names."""
    length_shows_metadata: bool = True
    """Whether a write's length distinguishes metadata from data (`torture.facts.recording.roles`)."""
    only_groups_write: bool = True
    """Whether only transaction groups and the ZIL write, and no resilver. Then a committed group vouches
    for everything before its first write, otherwise before its uberblock."""
    late_ms: int = LATE_MS
    """How long after an acknowledgement a group may begin (`torture.oracles.audit.commits`)."""
