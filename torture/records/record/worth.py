"""What a cell was worth before the cut, and what the client saw until the NAS was back: of one trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from torture.facts.evidence.typed import number_of, whole_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Speed:
    """How fast what was acknowledged before the cut became durable; None where no load tells.

    Guests are emulated: only ratios of such figures mean anything.
    """

    durable_per_s: float | None = None
    """Durable operations in a second of the writers' own work: what they waited for each other, for
    the ledger or on purpose is left out."""
    sync_p50_ms: float | None = None
    sync_p99_ms: float | None = None
    """Of what each of them waited in fsync, fdatasync and writes through O_DSYNC, by nearest rank."""

    def as_json(self) -> dict[str, Any]:
        """As plain data; what is not known is left out."""
        return _known(asdict(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """As much of it as has the right type."""
        return cls(
            durable_per_s=_measure(data, "durable_per_s"),
            sync_p50_ms=_measure(data, "sync_p50_ms"),
            sync_p99_ms=_measure(data, "sync_p99_ms"),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Absence:
    """The time without a NAS; what is not known is None."""

    outage_ms: float | None = None
    """From the cut until what the client attaches was published again."""
    reconnect_ms: float | None = None
    """From there to the next acknowledgement; only a client that lived has one."""
    acknowledged_in_outage: int | None = None
    """Durable operations that were acknowledged in between, when nobody can have stored anything."""
    unfounded: int = 0
    """Of these the ones that nothing vouches for (`torture.records.scoring.service`)."""
    lines: tuple[int, ...] = ()
    """The first of them in the ledger, by their lines."""

    def as_json(self) -> dict[str, Any]:
        """As plain data; what is not known is left out."""
        return _known(asdict(self) | {"lines": list(self.lines)})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """As much of it as has the right type."""
        lines = data.get("lines")
        return cls(
            outage_ms=_measure(data, "outage_ms"),
            reconnect_ms=_measure(data, "reconnect_ms"),
            acknowledged_in_outage=_count(data, "acknowledged_in_outage"),
            unfounded=_count(data, "unfounded") or 0,
            lines=tuple(line for line in lines if type(line) is int and 0 < line <= _COUNT_MAX)
            if isinstance(lines, list | tuple)
            else (),
        )


def _measure(data: Mapping[str, Any], name: str) -> float | None:
    value = number_of(data, name)
    return value if value is not None and value >= 0 else None


_COUNT_MAX = 2**63 - 1


def _count(data: Mapping[str, Any], name: str) -> int | None:
    value = whole_of(data, name)
    return value if value is not None and value <= _COUNT_MAX else None


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None and value != []}
