"""Pairs the questions and answers of one protocol as they pass the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from torture.errors import HarnessError
from torture.facts.wire.frames import Flow, Frame, Segment, segments_in
from torture.facts.wire.pdus import Framing, Pdu, PduSplitter, Stream

Question = TypeVar("Question")
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange(Generic[Question, Answer]):
    """A question and its answer, by the host's clock.

    `submitted_ns` is when the first byte of the question passes, `completed_ns` when the answer does. So
    no write is due before its promise, or for longer than it was under way.
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
