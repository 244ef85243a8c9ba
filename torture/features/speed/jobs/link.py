"""The link between a NAS and all others: its rate and its round trip, also in slow motion.

In slow motion of N everything modelled takes N times as long, and a measured time is divided by N. An
emulated processor is too slow beside a modelled link at its true speed. Beside a slow one it is not.
The product of rate and delay stays, and so does each buffer and window in bytes.

A round trip is that of cards, their interrupts, one switch and short cables. The kernels' own work
comes on top: it is done in the guests. A frame's time on the wire comes on top, too.
"""

from __future__ import annotations

from enum import StrEnum

from torture.machines.lab.network.wire import Pace


class Link(StrEnum):
    """A kind of link. Its absence is the host's own speed."""

    GBE1 = "gbe1"
    """1 Gb/s, 200 us.

    A switch takes 10 to 30 us, and a card 2.5 to 32 us at each passage. The source is table 1 of
    Rumble et al., "It's Time for Low Latency", HotOS 2011. Two and four passages are 30 to 188 us. A
    card's interrupts alone may be 50 to 250 us apart: Linux `e1000e.rst`, `InterruptThrottleRate`, has
    4000 to 20000 a second by default."""
    GBE10 = "gbe10"
    """10 Gb/s, 50 us: cards at the lower end of the same table, and a switch that cuts through.

    The rest is the interrupts' moderation."""
    GBE25 = "gbe25"
    """25 Gb/s, 30 us: the same with newer cards."""
    FC4 = "fc4"
    """Fibre Channel at 4 Gb/s: 3.4 Gb/s and 30 us.

    4.25 Gbaud in the 8b/10b code are 3.4 Gb/s (INCITS FC-PI-2). Its frames' overhead leaves 400 MB/s,
    and so does Ethernet's with frames of 1514 bytes. A switch takes below 1 us (QLogic 59096-04, table
    3-3): the time is the adapters'."""

    @property
    def rate_bits_per_s(self) -> int:
        """Bits of a second on the wire, with the framing of frames."""
        return _RATES[self]

    @property
    def round_trip_us(self) -> int:
        """The delay of both directions together, for a frame without length."""
        return _ROUND_TRIPS[self]


_RATES = {
    Link.GBE1: 1_000_000_000,
    Link.GBE10: 10_000_000_000,
    Link.GBE25: 25_000_000_000,
    Link.FC4: 3_400_000_000,
}
_ROUND_TRIPS = {Link.GBE1: 200, Link.GBE10: 50, Link.GBE25: 30, Link.FC4: 30}


def slowed(link: Link, n: int) -> Pace:
    """The link in slow motion of `n`; 1 is its true speed. Raises `ValueError` for a smaller `n`."""
    if n < 1:
        raise ValueError(f"slow motion must be at least 1, not {n}")
    return Pace(
        rate_bits_per_s=round(link.rate_bits_per_s / n), one_way_us=link.round_trip_us * n // 2
    )
