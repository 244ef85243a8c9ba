"""A way into both guests of a recorded trial: its NAS recovered the disks, its client has the volume.

The machines run in a sandbox, as those of a worker do, and end with this process
(`torture.trials.replay._guests` is the program in there). The user's terminal stays outside.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from torture.checkout import CHECKOUT
from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.evidence.completed import Completed
from torture.facts.evidence.strict_json import json_object
from torture.machines.host.native import shelf_plugin
from torture.machines.host.sandbox import sandboxed
from torture.machines.host.scratch import Scratch
from torture.machines.lab.lab import LabSettings
from torture.records.record.run_layout import RunLayout
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Origin
from torture.trials.replay.dialogue import GuestFailed, talk
from torture.trials.replay.replay import repeated_spec, settings_of, with_versions

COMMAND_DEADLINE_S = 300
"""A command of the user: a scrub takes seconds."""
_ANSWER_DEADLINE_S = COMMAND_DEADLINE_S + 120
"""The guest's agent ends the command first, and its output has to arrive."""
_START_DEADLINE_S = 2100
"""As long as a trial's recovery with three imports may take (`TRIAL_DEADLINE_S`)."""
_END_DEADLINE_S = 10
_INTERRUPTED = 130
"""The exit code after Ctrl-C, by the shell's convention."""
_READ_BYTES = 65536
_LOG = "guests.log"


def shell(
    evidence: Path,
    *,
    zfs: str = "",
    linux: str = "",
    read: Callable[[str], str] = input,
    say: Callable[[str], None] = print,
    note: Callable[[str], None] = print,
) -> int:
    """Recover the trial's crash state, and let the user ask both guests until `read` ends.

    `zfs`: another version for the NAS. `linux`: another kernel for both. `say` gets the guests'
    answers, `note` the steps before. Returns the exit code, which is not 0 where the user interrupts
    it. Raises `HarnessError` when the folder holds no trial, or when no NAS comes up.
    """
    spec = repeated_spec(evidence, Origin.REPLAY)
    lab = settings_of(RunLayout.of_evidence(evidence).folder)
    shelf_plugin()  # built here, where a compiler's failure can be read
    scratch = Scratch()
    scratch.remove_abandoned()
    with scratch.directory(f"shell-{secrets.token_hex(2)}") as folder:
        orders = _orders(spec, with_versions(lab, zfs=zfs, linux=linux), folder)
        try:
            with _program(folder / _LOG) as guests:
                _serve(guests, orders, read=read, say=say, note=note)
        except KeyboardInterrupt:
            return _INTERRUPTED
    return 0


def _serve(
    guests: _Guests,
    orders: dict[str, Any],
    *,
    read: Callable[[str], str],
    say: Callable[[str], None],
    note: Callable[[str], None],
) -> None:
    guests.send(orders)
    ready = guests.next_answer("ready", deadline_s=_START_DEADLINE_S, note=note)
    for line in ready["words"]:
        note(line)

    def ask(guest: str, command: str) -> Completed:
        guests.send({"guest": guest, "command": command})
        answer = guests.next_answer("completed", deadline_s=_ANSWER_DEADLINE_S, note=note)
        return msgspec.convert(answer["completed"], Completed)

    talk(ready["ready"], read=read, ask=ask, say=say)


def _orders(spec: TrialSpec, lab: LabSettings, folder: Path) -> dict[str, Any]:
    settings = msgspec.to_builtins(lab, enc_hook=str)
    return {"spec": spec.as_json(), "lab": settings, "scratch": str(folder)}


class _Guests:
    """The program in the sandbox: JSON lines there and back."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log
        self._rest = b""

    def send(self, message: dict[str, Any]) -> None:
        """Send one line; raises `HarnessError` when the program has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._death() from error

    def next_answer(
        self, kind: str, *, deadline_s: float, note: Callable[[str], None]
    ) -> dict[str, Any]:
        """The next answer of this kind; steps before it are noted.

        Raises `GuestFailed` where a guest failed, and another `HarnessError` for a refusal, for the
        program's end, and at the deadline.
        """
        end_s = time.monotonic() + deadline_s
        while True:
            answer = json_object(self._line(end_s)) or {}
            if kind in answer:
                return answer
            if "refused" in answer:
                raise HarnessError(str(answer["refused"]))
            if "failed" in answer:
                raise GuestFailed(str(answer["failed"]))
            if "stage" in answer:
                note(f"{answer['stage']} ...")

    def _line(self, end_s: float) -> bytes:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            if not select.select([pipe], [], [], max(end_s - time.monotonic(), 0))[0]:
                raise DeadlineExceeded("the machines took too long")
            piece = os.read(pipe, _READ_BYTES)
            if not piece:
                raise self._death()
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _death(self) -> HarnessError:
        said = self._log.read_text(errors="replace").strip().splitlines()[-3:]
        return HarnessError("\n".join(("the program with the machines ended", *said)))


@contextmanager
def _program(log: Path) -> Iterator[_Guests]:
    """The program, started in a sandbox; the end of its namespaces ends all machines."""
    with log.open("ab") as errors:
        process = subprocess.Popen(
            sandboxed((sys.executable, "-m", "torture.trials.replay._guests")),
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl-C is the user's word to this process alone
        )
    try:
        yield _Guests(process, log)
    finally:
        process.kill()
        process.wait(_END_DEADLINE_S)
