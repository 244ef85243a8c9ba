"""Workers on many hosts: each is the one slot of a Dask worker process, with a sandbox of its own.

Dask carries orders, records and evidence. It decides nothing: each trial goes to one worker by name,
and Dask never runs it again. docs/fleet.md says how to start hosts. `host.py` is the part there.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torture.discovery import extra_files
from torture.errors import DeadlineExceeded, HarnessError
from torture.features.fleet import host as remote
from torture.features.fleet.connection import (
    ANSWER_DEADLINE_S,
    GRACE_S,
    DaskCalls,
    Slot,
    connect,
    in_words,
)
from torture.features.fleet.host import (
    BEAT_S,
    HostOrders,
    Make,
    remove_incoming,
    sandboxed_worker,
    unpack_evidence,
)
from torture.machines.images import IMAGES, find
from torture.records.record.run_document import RunLayout
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.trials.workers._where import LOADED
from torture.trials.workers.local import PROBE_DEADLINE_S, TRIAL_DEADLINE_S
from torture.trials.workers.protocol import WorkerOrders, WorkerSiteKind

_FAILURES_MAX = 3
_PATIENCE_S = 180.0
_LOST_S = 20.0
_CLOSE_DEADLINE_S = 3.0
_POLL_S = 1.0
_FIRST_STAGE_OF_DATA = "load"
_FORMER_SHARE = "TORTURE_EVIDENCE"


class DaskSite:
    """The hosts of a Dask scheduler. One thread supervises them: they join, leave or are disqualified.

    `make` makes the worker on a host; it must be importable there.
    """

    waits_s = 3600.0
    """Only a bound: `failure` says it before."""

    def __init__(
        self, orders: WorkerOrders, *, place: str = "", make: Make = sandboxed_worker
    ) -> None:
        self._orders = orders
        self._make = make
        self._place = place
        host_orders = _orders_of_hosts(orders)
        self._client, self._cluster = connect(place)
        self.calls = DaskCalls(self._client, host_orders)
        self._lock = threading.Lock()
        self._slots: dict[int, Slot] = {}
        self._welcomed: dict[str, Any] = {}
        """The address of a worker that is about to show that it works, and the future of that."""
        self._failures: Counter[str] = Counter()
        self._hears: dict[str, Callable[[str], None]] = {}
        self._next_number = 0
        self.remarks: tuple[str, ...] = ()
        self._failure: HarnessError | None = None
        self._is_closing = threading.Event()
        self._client.subscribe_topic(host_orders.site, self._on_event)
        self._watch = threading.Thread(target=self._look_after, name="dask-site", daemon=True)
        self._watch.start()

    @property
    def trial_deadline_s(self) -> float:
        """See `WorkerSite`."""
        return TRIAL_DEADLINE_S[self._orders.lab.boot]

    @property
    def failure(self) -> HarnessError | None:
        """See `WorkerSite`."""
        if not (self._failure or self._is_closing.is_set() or self.calls.is_connected):
            self._lose("the Dask scheduler is gone")
        return self._failure

    def slots(self, jobs: int) -> frozenset[int]:
        """See `WorkerSite`; each Dask worker is one slot, however many threads it has."""
        with self._lock:
            return frozenset(self._slots)

    def controller(self, number: int, *, hear: Callable[[str], None]) -> DaskController:
        """See `WorkerSite`."""
        with self._lock:
            slot = self._slots.get(number)
            if slot is not None:
                self._hears[slot.token] = hear
        return DaskController(self, slot, run=self._orders.run)

    def end_sandbox(self, slot: Slot) -> None:
        """End the sandbox of a slot at once, whatever the worker does."""
        slot.events.put("was ended")
        self.calls.tell(remote.kill, [slot.address])

    def note_success(self, slot: Slot) -> None:
        """A trial came to its end there."""
        with self._lock:
            self._failures[slot.address] = 0

    def note_failure(self, slot: Slot, why: HarnessError, *, at_start: bool) -> None:
        """The machinery failed there. A slot whose worker does not start has to be earned again."""
        with self._lock:
            if slot.is_gone or self._is_closing.is_set():
                return  # that is no fault of the host's
            self._count_failure(slot.address, slot.name, why)
            if at_start or self._failures[slot.address] >= _FAILURES_MAX:
                self._withdraw(slot)

    def close(self) -> None:
        """See `WorkerSite`: no sandbox and no scratch is left on a host that answers."""
        self._is_closing.set()
        self._watch.join(ANSWER_DEADLINE_S)
        remove_incoming(self._orders.run)
        if self._failure is None:
            self.calls.tell(remote.close, None)
        for closed in (self._client, self._cluster):
            if closed is not None:
                with contextlib.suppress(Exception):  # a lost scheduler does not say goodbye
                    closed.close(timeout=_CLOSE_DEADLINE_S)

    def _on_event(self, event: tuple[float, Any]) -> None:
        """A worker's stage or remark. Events may be lost, and nothing depends on one."""
        _, message = event
        if isinstance(message, dict) and (hear := self._hears.get(message.get("slot", ""))):
            hear(str(message.get("text", "")))

    def _look_after(self) -> None:
        """Supervise the hosts until the run closes."""
        beats, beat_s = 0, 0.0
        answered_s = offered_s = time.monotonic()
        while not self._is_closing.wait(_POLL_S) and self.failure is None:
            now_s = time.monotonic()
            try:
                if now_s - beat_s >= BEAT_S:
                    beats, beat_s = beats + 1, now_s
                    self.calls.show_life(beats)
                self._take_stock(self.calls.workers())
                answered_s = time.monotonic()
            except Exception as error:
                # Dask's errors are of many kinds, and of several the next call is over
                if now_s - answered_s > _LOST_S:
                    self._lose(f"the Dask scheduler is gone: {in_words(error)}")
            if self._slots or self._welcomed:
                offered_s = time.monotonic()
            elif time.monotonic() - offered_s > _PATIENCE_S:
                self._lose("; ".join(("no Dask worker offers itself", *self.remarks)))

    def _lose(self, why: str) -> None:
        """The end of all workers, for which no trial is to blame."""
        place = self._place or "this machine"
        with self._lock:
            self._failure = HarnessError(
                f"{why} ({place})", hint="tools/fleet commands, then go on with --continue"
            )
            for slot in list(self._slots.values()):
                self._withdraw(slot)

    def _take_stock(self, workers: dict[str, Any]) -> None:
        """Welcome new workers, note who has shown that it works, and withdraw who is gone."""
        for address, future in list(self._welcomed.items()):
            if address not in workers:
                del self._welcomed[address]
                future.release()
            elif future.done():
                del self._welcomed[address]
                self._admit(address, future)
        with self._lock:
            for slot in list(self._slots.values()):
                if slot.address not in workers:
                    self._withdraw(slot)
            offered = {slot.address for slot in self._slots.values()}
        for address in workers.keys() - offered - self._welcomed.keys():
            if self._failures[address] < _FAILURES_MAX:
                self._welcomed[address] = self.calls.welcome(address, self._make)

    def _admit(self, address: str, future: Any) -> None:
        try:
            found: dict[str, str] = future.result(timeout=ANSWER_DEADLINE_S)
        except Exception as error:
            # any fault of a host is its own: it may even lack the suite
            why = error if isinstance(error, HarnessError) else HarnessError(in_words(error))
            with self._lock:
                self._count_failure(address, address, why)
            return
        finally:
            future.release()
        with self._lock:
            slot = Slot(address=address, name=found["host"], token=found["slot"])
            self._slots[self._next_number] = slot
            self._next_number += 1

    def _count_failure(self, address: str, name: str, why: HarnessError) -> None:
        self._failures[address] += 1
        if self._failures[address] == _FAILURES_MAX:
            words = f"{name} is out after {_FAILURES_MAX} failures in a row, the last: {why}"
            self.remarks = (*self.remarks, f"{words} ({address})")

    def _withdraw(self, slot: Slot) -> None:
        self._slots = {number: one for number, one in self._slots.items() if one is not slot}
        slot.is_gone = True
        slot.events.put("is gone")


class DaskController:
    """One slot, for the thread that runs its trials; no slot where it is gone already."""

    def __init__(self, site: DaskSite, slot: Slot | None, *, run: RunLayout) -> None:
        self._site = site
        self._slot = slot
        self._run = run
        self._is_started = False
        self._is_used = False
        """Whether it may have a sandbox."""

    @property
    def is_running(self) -> bool:
        """See `WorkerController`."""
        return self._is_started and self._slot is not None and not self._slot.is_gone

    def start(self) -> None:
        """See `WorkerController`."""
        slot = self._present()
        self._is_used = True
        try:
            self._site.calls.ask(slot, remote.ready, by_s=PROBE_DEADLINE_S + GRACE_S)
        except HarnessError as error:
            self._site.note_failure(slot, error, at_start=True)
            raise
        self._is_started = True

    def run(self, spec: TrialSpec, *, deadline_s: float) -> TrialRecord:
        """See `WorkerController`. It also raises `HarnessError` when the trial's set-up failed there."""
        slot = self._present()
        arguments = (spec.as_json(), spec.trial, deadline_s)
        try:
            outcome = self._site.calls.ask(
                slot, remote.try_trial, *arguments, by_s=deadline_s + GRACE_S
            )
            record = self._taken(outcome, spec, slot)
        except HarnessError as error:
            self._is_started = False
            if isinstance(error, DeadlineExceeded):
                self._site.end_sandbox(slot)
            else:
                self._site.note_failure(slot, error, at_start=False)
            raise
        self._site.note_success(slot)
        return record

    def kill(self) -> None:
        """See `WorkerController`."""
        is_used, self._is_used, self._is_started = self._is_used, False, False
        if is_used and self._slot is not None and not self._slot.is_gone:
            self._site.end_sandbox(self._slot)

    def _present(self) -> Slot:
        if self._slot is None or self._slot.is_gone:
            name = "a host" if self._slot is None else self._slot.name
            raise HarnessError(f"the worker on {name} is gone")
        return self._slot

    def _taken(self, outcome: dict[str, Any], spec: TrialSpec, slot: Slot) -> TrialRecord:
        """The record, once the evidence is in the run's folder; raises the error of a try that died.

        A record that says something stands without its evidence, too.
        """
        lost = ""
        try:
            unpack_evidence(outcome["evidence"], self._run, spec.trial)
        except HarnessError as failure:
            if "record" not in outcome:
                raise
            lost = failure.message
        if error := outcome.get("error"):
            kind = DeadlineExceeded if error["is_late"] else HarnessError
            raise kind(f"on {slot.name}: {error['message']}", hint=error["hint"])
        there = RunLayout(folder=Path(outcome["folder"]))
        record = TrialRecord.from_json(outcome["record"]).with_relative_paths(there)
        if record.machinery_failed and _FIRST_STAGE_OF_DATA not in record.timings:
            raise HarnessError(f"on {slot.name}: {record.error or 'the machinery failed'}")
        if not lost:
            return record
        if not record.is_conclusive and not record.is_breach:
            raise HarnessError(f"on {slot.name}: {lost}")
        # it was judged by whole evidence there, and another try would be a draw by its result
        return record.with_reason(f"its evidence did not arrive: {lost}")


def _orders_of_hosts(orders: WorkerOrders) -> HostOrders:
    if _FORMER_SHARE in os.environ:
        raise HarnessError("evidence travels with the records", hint=f"unset {_FORMER_SHARE}")
    lab = orders.as_json()["lab"]
    images = {name: find(name, zfs=orders.lab.zfs, linux=orders.lab.linux) for name in IMAGES}
    return HostOrders(
        site=f"torture-{secrets.token_hex(8)}",
        lab=lab,
        images={name: image.sha256 for name, image in images.items() if image is not None},
        zfs=orders.lab.zfs,
        linux=lab["linux"],
        code=LOADED,
        extra=extra_files(),
    )


WORKERS = WorkerSiteKind(
    name="dask",
    words="the hosts of a Dask scheduler, dask:ADDRESS; alone a process for each core of this host",
    open=lambda orders, place: DaskSite(orders, place=place),
)
