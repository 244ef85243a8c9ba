"""From TCP segments to the units of a protocol, and to its pairs of question and answer.

Each unit begins with its length. Segments may come twice, late or never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from torture.errors import HarnessError
from torture.facts.wire.frames import Flow, Frame, Segment, segments_in

_NUMBERS = 1 << 32
"""Sequence numbers wrap after this many bytes (RFC 9293, 3.4)."""
_AHEAD_MAX = 1024
"""So many segments after a gap, the missing bytes were never captured, and will not be sent again."""


def _distance(start: int, to: int) -> int:
    """The distance from one sequence number to another; negative if that came before."""
    return (to - start + _NUMBERS // 2) % _NUMBERS - _NUMBERS // 2


@dataclass(kw_only=True)
class Stream:
    """One direction of a connection, from its first byte on.

    A byte is returned once all bytes before it are; after a byte that was never captured, none is.
    """

    next_sequence: int
    is_lost: bool = False
    _ahead: dict[int, bytes] = field(default_factory=dict)
    """Early segments, by sequence number."""

    def feed(self, sequence: int, content: bytes) -> bytes:
        """Add a segment; returns the bytes that are in order now."""
        if self.is_lost:
            return b""
        if len(self._ahead.get(sequence, b"")) < len(content):
            self._ahead[sequence] = content
        in_order = bytearray()
        while (begin := self._next_piece()) is not None:
            piece = self._ahead.pop(begin)
            new = piece[_distance(begin, self.next_sequence) :]
            self.next_sequence = (self.next_sequence + len(new)) % _NUMBERS
            in_order += new
        if len(self._ahead) > _AHEAD_MAX:
            self.is_lost = True
            self._ahead.clear()
        return bytes(in_order)

    def _next_piece(self) -> int | None:
        """The sequence number of a segment that is not after a gap."""
        return next((x for x in self._ahead if _distance(self.next_sequence, x) <= 0), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Framing:
    """The lengths of a protocol's units."""

    base_bytes: int
    """This many first bytes of a unit state its length; no unit is shorter."""
    length_of: Callable[[bytes], int | None]
    """The length of a unit with these first bytes, its data included; None if no unit begins so."""
    head_bytes: int
    """This many first bytes of a unit are kept, if it is that long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pdu:
    """The head of a unit, and when its first byte and the head's last byte passed."""

    head: bytes
    begun_ns: int
    known_ns: int


class PduSplitter:
    """Splits one stream; `is_lost` once bytes in it begin no unit: then it yields no more."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self.is_lost = False
        self._begin()

    def _begin(self) -> None:
        self._head = bytearray()
        self._wanted = self._framing.base_bytes
        self._length: int | None = None
        self._to_skip = 0
        self._begun_ns = 0

    def feed(self, content: bytes, *, time_ns: int) -> Iterator[Pdu]:
        """The units whose heads are complete now; `content` passed at this time."""
        at = 0
        while at < len(content) and not self.is_lost:
            if self._to_skip:
                skipped = min(self._to_skip, len(content) - at)
                self._to_skip -= skipped
                at += skipped
                continue
            if not self._head:
                self._begun_ns = time_ns
            piece = content[at : at + self._wanted - len(self._head)]
            self._head += piece
            at += len(piece)
            if len(self._head) == self._wanted and (pdu := self._known(time_ns)) is not None:
                yield pdu

    def _known(self, time_ns: int) -> Pdu | None:
        """The unit, if its head is complete; the rest of the unit is skipped."""
        head = bytes(self._head)
        if self._length is None:
            self._length = self._framing.length_of(head)
            if self._length is None or self._length < len(head):
                self.is_lost = True
                return None
            self._wanted = max(min(self._length, self._framing.head_bytes), len(head))
        if len(head) < self._wanted:
            return None
        pdu = Pdu(head=head, begun_ns=self._begun_ns, known_ns=time_ns)
        left = self._length - len(head)
        self._begin()
        self._to_skip = left
        return pdu


Question = TypeVar("Question")
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange(Generic[Question, Answer]):
    """A question and its answer, by the host's clock.

    `submitted_ns` is when the first byte of the question passes, `completed_ns` when the answer does. A
    write is due when its answer leaves the NAS.
    """

    tag: int
    question: Question
    answer: Answer
    submitted_ns: int
    completed_ns: int


def exchanges_in(
    frames: Iterable[Frame],
    *,
    port: int,
    framing: Framing,
    asked: Callable[[Pdu], Iterable[tuple[int, Question | None]]],
    answered: Callable[[Pdu], Iterable[tuple[int, Answer]]],
    is_ignored: Callable[[Pdu], bool] = lambda _: False,
) -> Iterator[Exchange[Question, Answer]]:
    """The exchanges with this port of the NAS, in the order of their answers.

    `asked` and `answered` give the tags in a unit; a question without a promise is None. `is_ignored`
    ends the reading of a connection. Connections whose beginning was not captured are left out, and so
    are all bytes behind a gap. Raises `HarnessError` for a unit that does not begin like one of the
    protocol. The rest of the connection is then unreadable, and skipping it would look like a NAS without
    promises.
    """
    flows: dict[Flow, _Direction] = {}
    open_questions: dict[Flow, dict[int, tuple[Question, int]]] = {}
    for segment in segments_in(frames):
        flow = segment.flow
        if port not in (flow.sender[1], flow.receiver[1]):
            continue  # another protocol
        if segment.is_first:
            flows[flow] = _Direction(after=segment.sequence, framing=framing)
            open_questions.pop(flow if flow.receiver[1] == port else flow.back, None)
            continue
        if (direction := flows.get(flow)) is None:
            continue
        for pdu in direction.feed(segment):
            if flow.receiver[1] == port:
                if is_ignored(pdu):
                    del flows[flow]
                    break
                under_way = open_questions.setdefault(flow, {})
                for tag, question in asked(pdu):
                    under_way.pop(tag, None)
                    if question is not None:
                        under_way[tag] = (question, pdu.begun_ns)
                continue
            for tag, answer in answered(pdu):
                known = open_questions.get(flow.back, {}).pop(tag, None)
                if known is not None:
                    yield Exchange(
                        tag=tag,
                        question=known[0],
                        answer=answer,
                        submitted_ns=known[1],
                        completed_ns=pdu.known_ns,
                    )


class _Direction:
    def __init__(self, *, after: int, framing: Framing) -> None:
        self._stream = Stream(next_sequence=after + 1)
        self._splitter = PduSplitter(framing)

    def feed(self, segment: Segment) -> Iterator[Pdu]:
        in_order = self._stream.feed(segment.sequence, segment.content)
        yield from self._splitter.feed(in_order, time_ns=segment.time_ns)
        if self._splitter.is_lost:
            raise HarnessError(
                f"the bytes on the wire at {segment.time_ns} ns are not the beginning of a protocol unit",
                hint="tshark -r wire-1.pcap, beside the recordings of the trial",
            )
