"""Files that are whole or absent, and locks that the kernel releases.

A lock is flock(2) on an open file: it goes with its holder's last descriptor, however the holder
ends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from torture.deadlines import wait_for

CHECKOUT = Path(__file__).resolve().parents[1]
"""The path of this checkout."""


@contextmanager
def whole_file(path: Path, *, alone: bool = False) -> Iterator[Path]:
    """A path beside `path` to write to; its final content becomes `path`, durably.

    After an exception `path` is as it was. `alone`: a lock excludes all other writers, so the next
    writer replaces a killed writer's left-over. Raises `OSError`.
    """
    partial = path.with_name(f".{path.name}.partial" + ("" if alone else f"-{os.getpid()}"))
    try:
        partial.unlink(missing_ok=True)
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> Path:
    """Write a whole file; returns its path. Raises `OSError`."""
    with whole_file(path) as partial:
        partial.write_bytes(content)
    return path


def point_link(link: Path, target: str) -> None:
    """Make a symbolic link point to `target`; a reader finds the old link or the new one, never none."""
    partial = link.with_name(f".{link.name}-{os.getpid()}")
    partial.unlink(missing_ok=True)
    partial.symlink_to(target)
    partial.replace(link)


def try_lock(file: int | IO[str]) -> bool:
    """Take the lock of an open file if it is free; whether it was taken."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(
    path: Path, *, deadline_s: float, waiting: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold the lock of a file, made if absent; `waiting` is called while another holder has it.

    Raises `DeadlineExceeded` when it does not come in time, `OSError` when the file cannot be made,
    and every exception of `waiting`. Each failed try calls `waiting`.
    """
    with path.open("a+") as file:

        def attempt() -> bool | None:
            if try_lock(file):
                return True
            waiting()
            return None

        wait_for(
            attempt,
            what=f"lock on {path}",
            deadline_s=deadline_s,
            hint=f"see who holds it: fuser -v {path}",
        )
        yield


def is_locked(path: Path) -> bool:
    """Whether the lock of a file is held; the lock of an absent file is free."""
    try:
        with path.open("r+") as file:
            return not try_lock(file)
    except FileNotFoundError:
        return False
