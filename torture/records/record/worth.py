"""What a cell was worth before the cut, and what the client saw until the NAS was back: of one trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from torture.facts.evidence.documents import COUNT_MAX, Count, Document, Measure, limits


@dataclass(frozen=True, kw_only=True, slots=True)
class Speed(Document):
    """How fast what was acknowledged before the cut became durable; None where no load tells.

    Guests are emulated: only ratios of such figures mean anything.
    """

    durable_per_s: Measure | None = None
    """Durable operations in a second of the writers' own work: what they waited for each other, for
    the ledger or on purpose is left out."""
    sync_p50_ms: Measure | None = None
    sync_p99_ms: Measure | None = None
    """Of what each of them waited in fsync, fdatasync and writes through O_DSYNC, by nearest rank."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Absence(Document):
    """The time without a NAS; what is not known is None."""

    outage_ms: Measure | None = None
    """From the cut until what the client attaches was published again."""
    reconnect_ms: Measure | None = None
    """From there to the next acknowledgement; only a client that lived has one."""
    acknowledged_in_outage: Count | None = None
    """Durable operations that were acknowledged in between, when nobody can have stored anything."""
    unfounded: Count = 0
    """Of these the ones that nothing vouches for (`torture.records.scoring.service`)."""
    lines: tuple[Annotated[int, limits(ge=1, le=COUNT_MAX)], ...] = ()
    """The first of them in the ledger, by their lines."""
