"""Folders of prepared machines, saved with their disks: made once, used by many trials."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from torture.errors import HarnessError
from torture.files import locked

_MAKE_DEADLINE_S = 600
_PARTIAL, _USED = ".partial", ".used"
_USED_S_MAX = 3600
"""Machines resume in seconds."""
_TRIES = 3
_UNUSED_DAYS_MAX = 14
_BYTES_MAX = 8 << 30
"""Bytes of all kept folders; a pool with its client takes 300 MB."""


class PreparedFolders:
    """One folder for each key, whole or not there, shared by the workers of a user."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextmanager
    def used(self, key: str, *, make: Callable[[Path], None]) -> Iterator[Path]:
        """The files of this key while they are used; raises as `ensure` does.

        They are links of its own: another trial may forget or remove the folder meanwhile.
        """
        links = self._directory / f".{key}-{secrets.token_hex(4)}{_USED}"
        try:
            self._link(key, links, make)
            yield links
        finally:
            shutil.rmtree(links, ignore_errors=True)

    def _link(self, key: str, links: Path, make: Callable[[Path], None]) -> None:
        for left in reversed(range(_TRIES)):
            folder = self.ensure(key, make=make)
            try:
                shutil.copytree(folder, links, copy_function=os.link)
                return
            except (OSError, shutil.Error) as error:  # forgotten at this moment
                shutil.rmtree(links, ignore_errors=True)
                if not left:
                    raise HarnessError(f"{folder} cannot be used: {error}") from error

    def ensure(self, key: str, *, make: Callable[[Path], None]) -> Path:
        """The folder of this key, made first when it is missing.

        One process makes it while others wait. Raises `HarnessError` when no folder can be made,
        and the exceptions of `make`.
        """
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise HarnessError(f"cannot write to {self._directory}: {error}") from error
        with locked(self._directory / f"{key}.lock", deadline_s=_MAKE_DEADLINE_S):
            folder = self._directory / key
            if not folder.exists():
                self._make(folder, make)
            os.utime(folder)  # used now, so the last to be removed
        return folder

    def forget(self, key: str) -> None:
        """Remove a folder that proved useless."""
        shutil.rmtree(self._directory / key, ignore_errors=True)

    def _make(self, folder: Path, make: Callable[[Path], None]) -> None:
        self._remove_unused()
        partial = folder.with_name(f".{folder.name}{_PARTIAL}")
        shutil.rmtree(partial, ignore_errors=True)  # left by a killed maker
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
        """Remove the oldest first, until the rest is young enough and there is room for more."""
        kept_bytes = 0
        oldest_s = time.time() - _UNUSED_DAYS_MAX * 86400
        folders = [path for path in self._directory.iterdir() if path.is_dir()]
        for folder in sorted(folders, key=_used_s, reverse=True):
            if folder.name.endswith(_USED):
                if _used_s(folder) < time.time() - _USED_S_MAX:
                    shutil.rmtree(folder, ignore_errors=True)  # left by a killed trial
                continue
            if folder.name.endswith(_PARTIAL):
                self._remove(folder)  # left by a killed maker, unless its process still runs
                continue
            kept_bytes += sum(_size(path) for path in folder.rglob("*"))
            if _used_s(folder) < oldest_s or kept_bytes > _BYTES_MAX:
                self._remove(folder)

    def _remove(self, folder: Path) -> None:
        """Remove a folder, unless a process uses it."""
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
    """Its size on the host: recordings and states are not sparse files."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
