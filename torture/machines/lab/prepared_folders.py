"""Folders of what was prepared once and is used by many trials: machines saved with their disks."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from torture.errors import HarnessError
from torture.files import locked

_MAKE_DEADLINE_S = 600
_PARTIAL = ".partial"
_UNUSED_DAYS_MAX = 14
_BYTES_MAX = 8 << 30
"""Of all that is kept; a pool with its client takes 300 MB."""


class PreparedFolders:
    """One folder for each key, whole or not there, shared by the workers of a user."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def ensure(self, key: str, *, make: Callable[[Path], None]) -> Path:
        """The folder of this key, made first when it is not there.

        One process makes it while others wait. Raises `HarnessError` when there can be none, and what
        `make` raises.
        """
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise HarnessError(f"nothing can be kept in {self._directory}: {error}") from error
        with locked(self._directory / f"{key}.lock", deadline_s=_MAKE_DEADLINE_S):
            folder = self._directory / key
            if not folder.exists():
                self._make(folder, make)
            os.utime(folder)  # so it is the last to be removed
        return folder

    def forget(self, key: str) -> None:
        """Remove what turned out to be of no use."""
        shutil.rmtree(self._directory / key, ignore_errors=True)

    def _make(self, folder: Path, make: Callable[[Path], None]) -> None:
        self._remove_unused()
        partial = folder.with_name(f".{folder.name}{_PARTIAL}")
        shutil.rmtree(partial, ignore_errors=True)  # of a maker that was killed
        try:
            partial.mkdir(mode=0o700)
            make(partial)
            partial.rename(folder)
        except OSError as error:
            raise HarnessError(
                f"{folder} cannot be made: {error}", hint=f"df -h {self._directory}"
            ) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _remove_unused(self) -> None:
        """The oldest first, until what is left is young enough and there is room for more."""
        kept_bytes = 0
        oldest_s = time.time() - _UNUSED_DAYS_MAX * 86400
        folders = [path for path in self._directory.iterdir() if path.is_dir()]
        for folder in sorted(folders, key=_used_s, reverse=True):
            if folder.name.endswith(_PARTIAL):
                self._remove(folder)  # of a maker that was killed, unless it is still at it
                continue
            kept_bytes += sum(_size(path) for path in folder.rglob("*"))
            if _used_s(folder) < oldest_s or kept_bytes > _BYTES_MAX:
                self._remove(folder)

    def _remove(self, folder: Path) -> None:
        """Unless somebody uses it."""
        key = folder.name.removeprefix(".").removesuffix(_PARTIAL)
        try:
            with locked(self._directory / f"{key}.lock", deadline_s=0):
                shutil.rmtree(folder, ignore_errors=True)
        except HarnessError:
            return


def _used_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _size(path: Path) -> int:
    """What it takes on the host: recordings and states are no sparse files."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
