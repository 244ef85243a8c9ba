"""The table of blocks, the program's notes, and the words about the blocks that no recovery ran."""

from __future__ import annotations

import pytest

from torture.errors import HarnessError
from torture.facts.zfs.blocks import Blocks

# Of the program with 2.3.9's library.
TABLE = b"""\
414d8d\tspa.c:5515\tspa_ld_claim_log_blocks
41b028\tspa.c:2769\tspa_claim_notify
41b036\tspa.c:2769\tspa_claim_notify
41b040\tspa.c:2767\tspa_claim_notify
43901c\tzil.c:4328\tzil_replay
43903f\tzil.c:4336\tzil_replay
4390a7\tzil.c:4350\tzil_replay
43915f\tzil.c:4363\tzil_replaying
"""
CODE_END = 0x4391FF


def notes(*addresses: int) -> bytes:
    """The bytes that the program keeps of these blocks."""
    kept = bytearray(CODE_END)
    for address in addresses:
        kept[address] = 1
    return bytes(kept)


def test_a_block_has_its_place_in_the_sources() -> None:
    blocks = Blocks.parse(TABLE).blocks
    assert len(blocks) == 8
    assert (blocks[0].address, blocks[0].file) == (0x414D8D, "spa.c")
    assert (blocks[4].line, blocks[4].function) == (4328, "zil_replay")


@pytest.mark.parametrize(
    "garbled",
    [
        b"",
        TABLE[:-1],
        TABLE[:-20],
        TABLE.replace(b"spa.c:5515", b"??:?"),
        TABLE.replace(b"\t", b" "),
        TABLE.replace(b"zil_replaying", b"zil\xff"),
        b"objdump: native-coverage: file format not recognized\n",
    ],
)
def test_another_table_is_refused(garbled: bytes) -> None:
    with pytest.raises(HarnessError, match="garbled or cut short"):
        Blocks.parse(garbled)


def test_the_notes_of_the_program_are_a_set() -> None:
    blocks = Blocks.parse(TABLE)
    read = blocks.of_notes
    assert read(notes()) == 0
    ran = read(notes(0x414D8D, 0x43915F, 0x400000))
    assert ran == 0b10000001
    assert [blocks.has(ran, place) for place in range(8)] == [True, *[False] * 6, True]
    assert blocks.by_file(ran) == {"spa.c": (4, 1), "zil.c": (4, 1)}
    with pytest.raises(IndexError):
        read(notes()[:0x43915F])


def test_a_set_survives_its_record() -> None:
    blocks = Blocks.parse(TABLE)
    assert blocks.read_set(f"{0b10000001:x}") == 0b10000001
    for text in ("", "zz", "-1", "100"):
        with pytest.raises(HarnessError, match="set of"):
            blocks.read_set(text)


def test_tables_differ_by_their_digests() -> None:
    other = TABLE.replace(b"414d8d", b"414d8e")
    assert Blocks.parse(TABLE).digest == Blocks.parse(TABLE).digest
    assert Blocks.parse(TABLE).digest != Blocks.parse(other).digest


def test_the_words_name_functions_and_lines_that_no_recovery_ran() -> None:
    blocks = Blocks.parse(TABLE)
    ran = blocks.of_notes(notes(0x414D8D, 0x41B028, 0x43901C, 0x43903F))
    assert "\n".join(blocks.in_words(ran)) == (
        "spa.c: 2 of 4 blocks were run\n"
        "spa.c: functions never run, with their blocks:\n"
        "spa.c: functions run in part:\n"
        "  spa_claim_notify: 1 of 3, not those of lines 2767 2769\n"
        "zil.c: 2 of 4 blocks were run\n"
        "zil.c: functions never run, with their blocks:\n"
        "  zil_replaying: 1\n"
        "zil.c: functions run in part:\n"
        "  zil_replay: 2 of 3, not those of lines 4350"
    )
