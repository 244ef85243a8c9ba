"""Saved states: a machine is booted once per image and host, saved, and resumed for each trial.

A NAS that boots in 10 s under emulation resumes in 0.5 s. The key of a state covers all its
dependencies: image, machine, emulator, processor.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from torture.errors import HarnessError
from torture.files import locked, whole_file
from torture.machines.host.abilities import Accelerator
from torture.machines.host.scratch import own_cache_root
from torture.machines.lab.agent import StateFault, fault_of_state
from torture.machines.lab.domains import MachineSpec, domain_xml
from torture.machines.lab.machine import Machine

_BOOT_AND_SAVE_DEADLINE_S = 300
_UNUSED_DAYS_MAX = 14


def warm_directory() -> Path:
    """Beside the images, or in the user's own cache."""
    return own_cache_root() / "warm"


class WarmStates:
    """The saved states in one directory, shared by the workers of a user."""

    def __init__(self, *, directory: Path, connection: Any, libvirt_root: Path) -> None:
        self._directory = directory
        self._connection = connection
        self._root = libvirt_root

    def key(self, spec: MachineSpec) -> str:
        """A key of everything on which this machine's state depends, without the paths of a trial."""
        placeless = replace(
            spec,
            console_log=Path("console.log"),
            port_socket=None if spec.port_socket is None else Path("port.sock"),
        )
        parts = [
            domain_xml(placeless),
            str(self._connection.getVersion()),
            str(self._connection.getLibVersion()),
            *(_identity(path) for path in (spec.kernel, spec.initrd, spec.root_image)),
            _processor() if spec.accelerator is Accelerator.KVM else "emulated",
        ]
        return f"{spec.name}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:20]}"

    def ensure(self, spec: MachineSpec, *, say: Callable[[str], None]) -> Path:
        """The saved state of this machine, made first when there is none.

        One process makes it while others wait. Raises `HarnessError` when it cannot be made.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = self._directory / f"{self.key(spec)}.state"
        lock = self._directory / f"{state.stem}.lock"
        with locked(lock, deadline_s=_BOOT_AND_SAVE_DEADLINE_S):
            if state.exists():
                os.utime(state)
                return state
            say(f"booting {spec.name} once, to resume it from then on")
            self._remove_unused()
            self._make(spec, state)
        return state

    def resume(
        self, machine: Machine, state: Path, *, deadline_s: float, say: Callable[[str], None]
    ) -> None:
        """Resume a machine from a saved state; delete a state that is itself the cause of a failure.

        Such a state would fail every trial to come. A state that is only suspected is deleted at
        the second failure in a row, of any worker: a new one costs a boot. Raises as
        `Machine.resume` does.
        """
        suspicion = _suspicion(state)
        try:
            machine.resume(state, deadline_s=deadline_s)
        except HarnessError as error:
            fault = fault_of_state(error)
            if fault is StateFault.CERTAIN or (fault is StateFault.POSSIBLE and suspicion.exists()):
                say(f"deleting the saved state of {machine.name}, which did not resume")
                state.unlink(missing_ok=True)
                suspicion.unlink(missing_ok=True)
            elif fault is StateFault.POSSIBLE:
                with suppress(OSError):  # a full disk would hide why the machine did not resume
                    suspicion.touch()
            raise
        suspicion.unlink(missing_ok=True)

    def _make(self, spec: MachineSpec, state: Path) -> None:
        machine = Machine(connection=self._connection, libvirt_root=self._root, spec=spec)
        try:
            machine.boot(deadline_s=_BOOT_AND_SAVE_DEADLINE_S)
            machine.must("sync", deadline_s=30)
            with whole_file(state, alone=True) as unfinished:
                machine.save(unfinished)
                _suspicion(state).unlink(missing_ok=True)
        except OSError as error:
            raise HarnessError(f"no saved state {state}: {error}") from error
        finally:
            machine.kill()

    def _remove_unused(self) -> None:
        oldest = time.time() - _UNUSED_DAYS_MAX * 86400
        for state in self._directory.glob("*.state"):
            if state.stat().st_mtime < oldest:
                state.unlink(missing_ok=True)
                _suspicion(state).unlink(missing_ok=True)


def _suspicion(state: Path) -> Path:
    """The file that records that the last resume from this state failed for an unknown reason."""
    return state.with_suffix(".suspected")


def _identity(path: Path) -> str:
    """A rebuilt image has the same path: a guest must not resume over another root."""
    stat = path.stat()
    return f"{stat.st_ino} {stat.st_size} {stat.st_mtime_ns}"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags"))}))


_MAKE_DEADLINE_S = 600
_PARTIAL, _USED = ".partial", ".used"
_USED_S_MAX = 3600
"""Machines resume in seconds."""
_TRIES = 3
_FOLDER_UNUSED_DAYS_MAX = 14
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
        oldest_s = time.time() - _FOLDER_UNUSED_DAYS_MAX * 86400
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
