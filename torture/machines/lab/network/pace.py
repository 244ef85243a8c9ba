"""The numbers of a modelled link, and its traffic."""

from __future__ import annotations

from dataclasses import dataclass

from torture.facts.evidence.documents import Count, Document

FRAMING_BYTES = 24
"""Each Ethernet frame's share of the wire beyond its content, from destination to payload.

Preamble and start are 8 bytes, the check sequence 4, the gap 12 (IEEE 802.3, clauses 3 and 4)."""
FRAME_BYTES_MIN = 60
"""A shorter frame is padded (IEEE 802.3, 3.2.8: 64 bytes with the check sequence)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """The numbers of a link on this host."""

    rate_bits_per_s: int
    """Of each direction; 0: no limit."""
    one_way_us: int
    """From a frame's last bit on the wire until the other side has the frame."""

    def time_on_wire_us(self, frame_bytes: int) -> float:
        """How long a frame of this size keeps the wire busy."""
        if not self.rate_bits_per_s:
            return 0.0
        on_wire = max(frame_bytes, FRAME_BYTES_MIN) + FRAMING_BYTES
        return on_wire * 8 * 1_000_000 / self.rate_bits_per_s


class DirectionCounts(Document, frozen=True, kw_only=True):
    """The frames of one direction, and their bytes without framing."""

    frames: Count = 0
    """Those that arrived."""
    bytes: Count = 0
    drops: Count = 0
    """Frames for which the queue had no room, as in a switch."""
    missed: Count = 0
    """Frames that this host was too busy to take: the model has no such loss."""


class LinkCounts(Document, frozen=True, kw_only=True):
    """The traffic of a modelled link since it began."""

    from_nas: DirectionCounts = DirectionCounts()
    to_nas: DirectionCounts = DirectionCounts()

    @property
    def lost(self) -> int:
        """Frames that did not arrive, of both directions."""
        return sum(way.drops + way.missed for way in (self.from_nas, self.to_nas))
