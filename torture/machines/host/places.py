"""Files at a path or at any URL that fsspec knows; a plain path needs only the standard library."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
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
    """A file at a path or URL. One that is written appears whole or not at all, unless the host dies.

    The file of a URL is a local copy meanwhile. Raises `HarnessError` when it cannot be opened, read or
    written.
    """
    try:
        if not is_local(place):
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder) / "copy"
                if mode == "rb":
                    _transfer(place, lambda files, path: files.get_file(path, str(copy)), hint)
                with copy.open(mode) as file:
                    yield file
                if mode != "rb":
                    _transfer(place, partial(_upload, copy), hint)
            return
        path = _path(place)
        if mode == "rb":
            with path.open("rb") as file:
                yield file
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as unfinished, unfinished.open("wb") as file:
                yield file
    except (OSError, ValueError) as error:
        raise HarnessError(f"{place}: {error}", hint=hint) from error


def _upload(copy: Path, files: Any, path: str) -> None:
    files.makedirs(path.rpartition("/")[0], exist_ok=True)
    try:
        files.put_file(str(copy), path)
    except BaseException:
        with suppress(Exception):  # the first error says more
            files.rm_file(path)
        raise


def _transfer(place: str, act: Callable[[Any, str], object], hint: str) -> None:
    """Act with the filesystem of a URL, and the path there; any error is a `HarnessError`."""
    fsspec = _fsspec(place)
    try:
        act(*fsspec.core.url_to_fs(place))
    except FileNotFoundError as error:
        raise HarnessError(f"{place} is not there", hint=hint) from error
    except Exception as error:
        # of as many kinds as there are protocols
        words = str(error) or type(error).__name__
        raise HarnessError(f"{place}: {words}", hint=hint) from error


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
