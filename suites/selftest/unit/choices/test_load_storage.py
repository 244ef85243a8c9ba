"""How the load writes: past the page cache or not, parts of blocks, and a sync that comes late."""

from __future__ import annotations

import copy
import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vmimages.client.load import plan
from vmimages.client.load.blocks import BLOCK_BYTES, Encoder, decode_block
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
