"""The ledger of a load, and the evidence in a trial's folder that it is part of.

Blocks of the intent log: their pointers, and the chains that distinguish two boots of a NAS.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, log_block, uberblock
from suites.selftest.unit.pointing import BLOCK_BYTES, FIRST_BLOCK, pointer, pointing
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import (
    CUT,
    LEDGER,
    READBACK,
    SPEC,
    TOOLS,
    Step,
    ToolOutput,
    append_line,
    append_tool,
    load_evidence,
    write_document,
)
from torture.facts.evidence.ledger import (
    Begin,
    Cut,
    Done,
    End,
    Failed,
    Hello,
    OperationKind,
    cut_mark,
    parse_ledger,
    parse_line,
    reply_to,
    stamp,
)
from torture.facts.recording.intent_log import chains_in, log_blocks_in

HELLO = b'{"event":"hello","seq":0,"trial":7,"mode":"files","writers":3,"guest_ms":5}'
BEGIN = (
    b'{"event":"begin","seq":1,"writer":2,"op":"append","file":4,"blocks":[2,3],"size":4,'
    b'"sync":"fsync","guest_ms":6}'
)
DONE_WITH_NEXT = (
    b'{"event":"done","seq":1,"next":{"seq":9,"writer":2,"op":"unlink","file":4,"blocks":[],'
    b'"size":0,"sync":"fsync"},"guest_ms":8}'
)
FAILED = b'{"event":"failed","seq":9,"errno":5,"call":"fsync","guest_ms":9}'
END = b'{"event":"end","acknowledged":1,"failed":1,"stuck":[0],"guest_ms":10}'
LINES = (HELLO, BEGIN, DONE_WITH_NEXT, FAILED, END)
STORED = b"".join(stamp(line, 10.0 * at) for at, line in enumerate(LINES)) + cut_mark(77.1234)


@pytest.mark.parametrize("said", [b"", b',"tears_sectors":false', b',"tears_sectors":true'])
def test_an_older_ledger_may_say_whether_sectors_tear(said: bytes) -> None:
    """The cell's terms say it now."""
    older = parse_ledger(stamp(HELLO[:-1] + said + b"}", 0.0))
    assert (older.events, older.garbled) == (parse_ledger(stamp(HELLO, 0.0)).events, 0)


def test_every_event_is_read_back_in_order_with_the_hosts_clock() -> None:
    ledger = parse_ledger(STORED)
    append = Begin(
        t_ms=10.0,
        seq=1,
        writer=2,
        kind=OperationKind.APPEND,
        file=4,
        blocks=(2, 3),
        size_blocks=4,
    )
    unlink = Begin(
        t_ms=20.0, seq=9, writer=2, kind=OperationKind.UNLINK, file=4, blocks=(), size_blocks=0
    )
    assert ledger.events == (
        Hello(t_ms=0.0, trial=7, mode="files", writers=3),
        append,
        Done(t_ms=20.0, seq=1),
        unlink,
        Failed(t_ms=30.0, seq=9, errno=5, call="fsync"),
        End(t_ms=40.0, stuck=(0,)),
        Cut(t_ms=77.123),
    )
    assert (ledger.garbled, ledger.cut_ms) == (0, 77.123)


def test_a_part_of_a_block_is_its_first_sector_and_how_many() -> None:
    [begun] = parse_line(stamp(BEGIN[:-1] + b',"sectors":[5,2]}', 10.0))
    assert isinstance(begun, Begin)
    assert begun.sectors == range(5, 7)
    [whole] = parse_line(stamp(BEGIN[:-1] + b',"sectors":null}', 10.0))
    assert isinstance(whole, Begin)
    assert whole.sectors == range(8)
    with pytest.raises(ValueError, match="values"):
        parse_line(stamp(BEGIN[:-1] + b',"sectors":[5]}', 10.0))


def test_only_who_waits_is_answered_with_its_number() -> None:
    answers = [reply_to(line) for line in LINES]
    assert answers == [b"0\n", b"1\n", b"1\n", None, None]
    assert reply_to(b"no json") is None
    assert reply_to(b"[1]") is None


@given(cut=st.integers(0, len(STORED)))
def test_a_ledger_cut_off_anywhere_keeps_its_whole_lines(cut: int) -> None:
    whole = parse_ledger(STORED).events
    ledger = parse_ledger(STORED[:cut])
    assert ledger.events == whole[: len(ledger.events)]
    assert ledger.garbled == 0


@given(junk=st.binary(min_size=1, max_size=40), at=st.integers(0, len(LINES)))
def test_garbage_between_the_lines_is_counted_and_hides_nothing(junk: bytes, at: int) -> None:
    lines = STORED.splitlines(keepends=True)
    junk = b"\xff" + junk.replace(b"\n", b".")
    ledger = parse_ledger(b"".join([*lines[:at], junk + b"\n", *lines[at:]]))
    assert ledger.events == parse_ledger(STORED).events
    assert ledger.garbled == 1


@pytest.mark.parametrize(
    "line",
    [
        b'{"event":"done","t_ms":1}',
        b'{"event":"nonsense","t_ms":1}',
        b'{"event":"begin","seq":1,"t_ms":1}',
        b'{"event":"done","seq":1}',
        b'{"event":"done","seq":"x","t_ms":1}',
        BEGIN.replace(b"append", b"explode")[:-1] + b',"t_ms":1}',
        b"[]",
        b'{"event":"cut","t_ms":NaN}',
        b'{"event":"cut","t_ms":1e999}',
        b'{"event":"cut","t_ms":1' + b"0" * 400 + b"}",
        b'{"event":"done","seq":1,"t_ms":1,"sync_ms":[-Infinity]}',
    ],
)
def test_an_event_that_lacks_something_is_garbled(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_line(line)
    assert parse_ledger(line + b"\n").garbled == 1


def test_a_blank_line_is_nothing() -> None:
    assert parse_line(b"  \n") == ()


def test_a_guests_line_that_is_no_event_is_kept_as_it_came() -> None:
    stored = json.loads(stamp(b"\xffwhat", 3.0))
    assert stored == {"event": "garbled", "garbled": "\\xffwhat", "t_ms": 3.0}
    assert parse_ledger(stamp(b"\xffwhat", 3.0)).garbled == 1


# Evidence: what a trial's folder holds is read back as it was stored, whole or not.


def tool(step: Step, exit_code: int | None = 0) -> ToolOutput:
    return ToolOutput(
        step=step,
        vm="nas",
        name="zpool",
        argv=("zpool", "import"),
        exit_code=exit_code,
        stdout="out\n\x00\u2026",
        stderr="",
        duration_ms=12,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_document(tmp_path, SPEC, {"cell": "a-b", "seed": 3})
    return tmp_path


def test_stored_evidence_is_read_back(folder: Path) -> None:
    write_document(folder, CUT, {"t_ms": 5.0})
    write_document(folder, READBACK, "verbatim {")
    append_line(folder / LEDGER, cut_mark(5.0))
    outputs = (tool(Step.POOL_IMPORT), tool(Step.FS_CHECK, None), tool(Step.POOL_IMPORT, 1))
    for output in outputs:
        append_tool(folder, output)
    evidence = load_evidence(folder)
    assert evidence.spec == {"cell": "a-b", "seed": 3}
    assert evidence.cut == CutDocument(t_ms=5.0)
    assert evidence.ledger.cut_ms == 5.0
    assert evidence.tools == outputs
    assert evidence.readbacks == {READBACK: "verbatim {"}
    assert evidence.output(Step.POOL_IMPORT) == outputs[2]
    assert evidence.output(Step.FS_REPAIR) is None
    assert not list(folder.glob("*.partial"))


def test_missing_or_garbled_evidence_is_left_empty(folder: Path) -> None:
    (folder / CUT).write_bytes(b"\xff{")
    (folder / READBACK).write_bytes(b"caf\xff")
    append_tool(folder, tool(Step.POOL_IMPORT))
    with (folder / TOOLS).open("ab") as file:
        file.write(b'{"step": "fs-check", "exit_code": 0}\n[]\n{"step": "fs-mo')
    evidence = load_evidence(folder)
    assert evidence.cut == CutDocument()
    assert evidence.ledger.events == ()
    assert evidence.readbacks[READBACK] == "caf\\xff"
    assert len(evidence.tools) == 1
    assert evidence.garbled_tools == 3


def test_a_folder_without_a_trial_is_the_machinerys_fault(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="spec"):
        load_evidence(tmp_path)
    (tmp_path / SPEC).write_text("{")
    with pytest.raises(HarnessError, match="spec"):
        load_evidence(tmp_path)


RECORDED = Path(__file__).parents[2] / "recorded" / "audit" / "pointing-zil-block.json"
MIB = 1 << 20
PLACE = FIRST_BLOCK + 4 * MIB


def real() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(RECORDED.read_text())
    return content


def real_block() -> bytes:
    return zlib.decompress(base64.b64decode(real()["zlib"]))


def test_a_real_block_points_to_where_the_data_were_really_written() -> None:
    [block] = log_blocks_in(real_block())
    assert block.is_whole
    assert block.writes == ()
    assert len(block.pointed) == 2
    for write, seen in zip(block.pointed, real()["pointed"], strict=True):
        assert (write.offset_bytes, write.length_bytes) == (seen["offset"], seen["length"])
        assert write.txg == seen["txg"]
        [extent] = write.extents
        assert [[FIRST_BLOCK + extent.offset_bytes, extent.length_bytes]] == seen["written"]


@given(st.binary(max_size=300), st.integers(0, 600), st.integers(0, 4096))
def test_a_garbled_pointer_is_no_error(garbage: bytes, place: int, length: int) -> None:
    block = bytearray(real_block())
    block[place : place + len(garbage)] = garbage
    for found in log_blocks_in(bytes(block[:length])):
        assert len(found.pointed) <= 21, "more than there is room for"


def test_a_record_whose_data_are_zeroes_or_in_its_pointer_points_to_nothing() -> None:
    hole = bytes(48) + pointer(FIRST_BLOCK, txg=22)[48:]
    embedded = bytearray(pointer(PLACE, txg=22))
    embedded[52] |= 0x80  # bit 39 of its properties
    [block] = log_blocks_in(pointing((0, hole), (MIB, bytes(embedded))))
    assert block.pointed == ()
    assert block.writes == ((0, 512), (MIB, 512))


def test_a_write_by_pointer_is_one_of_the_whole_block() -> None:
    [block] = log_blocks_in(pointing((3 * BLOCK_BYTES + 512, pointer(PLACE, txg=22))))
    [write] = block.pointed
    assert (write.offset_bytes, write.length_bytes) == (3 * BLOCK_BYTES, BLOCK_BYTES)


# The chains of the intent logs distinguish two boots of a NAS.


def of_chain(first: int, second: int) -> bytes:
    block = bytearray(log_block((0, 512)))
    struct.pack_into("<QQQQ", block, 104, first, second, 81, 2)
    return bytes(block)


def test_each_chain_is_found_once_and_no_other_content_is_a_chain(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    story.write(BLOCK)
    story.write(of_chain(7, 8))
    story.write(uberblock(5))
    story.write(METADATA)
    story.write(of_chain(7, 8))
    assert chains_in(story.recorded()) == {(7, 8)}


def test_adjacent_blocks_in_one_write_are_both_found(tmp_path: Path) -> None:
    story = Story(folder=tmp_path)
    story.write(of_chain(7, 8) + of_chain(9, 8))
    assert chains_in(story.recorded()) == {(7, 8), (9, 8)}
