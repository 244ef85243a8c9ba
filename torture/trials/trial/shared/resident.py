"""A program that stays up in a guest: it gets lines over the guest's port, and answers each.

Commands that need the storage: a command that hangs or is refused is the storage's failure.

A trial can end with a NAS that hangs, panics or does not return its volume. A worse cut makes this
end likelier. As a failure of the machinery, it would remove the worst cuts from the rates.
"""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path
from typing import Any

from torture.deadlines import wait_for
from torture.errors import HarnessError
from torture.facts.evidence.folder import Completed, Step
from torture.facts.evidence.ledger import PORT_NAME
from torture.machines.lab.machine import Machine, MachineFailed

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
