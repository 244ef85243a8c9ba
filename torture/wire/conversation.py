"""The requests of a disk, read off the wire: each command, and the answer that leaves the NAS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torture.errors import HarnessError
from torture.evidence.block_requests import BlockRequest
from torture.wire.disk_protocol import Command, DiskProtocol
from torture.wire.frames import Flow, Frame, Segment, segments_in
from torture.wire.pdus import Cutter, Framing, Pdu
from torture.wire.streams import Stream


def requests_on_wire(
    frames: Iterable[Frame], protocol: DiskProtocol, *, sector_bytes: int
) -> tuple[BlockRequest, ...]:
    """What the disk completed without an error, by the host's clock, in the order of completion.

    A request is submitted as the first byte of its command passes, and completed as its answer does: so
    nothing is due earlier than it was promised, or for longer than it was asked. Of a connection whose
    beginning did not pass nothing is told, and of one of which something did not pass, nothing from
    there on. Raises `HarnessError` where a unit begins like none of the protocol: what follows cannot
    be read, and silence looks like a disk that completed nothing.
    """
    return tuple(_requests(segments_in(frames), protocol, sector_bytes=sector_bytes))


def _requests(
    segments: Iterable[Segment], protocol: DiskProtocol, *, sector_bytes: int
) -> Iterator[BlockRequest]:
    flows: dict[Flow, _Direction] = {}
    asked: dict[Flow, dict[int, tuple[Command, int]]] = {}
    for segment in segments:
        flow, nas = segment.flow, protocol.port
        if nas not in (flow.sender[1], flow.receiver[1]):
            continue  # another protocol's
        if segment.is_first:
            flows[flow] = _Direction(after=segment.sequence, framing=protocol.framing)
            asked.pop(flow if flow.receiver[1] == nas else flow.back, None)
            continue
        if (direction := flows.get(flow)) is None:
            continue
        for pdu in direction.feed(segment):
            if flow.receiver[1] == nas:
                under_way = asked.setdefault(flow, {})
                if protocol.is_left_out(pdu):
                    del flows[flow]
                    break
                match protocol.command(pdu):
                    case Command() as command:
                        under_way[command.tag] = (command, pdu.begun_ns)
                    case int() as tag:
                        under_way.pop(tag, None)
            elif flow.sender[1] == nas and (answer := protocol.answer(pdu)) is not None:
                known = asked.get(flow.back, {}).pop(answer.tag, None)
                if known is not None and answer.is_good:
                    yield _request(*known, completed_ns=pdu.known_ns, sector_bytes=sector_bytes)


class _Direction:
    def __init__(self, *, after: int, framing: Framing) -> None:
        self._stream = Stream(next_sequence=after + 1)
        self._cutter = Cutter(framing)

    def feed(self, segment: Segment) -> Iterator[Pdu]:
        in_order = self._stream.feed(segment.sequence, segment.content)
        yield from self._cutter.feed(in_order, time_ns=segment.time_ns)
        if self._cutter.is_lost:
            raise HarnessError(
                f"what passed on the wire at {segment.time_ns} ns begins like no unit of its protocol",
                hint="tshark -r wire-1.pcap, beside the recordings of the trial",
            )


def _request(
    command: Command, submitted_ns: int, *, completed_ns: int, sector_bytes: int
) -> BlockRequest:
    return BlockRequest(
        kind=command.kind,
        submitted_ns=submitted_ns,
        completed_ns=completed_ns,
        offset_bytes=command.first_sector * sector_bytes,
        length_bytes=command.sectors * sector_bytes,
        is_forced=command.is_forced,
    )
