"""Files at a path or at any URL that fsspec knows; a plain path needs only the standard library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from torture.errors import HarnessError
from torture.files import whole_file

_HINT = "name a folder that can be written, or a URL of fsspec"


def is_local(place: str) -> bool:
    """Whether a place is a folder, which needs no fsspec."""
    return "://" not in place or place.startswith("file://")


@contextmanager
def opened_place(place: str, mode: str, *, hint: str = _HINT) -> Iterator[IO[bytes]]:
    """A file at a path or URL; one that is written appears whole or not at all.

    Raises `HarnessError` when it cannot be opened, read or written.
    """
    try:
        if is_local(place):
            path = _path(place)
            if mode == "rb":
                with path.open("rb") as file:
                    yield file
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                with whole_file(path) as partial, partial.open("wb") as file:
                    yield file
            return
        with _fsspec(place).open(place, mode) as file:
            yield file
    except (OSError, ValueError) as error:
        raise HarnessError(f"{place}: {error}", hint=hint) from error


def remove_place(place: str) -> None:
    """Remove a file at a path or URL; raises `HarnessError` when that fails."""
    try:
        if is_local(place):
            _path(place).unlink(missing_ok=True)
        else:
            filesystem, path = _fsspec(place).core.url_to_fs(place)
            filesystem.rm_file(path)
    except (OSError, ValueError) as error:
        raise HarnessError(f"{place}: {error}", hint=_HINT) from error


def _path(place: str) -> Path:
    return Path(place.removeprefix("file://"))


def _fsspec(place: str) -> Any:
    try:
        import fsspec
    except ImportError as error:
        raise HarnessError(
            f"{place} needs fsspec: {error}", hint="tools/run --setup-only --workers dask"
        ) from error
    return fsspec
