"""A modelled link as a process between two taps. `native/wire.cpp` has the program and the model.

A program of our own, as the host's kernel may lack netem, and a user namespace cannot load it
(tc-netem(8)). The taps have no offloads. So the kernel cuts a guest's large segments into frames that
fit a real wire, before they pass (Linux `net/core/dev.c`, `validate_xmit_skb`).
"""

from __future__ import annotations

import json
import os
import select
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from torture.deadlines import truth, wait_for
from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.evidence.documents import Count, Document
from torture.machines.host.abilities import run_host
from torture.machines.host.native import native_program

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


WIRE_SOURCE = Path(__file__).parent / "native" / "wire.cpp"
QUEUE_FRAMES = 4000
"""For the kernel's queue in front of the program, in small frames. The queue of the model is in the
program. Both would drop where this one, 500 by default, is the shorter."""

_ANSWER_DEADLINE_S = 10
_END_DEADLINE_S = 10
_LINK_DEADLINE_S = 10
_TRAFFIC = Path("/proc/self/net/dev")
"""proc_pid_net(5): of the network namespace of this process."""
_TX_DROPS = 11


class Wire:
    """A wire between two taps of this namespace, which nothing else has open.

    It ends with the thread that started it. Raises `HarnessError` when it cannot be built or started.
    """

    def __init__(self, pace: Pace, *, to_nas: str, to_others: str) -> None:
        self._taps = (to_nas, to_others)
        self._process = subprocess.Popen(
            [
                str(native_program(WIRE_SOURCE)), to_nas, to_others,
                str(pace.rate_bits_per_s), str(pace.one_way_us),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        try:
            self._next_counts()  # it has opened both taps
        except BaseException:
            self.end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def check(self) -> None:
        """Raise `HarnessError` when the process has ended."""
        if (code := self._process.poll()) is not None:
            assert self._process.stderr is not None
            output = "" if self._process.stderr.closed else self._process.stderr.read().strip()
            raise HarnessError(f"the modelled link ended with {code}: {output}", hint="dmesg")

    def counts(self) -> LinkCounts:
        """All that passed so far; raises `HarnessError` when the process has ended or hangs."""
        self.check()
        assert self._process.stdin is not None
        try:
            os.write(self._process.stdin.fileno(), b"\n")
        except OSError as error:
            raise HarnessError(f"the modelled link takes no request: {error}") from error
        return self._next_counts()

    def end(self) -> None:
        """End it, with the frames on their way."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(_END_DEADLINE_S)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _next_counts(self) -> LinkCounts:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], _ANSWER_DEADLINE_S)[0]:
            raise DeadlineExceeded(f"no counts of the modelled link within {_ANSWER_DEADLINE_S} s")
        line = self._process.stdout.readline()
        if not line:
            self._process.wait(_END_DEADLINE_S)
            self.check()
        missed = [_missed_at(tap) for tap in self._taps]
        try:
            said = json.loads(line)
            return LinkCounts(
                from_nas=DirectionCounts.from_json(said["a_to_b"] | {"missed": missed[0]}),
                to_nas=DirectionCounts.from_json(said["b_to_a"] | {"missed": missed[1]}),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise HarnessError(f"the modelled link counts {line!r}: {error}") from error


def wait_for_link(*taps: str) -> None:
    """Return when the kernel takes frames for these taps, whose other ends are open.

    Until then it drops them all. It may see a new carrier up to a second late, since it handles the
    changes of all namespaces once a second (Linux `net/core/link_watch.c`).
    """
    wait_for(
        lambda: truth(all(_is_up(tap) for tap in taps)),
        what=f"link of {' and '.join(taps)}",
        deadline_s=_LINK_DEADLINE_S,
        poll_max_s=0.04,
    )


def _is_up(tap: str) -> bool:
    [link] = json.loads(run_host("ip", "-j", "link", "show", "dev", tap))
    return str(link["operstate"]) == "UP"


def _missed_at(tap: str) -> int:
    """Frames that the kernel dropped in front of the program."""
    for line in _TRAFFIC.read_text().splitlines():
        name, _, figures = line.partition(":")
        if name.strip() == tap:
            return int(figures.split()[_TX_DROPS])
    raise HarnessError(f"there is no tap {tap}")
