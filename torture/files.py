"""Files that are there whole or not at all, and locks that the kernel gives back.

A lock is flock(2) on an open file: it goes with its holder's last descriptor, however that ends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from torture.deadlines import wait_for


@contextmanager
def whole_file(path: Path, *, alone: bool = False) -> Iterator[Path]:
    """A path beside `path` to write to; what is there at the end becomes `path`, durably.

    After an exception `path` is as it was. `alone`: nobody else writes it meanwhile, because a lock
    is held; what a killed writer left there is then gone with the next one. Raises `OSError`.
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
    """Make a symbolic link point somewhere; a reader finds the old one or the new, never none."""
    partial = link.with_name(f".{link.name}-{os.getpid()}")
    partial.unlink(missing_ok=True)
    partial.symlink_to(target)
    partial.replace(link)


def try_lock(file: int | IO[str]) -> bool:
    """Take the lock of an open file if nobody holds it; whether it was taken."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(
    path: Path,
    *,
    deadline_s: float,
    waiting: Callable[[], None] = lambda: None,
    hint: str = "",
) -> Iterator[None]:
    """Hold the lock of a file, which is made if it is not there; `waiting` hears that someone has it.

    Raises `DeadlineExceeded` when it does not come in time, `OSError` when there can be no such
    file, and whatever `waiting` raises: it is called after each try that fails.
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
            hint=hint or f"see who holds it: fuser -v {path}",
        )
        yield


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock of a file; nobody holds that of a file that is not there."""
    try:
        with path.open("r+") as file:
            return not try_lock(file)
    except FileNotFoundError:
        return False
