"""The interface of a protocol that carries a disk over TCP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torture.facts.evidence.block_requests import BlockKind
from torture.facts.wire.pdus import Framing, Pdu


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A write or a flush that was sent, by the tag of its answer."""

    tag: int
    kind: BlockKind
    first_sector: int = 0
    sectors: int = 0
    is_forced: bool = False
    """FUA: it may be answered only once it is durable."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The completion of a command."""

    tag: int
    is_good: bool


class DiskProtocol(Protocol):
    """A protocol that carries a disk over TCP."""

    @property
    def port(self) -> int:
        """The NAS's TCP port."""

    @property
    def framing(self) -> Framing:
        """The framing of both directions."""

    def is_ignored(self, to_nas: Pdu) -> bool:
        """Whether a unit shows that its connection carries no writes; the rest of it is then ignored."""

    def command(self, to_nas: Pdu) -> Command | int | None:
        """The command in a unit; the mere tag if it changes nothing; None without a command."""

    def answer(self, from_nas: Pdu) -> Answer | None:
        """The answer in a unit, if any."""
