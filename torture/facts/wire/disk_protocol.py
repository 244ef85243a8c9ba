"""What has to be known of a protocol by which a disk is spoken to over TCP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torture.facts.evidence.block_requests import BlockKind
from torture.facts.wire.pdus import Framing, Pdu


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A write or a flush that was sent, by the tag with which it will be answered."""

    tag: int
    kind: BlockKind
    first_sector: int = 0
    sectors: int = 0
    is_forced: bool = False
    """FUA: it may be answered when it is durable, and not before."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """That a command is done."""

    tag: int
    is_good: bool


class DiskProtocol(Protocol):
    """How a disk is spoken to over TCP."""

    @property
    def port(self) -> int:
        """Of the NAS."""

    @property
    def framing(self) -> Framing:
        """Of both directions."""

    def is_left_out(self, to_nas: Pdu) -> bool:
        """Whether a unit says that its connection carries no writes: it is heard no more."""

    def command(self, to_nas: Pdu) -> Command | int | None:
        """What a unit asks for; the mere tag of what changes nothing; None where it is no command."""

    def answer(self, from_nas: Pdu) -> Answer | None:
        """What a unit answers, if anything."""
