"""Frames, streams and units: late, doubled, truncated or missing bytes yield no invented unit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torture.facts.wire.frames import Frame, FrameFile, read_frames, segments_in
from torture.facts.wire.pdus import Framing, PduSplitter, Stream

LENGTH_FIRST = Framing(base_bytes=2, length_of=lambda head: int(head[0]) or None, head_bytes=4)
"""A unit's first byte is its length."""


def frame(text: bytes, time_ns: int = 1) -> Frame:
    return Frame(time_ns=time_ns, content=text)


@given(st.lists(st.tuples(st.integers(0, 2**61), st.binary(max_size=90)), max_size=5))
def test_a_file_has_the_frames_and_their_times_to_the_nanosecond(
    tmp_path_factory: pytest.TempPathFactory, passed: Sequence[tuple[int, bytes]]
) -> None:
    file = tmp_path_factory.mktemp("frames") / "wire.pcap"
    frames = [frame(content, time_ns % (2**32 * 10**9)) for time_ns, content in passed]
    writer = FrameFile(file)
    writer.write(frames)
    writer.close()
    assert list(read_frames(file)) == frames


@given(st.binary(max_size=200))
def test_a_file_of_anything_is_no_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.mktemp("frames") / "wire.pcap"
    file.write_bytes(content)
    frames = list(read_frames(file))
    assert all(isinstance(segment.sequence, int) for segment in segments_in(frames))


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="wire"):
        list(read_frames(tmp_path / "wire.pcap"))


@given(
    st.binary(min_size=1, max_size=60),
    st.sampled_from([0, 7, 2**32 - 20]),
    st.data(),
)
def test_bytes_come_in_order_although_segments_come_twice_or_late(
    content: bytes, start: int, data: st.DataObject
) -> None:
    places = st.tuples(st.integers(0, len(content) - 1), st.integers(1, 20))
    pieces = data.draw(st.lists(places, max_size=30))
    stream, got, sent = Stream(next_sequence=start), b"", set[int]()
    for place, length in pieces:
        piece = content[place : place + length]
        got += stream.feed((start + place) % 2**32, piece)
        sent |= set(range(place, place + len(piece)))
        whole = next((x for x in range(len(content)) if x not in sent), len(content))
        assert got == content[:whole]


def test_early_segments_wait_where_the_numbers_wrap() -> None:
    stream = Stream(next_sequence=2**32 - 4)
    assert stream.feed(2, b"cd") == b""
    assert stream.feed(2**32 - 4, b"wxyzab") == b"wxyzabcd"


def test_a_stream_gives_up_when_missing_bytes_are_not_sent_again() -> None:
    stream = Stream(next_sequence=0)
    for number in range(1, 2000):
        assert stream.feed(number * 10, bytes(10)) == b""
    assert stream.is_lost
    assert stream.feed(0, bytes(10)) == b""


@given(st.lists(st.binary(min_size=1, max_size=8), max_size=8), st.lists(st.integers(1, 9)))
def test_units_are_cut_wherever_the_bytes_were_parted(
    bodies: Sequence[bytes], cuts: Sequence[int]
) -> None:
    units = [bytes([len(body) + 1]) + body for body in bodies]
    left, cutter, heads = b"".join(units), PduSplitter(LENGTH_FIRST), []
    for time_ns, length in enumerate([*cuts, 1000]):
        for pdu in cutter.feed(left[:length], time_ns=time_ns):
            assert pdu.begun_ns <= pdu.known_ns == time_ns
            heads.append(pdu.head)
        left = left[length:]
    assert heads == [unit[:4] for unit in units]
    assert not cutter.is_lost


def test_a_unit_is_known_with_its_head_and_begins_with_its_first_byte() -> None:
    cutter = PduSplitter(LENGTH_FIRST)
    unit = bytes([8, 1, 2, 3, 4, 5, 6, 7])
    assert list(cutter.feed(unit[:1], time_ns=10)) == []
    [pdu] = cutter.feed(unit[1:5], time_ns=20)
    assert (pdu.begun_ns, pdu.known_ns, pdu.head) == (10, 20, unit[:4])
    assert list(cutter.feed(unit[5:], time_ns=30)) == []


def test_after_bytes_that_begin_no_unit_none_is_found() -> None:
    cutter = PduSplitter(LENGTH_FIRST)
    assert list(cutter.feed(bytes([0, 0, 2, 0]), time_ns=0)) == []
    assert cutter.is_lost
    assert list(cutter.feed(bytes([2, 0]), time_ns=0)) == []


def test_a_unit_shorter_than_its_own_beginning_is_none() -> None:
    cutter = PduSplitter(LENGTH_FIRST)
    assert list(cutter.feed(bytes([1, 0, 2, 0]), time_ns=0)) == []
    assert cutter.is_lost
