"""The block codec: every sector tells apart its own, old, foreign, zero and garbage."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vmimages.client.load.blocks import BLOCK_BYTES, SECTOR_BYTES, Encoder, decode_block

OURS = Encoder(7)
BLOCK = OURS.block(file=3, seq=42, index=5)


def decode(data: bytes) -> int | str | list[int | str]:
    return decode_block(data, trial=7, file=3, index=5)


@given(
    trial=st.integers(0, 2**64 - 1),
    file=st.integers(0, 2**40),
    seq=st.integers(1, 2**40),
    index=st.integers(0, 2**31),
)
def test_a_block_reads_back_as_its_operation(trial: int, file: int, seq: int, index: int) -> None:
    data = Encoder(trial).block(file=file, seq=seq, index=index)
    assert len(data) == BLOCK_BYTES
    assert decode_block(data, trial=trial, file=file, index=index) == seq


@given(at=st.integers(0, BLOCK_BYTES - 1), flip=st.integers(1, 255))
def test_any_changed_byte_makes_its_sector_garbage_and_no_other(at: int, flip: int) -> None:
    changed = bytearray(BLOCK)
    changed[at] ^= flip
    expected: list[int | str] = [42] * 8
    expected[at // SECTOR_BYTES] = "garbage"
    seq = int.from_bytes(changed[at - at % SECTOR_BYTES + 24 :][:8], "little")
    if at % SECTOR_BYTES in range(24, 32) and seq < 8192:  # a split may leave that, too
        expected[at // SECTOR_BYTES] = f"half:{seq}:42" if seq else "garbage"
    assert decode(bytes(changed)) == expected


def test_old_sectors_beside_new_ones_are_found_by_their_numbers() -> None:
    old = OURS.block(file=3, seq=41, index=5)
    assert decode(old[:1024] + BLOCK[1024:]) == [41, 41, 42, 42, 42, 42, 42, 42]


def test_a_block_that_belongs_elsewhere_says_where() -> None:
    assert decode(Encoder(8).block(file=3, seq=42, index=5)) == [
        f"foreign:8:3:5:{sector}:42" for sector in range(8)
    ]
    other_file = OURS.block(file=4, seq=42, index=5)
    assert decode(BLOCK[:SECTOR_BYTES] + other_file[SECTOR_BYTES:]) == [
        42,
        *(f"foreign:7:4:5:{sector}:42" for sector in range(1, 8)),
    ]
    shifted = BLOCK[SECTOR_BYTES:] + BLOCK[:SECTOR_BYTES]
    assert decode(shifted) == [f"foreign:7:3:5:{sector}:42" for sector in (1, 2, 3, 4, 5, 6, 7, 0)]


def test_zeros_and_noise_belong_to_no_write() -> None:
    assert decode(bytes(BLOCK_BYTES)) == "zero"
    assert decode(b"\xa5" * BLOCK_BYTES) == "garbage"
    assert decode(bytes(SECTOR_BYTES) + BLOCK[SECTOR_BYTES:]) == ["zero", *[42] * 7]


def test_a_block_at_the_end_of_a_file_may_be_short() -> None:
    assert decode(BLOCK[:1024]) == [42, 42]
    assert decode(BLOCK[:700]) == [42, "partial"]


def test_the_filler_does_not_compress_or_repeat() -> None:
    import zlib

    other = OURS.block(file=3, seq=43, index=5)
    assert len(zlib.compress(BLOCK)) > BLOCK_BYTES * 0.85
    assert len(zlib.compress(BLOCK + other)) > 2 * BLOCK_BYTES * 0.85
