"""A program that stays up in a guest: it gets lines over the guest's port, and answers each.

Commands that need the storage: a command that hangs or is refused is the storage's failure.

A trial can end with a NAS that hangs, panics or does not return its volume. A worse cut makes this
end likelier. As a failure of the machinery, it would remove the worst cuts from the rates.
"""

from __future__ import annotations

import json
import lzma
import signal
import socket
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torture.deadlines import wait_for
from torture.errors import HarnessError
from torture.facts.evidence.folder import (
    RECORDINGS,
    Completed,
    Step,
    ToolOutput,
    append_tool,
    write_document,
)
from torture.facts.evidence.ledger import PORT_NAME
from torture.machines.lab.machine import Machine, MachineFailed
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import TrialRecord

PATIENCE_S = 180
"""An operator's patience: every wait takes 1 to 15 s, even under emulation on a loaded host."""


class StorageFailed(MachineFailed):
    """The storage did not do its part for a command in `machine`."""


def storage_must(machine: Machine, failure: str, script: str, *, deadline_s: float) -> None:
    """Run a script in a machine; raises `StorageFailed` when it fails or does not end."""
    completed = machine.run("sh", "-c", script, deadline_s=deadline_s)
    if completed.exit_code != 0:
        words = (completed.stderr or completed.stdout).strip().splitlines()
        raise StorageFailed(f"{failure}: {' '.join(words[-1:])}", machine=machine)


def must_not_hang(machine: Machine, failure: str, script: str, *, deadline_s: float) -> None:
    """Run a script in a machine.

    Raises `StorageFailed` when it does not end, and `HarnessError` when it fails.
    """
    completed = machine.run("sh", "-c", script, deadline_s=deadline_s)
    if completed.exit_code is None:
        raise StorageFailed(f"{failure} for {deadline_s:g} s", machine=machine)
    machine.require_success(completed, deadline_s=deadline_s)


def must_have_ended(
    machine: Machine, step: Step, completed: Completed, *, deadline_s: float
) -> None:
    """Raise `StorageFailed` for a tool that the deadline ended."""
    if completed.exit_code is None:
        hung = f"{step}: {completed.tool} hung for {deadline_s:g} s"
        raise StorageFailed(hung, machine=machine)


PORT = f"/dev/virtio-ports/{PORT_NAME}"
_CONNECT_DEADLINE_S = 10
_LOOK_S = 1.0
"""How often a wait checks whether the guest and its program are there."""
_RECEIVE_BYTES = 65536
_ABORTED = 128 + signal.SIGABRT
"""The agent's exit code of a program that failed an assertion."""


class ResidentProgram:
    """A started program and its dialogue: a line of text to the guest, a JSON object back."""

    def __init__(self, machine: Machine, argv: tuple[str, ...]) -> None:
        """Start it; raises `HarnessError` when the guest's QEMU does not open its port."""
        self._machine = machine
        self._argv = argv
        self._socket = wait_for(
            lambda: _connection(machine.spec.port_socket),
            what=f"port of {machine.name}",
            deadline_s=_CONNECT_DEADLINE_S,
        )
        self._socket.settimeout(_LOOK_S)
        self._rest = b""
        self._pid = machine.agent.start(argv)

    def ask(self, line: str, *, deadline_s: float) -> dict[str, Any]:
        """Send a line and return the answer.

        Raises `StorageFailed` when none comes in time, or when libzfs fails an assertion. Raises
        `GuestDied` when the guest ended, and `HarnessError` when the program did, or when its answer is
        unreadable.
        """
        try:
            self._socket.sendall(f"{line}\n".encode())
        except OSError:
            self._machine.raise_if_dead()
            raise
        return self.answer(line, deadline_s=deadline_s)

    def answer(self, step: str, *, deadline_s: float) -> dict[str, Any]:
        """The next answer; raises as `ask` does."""
        end = time.monotonic() + deadline_s
        while b"\n" not in self._rest:
            self._rest += self._received()
            if time.monotonic() > end:
                name = self._machine.name
                hung = f"the program in {name} hung for {deadline_s:g} s at {step[:40]!r}"
                raise StorageFailed(hung, machine=self._machine)
        text, _, self._rest = self._rest.partition(b"\n")
        try:
            answer = json.loads(text)
            if not isinstance(answer, dict) or "failed" in answer:
                raise ValueError("it failed")
        except ValueError as error:
            raise self._failure(f"answered {text[:300]!r} to {step[:40]!r}: {error}") from error
        return answer

    def close(self) -> None:
        """End the dialogue; the program ends with its guest."""
        self._socket.close()

    def _received(self) -> bytes:
        """Bytes of the guest, at least one; none while it is silent."""
        try:
            received = self._socket.recv(_RECEIVE_BYTES)
        except TimeoutError:
            received = b""
        except ConnectionError:
            self._machine.raise_if_dead()
            raise
        if not received:
            self._machine.raise_if_dead()
            if (ended := self._machine.agent.poll(self._pid, self._argv)) is not None:
                if ended.exit_code == _ABORTED:
                    raise self._assertion(ended.stderr)
                raise self._failure(f"ended with {ended.exit_code}: {ended.stderr[-300:]}")
        return received

    def _assertion(self, stderr: str) -> StorageFailed:
        """An assertion of libzfs: `zpool import` would end by it, too."""
        said = stderr.strip().splitlines()[:1]
        return StorageFailed(f"libzfs failed an assertion: {''.join(said)}", machine=self._machine)

    def _failure(self, failure: str) -> HarnessError:
        return HarnessError(
            f"in {self._machine.name}, {self._argv[0]} {failure}",
            hint=f"read {self._machine.spec.console_log}",
        )


def _connection(path: Path | None) -> socket.socket | None:
    candidate = socket.socket(socket.AF_UNIX)
    try:
        candidate.connect(str(path))
    except OSError:
        candidate.close()
        return None
    return candidate


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceWriter:
    """Writes into one trial's folder."""

    folder: Path
    enter_stage: Callable[[str], None] = lambda _stage: None
    """Shows the new stage in the live line."""
    require_host: Callable[[], None] = lambda: None
    """Raises `HarnessError` once the host ended a machine: what others show then is no evidence."""
    timings: dict[str, int] = field(default_factory=dict)
    """Milliseconds of each stage so far."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage; the live line and the record's timings have its name."""
        self.enter_stage(name)
        begun = time.monotonic()
        try:
            yield
        finally:
            self.timings[name] = round((time.monotonic() - begun) * 1000)

    def observe(
        self, machine: Machine, step: Step, argv: tuple[str, ...], *, deadline_s: float
    ) -> Completed:
        """Run a tool in a guest and keep all its output as evidence of `step`."""
        completed = machine.run(*argv, deadline_s=deadline_s)
        self.keep(step, completed)
        return completed

    def observe_to_end(
        self, machine: Machine, step: Step, argv: tuple[str, ...], *, deadline_s: float
    ) -> Completed:
        """Run a tool that needs the storage, with its output as evidence of `step`.

        Raises `StorageFailed` when it does not end.
        """
        completed = self.observe(machine, step, argv, deadline_s=deadline_s)
        must_have_ended(machine, step, completed, deadline_s=deadline_s)
        return completed

    def keep(self, step: Step, completed: Completed) -> None:
        """Keep all output of a tool as evidence of `step`; raises what `require_host` raises."""
        self.require_host()
        append_tool(self.folder, ToolOutput(step=step, name=completed.tool, **asdict(completed)))

    def write(self, name: str, content: dict[str, Any] | str) -> None:
        """Write a whole document, which replaces an earlier one; raises what `require_host` raises."""
        self.require_host()
        write_document(self.folder, name, content)


_INDEX = "index"
"""The shelf makes it again from the recording when it opens a view."""
_DAMAGED = (
    OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""The errors of `zipfile` at a damaged archive. A damaged byte may name an unknown method or
encoding, mark the archive as encrypted, or be no compressed data."""


def archive_recordings(record: TrialRecord, *, of: Path, into: Path) -> TrialRecord:
    """Pack the shelf's directory into the trial's folder; not for an intact trial without finding.

    The recording of a missed planted fault shows whether the fault left a trace. Where there is no
    room for a recording, the verdict stands, and the record's reasons have the error. Then the
    trial cannot be replayed.
    """
    is_sound = not record.cut.audited.is_broken and not record.absence.acknowledged_in_outage
    if record.verdict is Verdict.INTACT and is_sound and not record.fault:
        return record
    file = into / RECORDINGS
    try:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            pack(archive, of.rglob("*"), below=of)
    except OSError as error:
        file.unlink(missing_ok=True)
        return record.with_reason(f"no {RECORDINGS} was kept: {error}")
    return record


def pack(archive: zipfile.ZipFile, paths: Iterable[Path], *, below: Path) -> None:
    """Add files by their paths below a folder."""
    for path in sorted(paths):
        if path.is_file() and path.name != _INDEX:
            archive.write(path, path.relative_to(below))


def unpack_recordings(evidence: Path, into: Path) -> None:
    """Unpack the archive of `archive_recordings`; raises `HarnessError` if missing or damaged."""
    if not evidence.is_dir():
        raise HarnessError(f"there is no folder {evidence}", hint="ls results/latest/trials")
    try:
        with zipfile.ZipFile(evidence / RECORDINGS) as archive:
            archive.extractall(into)
    except FileNotFoundError as error:
        raise HarnessError(
            f"{evidence} has no {RECORDINGS}: intact trials keep none",
            hint=f"tools/replay --live {evidence}",
        ) from error
    except _DAMAGED as error:
        raise HarnessError(
            f"{evidence / RECORDINGS} cannot be unpacked: {error}",
            hint=f"tools/replay --live {evidence}",
        ) from error
