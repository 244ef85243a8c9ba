"""A protocol that carries a disk over TCP, and the requests in it: each command with its answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from torture.facts.evidence.requests import BlockKind, BlockRequest
from torture.facts.wire.frames import Frame
from torture.facts.wire.pdus import Exchange, Framing, Pdu, exchanges_in


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


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskWire:
    """The wire of a disk whose initiator is the client's own kernel."""

    protocol: DiskProtocol

    def requests(self, frames: Iterable[Frame], *, sector_bytes: int) -> tuple[BlockRequest, ...]:
        """The requests that the disk completed without an error, in the order of completion.

        Raises what `torture.facts.wire.pdus.exchanges_in` raises.
        """
        return tuple(
            _request(exchange, sector_bytes=sector_bytes)
            for exchange in exchanges_in(
                frames,
                port=self.protocol.port,
                framing=self.protocol.framing,
                asked=self._asked,
                answered=self._answered,
                is_ignored=self.protocol.is_ignored,
            )
            if exchange.answer.is_good
        )

    def _asked(self, pdu: Pdu) -> Iterator[tuple[int, Command | None]]:
        match self.protocol.command(pdu):
            case Command() as command:
                yield command.tag, command
            case int() as tag:
                yield tag, None

    def _answered(self, pdu: Pdu) -> Iterator[tuple[int, Answer]]:
        if (answer := self.protocol.answer(pdu)) is not None:
            yield answer.tag, answer


def _request(exchange: Exchange[Command, Answer], *, sector_bytes: int) -> BlockRequest:
    command = exchange.question
    return BlockRequest(
        kind=command.kind,
        submitted_ns=exchange.submitted_ns,
        completed_ns=exchange.completed_ns,
        offset_bytes=command.first_sector * sector_bytes,
        length_bytes=command.sectors * sector_bytes,
        is_forced=command.is_forced,
    )
