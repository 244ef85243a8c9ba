"""Files that are there whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; what is there at the end becomes `path`, durably.

    After an exception `path` is as it was. Raises `OSError`.
    """
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
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
