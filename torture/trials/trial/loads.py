"""All loads of one client, as one, and the user's files that they need."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torture.choices.workloads.protocol import Brought, RunningLoad
from torture.deadlines import wait_until_true
from torture.errors import HarnessError

_TEXT_BYTES_MAX = 100_000
_ELF, _SCRIPT = b"\x7fELF", b"#!"


def brought_program(load: str, path: Path) -> Brought:
    """A program, which stays in its place; raises `HarnessError` for one that no client can run."""
    data = _read(path)
    if not data.startswith((_ELF, _SCRIPT)):
        raise HarnessError(f"{path} is no program of Linux", hint=f"file {path}")
    if data.startswith(_ELF) and _machine(data) != _machine(_read(Path(sys.executable))):
        raise HarnessError(f"{path} is a program of another machine than this", hint=f"file {path}")
    return Brought(load=load, path=str(path.absolute()), sha256=_sha256(data))


def brought_text(load: str, path: Path) -> Brought:
    """A small text: the spec has all of it; raises `HarnessError` when it is no small text."""
    data = _read(path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise HarnessError(f"{path} is no text: {error}") from error
    if len(data) > _TEXT_BYTES_MAX:
        raise HarnessError(f"{path} has {len(data):,} bytes, more than {_TEXT_BYTES_MAX:,}")
    return Brought(load=load, path=str(path.absolute()), sha256=_sha256(data), text=text)


def content_of(brought: Brought) -> bytes:
    """The content of a brought file; raises `HarnessError` when the file is gone or has changed."""
    if brought.text:
        return brought.text.encode()
    data = _read(Path(brought.path))
    if _sha256(data) != brought.sha256:
        raise HarnessError(
            f"{brought.path} is not the file that the trial ran: its SHA-256 was {brought.sha256}",
            hint=f"put that file back at {brought.path}",
        )
    return data


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise HarnessError(f"{path} cannot be read: {error}", hint=f"ls -l {path}") from error


def _machine(elf: bytes) -> tuple[bytes, bytes]:
    """The kind of machine that a program needs (elf(5)): `EI_CLASS` and `EI_DATA`, and `e_machine`."""
    return elf[4:6], elf[18:20]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


_POLL_S = 0.002


@dataclass(frozen=True, slots=True)
class Loads:
    """The running loads."""

    running: tuple[RunningLoad, ...]

    @property
    def begun(self) -> int:
        """Operations begun so far."""
        return sum(load.begun for load in self.running)

    @property
    def acknowledged(self) -> int:
        """Durable operations acknowledged so far."""
        return sum(load.acknowledged for load in self.running)

    @property
    def are_over(self) -> bool:
        """Whether no load will acknowledge anything more."""
        return all(load.is_over for load in self.running)

    def raise_if_over(self) -> None:
        """Raise `HarnessError` when a load ended before the cut."""
        for load in self.running:
            load.raise_if_over()

    def wait_until(self, reached: Callable[[], bool], *, deadline_s: float) -> bool:
        """Wait until something becomes true of them; False when the deadline passed first."""
        if len(self.running) == 1:
            return self.running[0].wait_until(reached, deadline_s=deadline_s)
        return wait_until_true(reached, deadline_s=deadline_s, poll_s=_POLL_S)

    def take_endings(self) -> None:
        """Keep the ending of each load that ended by itself: their client is about to die."""
        for load in self.running:
            load.take_ending()

    def finish(self, *, deadline_s: float) -> None:
        """End them one after another, each within its deadline."""
        for load in self.running:
            load.finish(deadline_s=deadline_s)
