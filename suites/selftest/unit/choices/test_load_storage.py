"""How the load writes: past the page cache or not, parts of blocks, and a sync that comes late.

The block codec, and the plans of loads.
"""

from __future__ import annotations

import copy
import errno
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmimages.client.load import plan
from vmimages.client.load.blocks import BLOCK_BYTES, SECTOR_BYTES, Encoder, decode_block
from vmimages.client.load.plan import Dice, Operation, Planner, busy_files, keepsakes
from vmimages.client.load.storage import FileStorage, file_name

DIRECT = plan.Operation(
    kind=plan.OVERWRITE, file=1, blocks=(1,), size_blocks=3, sync="fsync", is_direct=True
)
MADE = plan.Operation(kind=plan.CREATE, file=1, blocks=(0, 1, 2), size_blocks=3, sync="fsync")


def seen_in(directory: Path) -> list[Any]:
    data = (directory / file_name(1)).read_bytes()
    return [
        decode_block(data[at : at + BLOCK_BYTES], trial=11, file=1, index=at // BLOCK_BYTES)
        for at in range(0, len(data), BLOCK_BYTES)
    ]


@pytest.fixture
def storage(tmp_path: Path) -> FileStorage:
    """With one file of three blocks."""
    made = FileStorage(Encoder(11), str(tmp_path), 8)
    made.perform(MADE, 1)
    return made


def test_a_part_of_a_block_is_written_and_no_more(storage: FileStorage, tmp_path: Path) -> None:
    for seq, is_direct in ((2, False), (3, True)):
        part = copy.copy(DIRECT)
        part.sectors, part.is_direct = (seq, 2), is_direct
        storage.perform(part, seq)
    assert seen_in(tmp_path) == [1, [1, 1, 2, 3, 3, 1, 1, 1], 1]


@pytest.mark.parametrize("refusing", ["open", "pwrite"])
def test_where_nothing_passes_the_page_cache_it_is_used(
    storage: FileStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusing: str
) -> None:
    real_open, real_pwrite, refused = os.open, os.pwrite, []

    def opened(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags & os.O_DIRECT and refusing == "open":
            refused.append(path)
            raise OSError(errno.EINVAL, "Invalid argument")
        return real_open(path, flags & ~os.O_DIRECT, *more, **options)

    def written(descriptor: int, data: Any, offset: int) -> int:
        if refusing == "pwrite" and not refused:
            refused.append(offset)
            raise OSError(errno.EINVAL, "Invalid argument")
        return real_pwrite(descriptor, data, offset)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "pwrite", written)
    storage.perform(DIRECT, 2)
    assert refused
    assert seen_in(tmp_path) == [1, 2, 1]


def test_a_failure_past_the_page_cache_is_reported(
    storage: FileStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwrite
    failed: list[int] = []

    def failing_once(descriptor: int, data: Any, offset: int) -> int:
        if not failed:
            failed.append(offset)
            raise OSError(errno.EIO, "Input/output error")
        return real(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", failing_once)
    with pytest.raises(OSError, match="Input/output error"):
        storage.perform(DIRECT, 2)
    assert storage.step == "pwrite"


@pytest.mark.parametrize("is_direct", [False, True])
def test_only_direct_writes_pass_the_page_cache(
    storage: FileStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_direct: bool
) -> None:
    real, passed = os.open, []

    def opened(path: Any, flags: int, *more: Any, **options: Any) -> int:
        passed.append(bool(flags & os.O_DIRECT))
        return real(path, flags & ~os.O_DIRECT, *more, **options)

    monkeypatch.setattr(os, "open", opened)
    operation = copy.copy(DIRECT)
    operation.is_direct = is_direct
    storage.perform(operation, 2)
    assert any(passed) is is_direct
    assert seen_in(tmp_path) == [1, 2, 1]


def test_a_late_sync_waits_while_its_writes_are_on_their_way(
    storage: FileStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("pwrite", "posix_fadvise", "fsync"):
        real = getattr(os, name)

        def watched(*arguments: Any, name: str = name, real: Callable[..., Any] = real) -> Any:
            calls.append(name)
            return real(*arguments)

        monkeypatch.setattr(os, name, watched)
    monkeypatch.setattr(time, "sleep", lambda seconds: calls.append(f"{seconds * 1000:.0f} ms"))
    late = copy.copy(DIRECT)
    late.think_ms, late.is_direct = 70, False
    storage.perform(late, 2)
    assert calls == ["pwrite", "posix_fadvise", "70 ms", "fsync"]


@pytest.mark.parametrize(
    ("kind", "syncs"), [(plan.CREATE, 2), (plan.REPLACE, 2), (plan.OVERWRITE, 1), (plan.DSYNC, 2),
                        (plan.SCRIBBLE, 0), (plan.UNLINK, 1)],
)  # fmt: skip
def test_every_durable_call_is_timed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, syncs: int
) -> None:
    storage = FileStorage(Encoder(11), str(tmp_path), 8)
    if kind != plan.CREATE:
        storage.perform(MADE, 1)
    storage.take_times()
    slow_s = 0.02
    for name in ("fsync", "fdatasync"):
        real = getattr(os, name)

        def slow(descriptor: int, real: Callable[[int], None] = real) -> None:
            time.sleep(slow_s)
            real(descriptor)

        monkeypatch.setattr(os, name, slow)
    operation = copy.copy(MADE)
    operation.kind, operation.blocks, operation.think_ms = kind, (0, 2), 30
    operation.sync = plan.PUSH if kind == plan.SCRIBBLE else "fdatasync"
    storage.perform(operation, 2)
    sync_ms, thought_ms = storage.take_times()
    assert len(sync_ms) == syncs
    if kind not in (plan.DSYNC, plan.UNLINK):
        assert thought_ms >= 30
    if kind != plan.DSYNC:
        assert all(slow_s * 1000 <= ms for ms in sync_ms)
    assert storage.take_times() == ([], 0.0)


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


# The load's plan: drawn from the seed, and always possible.

OPERATIONS = 8000
CYCLE = plan.LOUD_OPERATIONS + plan.QUIET_OPERATIONS + plan.PATIENT_OPERATIONS


def job(**changes: object) -> dict[str, Any]:
    made: dict[str, Any] = {
        "seed": 99,
        "mode": "files",
        "writers": 3,
        "files_per_writer": 4,
        "blocks_per_file_max": 12,
        "keepsakes_per_writer": 100,
    }
    return made | changes


def draw(writer: int = 0, **changes: object) -> list[Operation]:
    planner = Planner(job(**changes), writer)
    return [planner.draw() for _ in range(OPERATIONS)]


def as_tuples(operations: list[Operation]) -> list[tuple[object, ...]]:
    return [
        (o.kind, o.file, o.blocks, o.sectors, o.size_blocks, o.sync, o.think_ms, o.is_direct)
        for o in operations
    ]


def phases(operations: list[Operation]) -> tuple[list[Operation], ...]:
    """Those of loud, quiet and patient phases."""
    ends = (0, plan.LOUD_OPERATIONS, plan.LOUD_OPERATIONS + plan.QUIET_OPERATIONS, CYCLE)
    of_phases: tuple[list[Operation], ...] = ([], [], [])
    for first in range(0, len(operations) - CYCLE, CYCLE):
        for phase, start, end in zip(of_phases, ends, ends[1:], strict=False):
            phase.extend(operations[first + start : first + end])
    return of_phases


def is_table(operation: Operation) -> bool:
    return operation.file in keepsakes(job()) and operation.size_blocks == 12


def test_the_dice_are_splitmix64() -> None:
    # The first outputs for seed 1234567, as published with the algorithm.
    dice = Dice(1234567)
    assert [dice.roll() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    assert as_tuples(draw()) == as_tuples(draw())
    assert as_tuples(draw()) != as_tuples(draw(seed=100))
    assert as_tuples(draw(writer=0)) != as_tuples(draw(writer=1))


@pytest.mark.parametrize("mode", ["files", "raw"])
def test_every_operation_is_possible_on_the_files_that_earlier_ones_left(mode: str) -> None:
    sizes: dict[int, int] = {}
    for operation in draw(mode=mode):
        size = sizes.get(operation.file)
        if operation.kind == plan.CREATE:
            assert size is None
            assert operation.blocks == tuple(range(operation.size_blocks))
        else:
            assert size is not None, operation.kind
        if operation.kind == plan.APPEND:
            assert operation.blocks == tuple(range(size or 0, operation.size_blocks))
        if operation.kind in (plan.OVERWRITE, plan.DSYNC, plan.SCRIBBLE):
            assert operation.size_blocks == size
            assert operation.blocks
            assert max(operation.blocks) < operation.size_blocks
            assert list(operation.blocks) == sorted(set(operation.blocks))
        assert operation.size_blocks <= 12
        sizes[operation.file] = operation.size_blocks
        if operation.kind == plan.UNLINK:
            del sizes[operation.file]


def test_each_kind_of_operation_has_its_share() -> None:
    kinds = Counter(operation.kind for operation in draw())
    assert set(kinds) == {
        plan.OVERWRITE,
        plan.DSYNC,
        plan.APPEND,
        plan.REPLACE,
        plan.CREATE,
        plan.UNLINK,
        plan.SCRIBBLE,
    }
    assert min(kinds.values()) > OPERATIONS * 0.005


@pytest.mark.parametrize("mode", ["files", "raw"])
def test_writers_share_no_file_and_the_busy_ones_are_all_used(mode: str) -> None:
    touched = [{operation.file for operation in draw(writer=w, mode=mode)} for w in range(3)]
    assert not touched[0] & touched[1]
    assert not touched[0] & touched[2]
    assert not touched[1] & touched[2]
    assert set(busy_files(job())) <= set.union(*touched)


@pytest.mark.parametrize("mode", ["files", "raw"])
def test_a_keepsake_is_made_scribbled_on_synced_and_left_alone(mode: str) -> None:
    kinds: dict[int, list[str]] = {}
    for operation in draw(mode=mode):
        if operation.file in keepsakes(job()) and not is_table(operation):
            kinds.setdefault(operation.file, []).append(operation.kind)
            assert operation.is_last == (len(kinds[operation.file]) == 3)
    assert len(kinds) > 40
    whole = [plan.CREATE, plan.SCRIBBLE, plan.OVERWRITE]
    assert all(life == whole[: len(life)] for life in kinds.values())
    assert sum(life == whole for life in kinds.values()) > len(kinds) * 0.8


@pytest.mark.parametrize("mode", ["files", "raw"])
def test_the_origin_of_a_keepsake_stays_in_its_last_block(mode: str) -> None:
    written = Counter(
        (operation.file, block)
        for operation in draw(mode=mode)
        if operation.file in keepsakes(job()) and not is_table(operation)
        for block in (*operation.blocks, operation.size_blocks)
    )
    sizes = {file: max(b for f, b in written if f == file) for file, _ in written}
    assert all(written[file, size - 1] == 1 for file, size in sizes.items())


@pytest.mark.parametrize("mode", ["files", "raw"])
def test_a_tables_rows_are_written_once_and_its_end_is_a_sync(mode: str) -> None:
    tables: dict[int, list[Operation]] = {}
    for operation in draw(mode=mode):
        if is_table(operation):
            tables.setdefault(operation.file, []).append(operation)
    assert len(tables) > 10
    for made, *rows in tables.values():
        assert (made.kind, made.blocks) == (plan.CREATE, tuple(range(12)))
        assert [block for row in rows for block in row.blocks] == sorted(
            {block for row in rows for block in row.blocks}
        )
        for row in rows:
            assert row.is_last == (row.blocks[-1] == 11)
            assert not row.is_last or row.kind == plan.OVERWRITE


@pytest.mark.parametrize("mode", ["files", "raw"])
def test_rows_are_written_out_and_synced_together_and_late(mode: str) -> None:
    _, _, patient = phases(draw(mode=mode, keepsakes_per_writer=2000))
    kinds = Counter(operation.kind for operation in patient)
    assert set(kinds) == {plan.CREATE, plan.SCRIBBLE, plan.OVERWRITE}
    for place, operation in enumerate(patient):
        if operation.kind == plan.OVERWRITE:
            assert plan.THINK_MS_MIN <= operation.think_ms <= plan.THINK_MS_MAX
            assert (place + 1) % plan.TRANSACTION_OPERATIONS == 0 or operation.is_last
        elif operation.kind == plan.SCRIBBLE:
            assert (place + 1) % plan.TRANSACTION_OPERATIONS
            assert operation.sync == plan.PUSH
            assert 0 < operation.think_ms < plan.THINK_MS_MAX
    assert 0.3 < sum(operation.is_direct for operation in patient) / len(patient) < 0.7


def test_without_keepsakes_a_patient_phase_goes_on_with_the_busy_files() -> None:
    _, _, patient = phases(draw(keepsakes_per_writer=0))
    assert all(operation.file in busy_files(job()) for operation in patient)
    late = [operation for operation in patient if operation.think_ms]
    assert len(late) > len(patient) * 0.8


def test_some_overwrites_are_of_parts_of_a_block() -> None:
    operations = [o for o in draw() if o.kind in (plan.OVERWRITE, plan.DSYNC, plan.SCRIBBLE)]
    parts = [operation for operation in operations if operation.sectors is not None]
    assert 0.05 < len(parts) / len(operations) < 0.3
    assert {operation.kind for operation in parts} == {plan.OVERWRITE, plan.DSYNC, plan.SCRIBBLE}
    for operation in parts:
        assert operation.sectors is not None
        first, count = operation.sectors
        assert 1 <= count <= 4
        assert 0 <= first <= 8 - count
        assert len(operation.blocks) == 1


def test_writers_meet_where_a_phase_begins() -> None:
    planner = Planner(job(), 0)
    met = []
    for place in range(2 * CYCLE):
        planner.draw()
        if planner.is_new_phase:
            met.append(place)
    quiet, patient = plan.LOUD_OPERATIONS, plan.LOUD_OPERATIONS + plan.QUIET_OPERATIONS
    assert met == [0, quiet, patient, CYCLE, CYCLE + quiet, CYCLE + patient]


def test_in_a_quiet_phase_no_writer_syncs() -> None:
    operations = draw()
    for first in range(plan.LOUD_OPERATIONS, OPERATIONS, CYCLE):
        quiet = operations[first : first + plan.QUIET_OPERATIONS]
        synced = [o for o in quiet if o.kind != plan.SCRIBBLE]
        # Only a busy file that does not exist must be made before it can be scribbled on.
        assert all(o.kind == plan.CREATE for o in synced)
        assert len(synced) <= 4
