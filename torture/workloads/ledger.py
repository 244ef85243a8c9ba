"""The ledger load: every durable operation is announced, done and acknowledged, one at a time.

The guest's half is `vmimages/client/load`; what a crash may leave of it is `torture/verdict/oracle.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torture.axes.axis import Choice
from torture.axes.sweeps import EVERY_SWEEP
from torture.errors import DeadlineExceeded, HarnessError
from torture.evidence.folder import READBACK, READBACK_AFTER_REPAIR, Evidence
from torture.evidence.ledger import PORT_NAME, Hello
from torture.verdict.data_findings import Findings
from torture.verdict.oracle import consult
from torture.verdict.readback import parse_readback
from torture.verdict.unreadable import UnreadableError
from torture.workloads.protocol import Command, Guest, LedgerChannel, Place, Surroundings, Workload

_HELLO_DEADLINE_S = 60
_LOAD_LIFE_MS = 600_000
"""The host ends the load; this only bounds a load whose host is gone."""

_FILE_BLOCKS_MAX = 32
"""128 KiB; a bare device is read back whole, and therefore its regions are shorter."""

_GUEST_LOAD = "python3 -S -m load"
_GUEST_CODE = "/opt/torture"


class LedgerLoad:
    """The load in one client, from its start to its end."""

    def __init__(self, *, guest: Guest, ledger: LedgerChannel, argv: Command) -> None:
        self._guest = guest
        self._ledger = ledger
        self._argv = argv
        self._pid = 0

    @property
    def begun(self) -> int:
        """Operations announced so far."""
        return self._ledger.begun

    @property
    def acknowledged(self) -> int:
        """Durable operations acknowledged so far."""
        return self._ledger.acknowledged

    @property
    def is_over(self) -> bool:
        """Whether every writer has ended or failed."""
        return self._ledger.ended

    def start(self) -> None:
        """Start the writers and wait until the first operation was acknowledged."""
        self._pid = self._guest.start(self._argv)
        end = time.monotonic() + _HELLO_DEADLINE_S
        while not self._ledger.wait_until(lambda: self.acknowledged > 0, deadline_s=1):
            self._raise_if_ended("the load does not begin")
            if time.monotonic() > end:
                raise DeadlineExceeded(f"nothing was acknowledged within {_HELLO_DEADLINE_S} s")

    def raise_if_over(self) -> None:
        """Raise `HarnessError` when the load ended before anyone cut anything."""
        if self._ledger.ended or self._ledger.failed:
            self._raise_if_ended("the load ended too early")
            raise HarnessError("a writer of the load failed before anything was cut")

    def _raise_if_ended(self, what: str) -> None:
        if (done := self._guest.poll(self._pid, self._argv)) is not None:
            raise HarnessError(f"{what}: {done.exit_code}: {done.stdout}{done.stderr}")

    def wait_until(self, reached: Callable[[], bool], *, deadline_s: float) -> bool:
        """Wait for the ledger to reach a state; False when the deadline passed first."""
        return self._ledger.wait_until(reached, deadline_s=deadline_s)

    def finish(self, *, deadline_s: float) -> None:
        """Stop the writers; one that hangs in the kernel is left there at the deadline."""
        self._ledger.stop_load()
        self._guest.finish(self._pid, self._argv, deadline_s=deadline_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ledger:
    """Three writers on files of a directory, or on one bare device."""

    name: str = "ledger"
    beside: tuple[str, ...] = ()
    readback: str = READBACK
    readback_after_repair: str = READBACK_AFTER_REPAIR

    def job(self, *, seed: int, place: Place) -> dict[str, Any]:
        """What the guest's load is told; the same dictionary writes and reads back."""
        where = (
            {"device": place.device}
            if place.directory is None
            else {"directory": f"{place.directory}/load"}
        )
        return {
            "trial": seed,
            "seed": seed,
            "mode": "raw" if place.directory is None else "files",
            "writers": 3,
            "files_per_writer": 4,
            "blocks_per_file_max": 12 if place.directory is None else _FILE_BLOCKS_MAX,
            "duration_ms": _LOAD_LIFE_MS,
            "port": f"/dev/virtio-ports/{PORT_NAME}",
            **where,
        }

    def prepare(self, job: dict[str, Any]) -> str:
        """A directory of its own: `lost+found` is not the load's."""
        return f"mkdir {job['directory']}" if "directory" in job else ""

    def start(self, job: dict[str, Any], surroundings: Surroundings) -> LedgerLoad:
        """Start the writers and return once the first operation was acknowledged."""
        load = LedgerLoad(
            guest=surroundings.guest,
            ledger=surroundings.open_ledger(),
            argv=_guest_command("write", job),
        )
        load.start()
        return load

    def read_back(self, job: dict[str, Any]) -> Command:
        """The command that reads every file, or the device, back."""
        return _guest_command("read", job)

    def judge(self, evidence: Evidence, *, after_repair: bool) -> Findings:
        """The oracle's answer; raises `UnreadableError` when ledger or read-back are no evidence."""
        what = "read-back after the repair" if after_repair else "read-back"
        text = evidence.readbacks.get(self.readback_after_repair if after_repair else self.readback)
        ledger = evidence.ledger
        hello = next((event for event in ledger.events if isinstance(event, Hello)), None)
        if hello is None:
            raise UnreadableError("the ledger is empty: the load never began")
        if ledger.garbled:
            raise UnreadableError(f"{ledger.garbled} lines of the ledger are garbled")
        if text is None:
            raise UnreadableError(f"there is no {what}")
        readback = parse_readback(text)
        if (readback.trial, readback.mode) != (hello.trial, hello.mode):
            raise UnreadableError(f"the {what} is of another trial than the ledger")
        if ledger.acknowledged == 0:
            raise UnreadableError("nothing was acknowledged, so nothing could be lost")
        cut_ms = evidence.cut.t_ms if ledger.cut_ms is None else ledger.cut_ms
        return consult(ledger, readback, cut_ms=cut_ms)


def _guest_command(verb: str, job: dict[str, Any]) -> Command:
    """The command that writes or reads back in the guest."""
    script = f'cd {_GUEST_CODE} && exec {_GUEST_LOAD} {verb} "$1"'
    return ("sh", "-c", script, "load", json.dumps(job))


CHOICE: Choice[Workload] = Choice(
    name="ledger", value=Ledger(), words="the ledger load", joins=EVERY_SWEEP, place=0
)
