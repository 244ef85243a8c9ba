"""One trial: the cell's speed before the cut, and the client's view of the time without the NAS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from torture.facts.evidence.documents import COUNT_MAX, Count, Document, Measure, limits


@dataclass(frozen=True, kw_only=True, slots=True)
class Speed(Document):
    """The rate at which data became durable before the cut; None where no load reports it.

    Guests are emulated: only ratios of these figures mean anything.
    """

    durable_per_s: Measure | None = None
    """Durable operations in a second of the writers' own work. Waits for each other, for the ledger
    or on purpose are left out."""
    sync_p50_ms: Measure | None = None
    sync_p99_ms: Measure | None = None
    """The wait of each operation in fsync, fdatasync and writes through O_DSYNC, by nearest rank."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Absence(Document):
    """The time without a NAS; an unknown figure is None."""

    outage_ms: Measure | None = None
    """From the cut until the client's device was published again."""
    reconnect_ms: Measure | None = None
    """From there to the next acknowledgement; only a client that lived has one."""
    acknowledged_in_outage: Count | None = None
    """Durable operations that were acknowledged in between, when no NAS can have stored anything."""
    unfounded: Count = 0
    """Of these, the operations for which nothing vouches (`torture.records.scoring.service`)."""
    lines: tuple[Annotated[int, limits(ge=1, le=COUNT_MAX)], ...] = ()
    """The first of them in the ledger, by their lines."""
