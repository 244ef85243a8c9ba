"""`load write`: several writers, each on its own files, until asked to stop."""

from __future__ import annotations

import contextlib
import threading
import time

from .blocks import Encoder
from .channel import Channel, HostGoneError, clock_ms
from .plan import Planner
from .read import device_bytes
from .storage import FileStorage, RawStorage, ms_since

EXIT_OK = 0
EXIT_HOST_GONE = 3
_DRAIN_MS_DEFAULT = 60_000
_MEET_WAIT_S = 120.0
"""Longer than a NAS is away; when it passes, the writers stop taking turns together."""

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any, Protocol

    from .applications import Application

    class Operation(Protocol):
        """A writer's next operation."""

        @property
        def is_durable(self) -> bool:
            """Whether its end is an acknowledgement."""

        def announced(self) -> dict[str, object]:
            """Its announcement to the host: `op`, its kind, and more."""

    class Drawing(Protocol):
        """One writer's operations, drawn one after another."""

        @property
        def is_new_phase(self) -> bool:
            """Whether writers meet before the last drawn operation."""

        def draw(self) -> Any:
            """The next operation."""

    class Performing(Protocol):
        """Carries out one writer's operations; `step` names the present step, for reports of failures."""

        step: str

        def perform(self, operation: Any, seq: int) -> None:
            """Return once it is as durable as its kind says; raises `OSError`."""

        def take_times(self) -> tuple[list[float], float]:
            """Milliseconds of each durable call, and milliseconds slept, since the last call of this."""


class Writer(threading.Thread):
    """One writer; ends when asked to stop, after its time, or at the first failure.

    At `turns` all writers meet before each loud or quiet phase; when one ends, the others go on
    without meeting.
    """

    def __init__(
        self,
        *,
        number: int,
        planner: Drawing,
        storage: Performing,
        channel: Channel,
        turns: threading.Barrier,
        until: float,
    ) -> None:
        super().__init__(name=f"writer-{number}", daemon=True)
        self._number = number
        self._planner = planner
        self._storage = storage
        self._channel = channel
        self._turns = turns
        self._until = until
        self.acknowledged = 0
        self.failed_errno: int | None = None
        self.host_gone = False

    def run(self) -> None:
        """The loop of operations."""
        try:
            self._work()
        except HostGoneError:
            self.host_gone = True
        finally:
            self._turns.abort()

    def _work(self) -> None:
        operation = self._planner.draw()
        seq = self._channel.begin(self._number, operation)
        while True:
            if self._planner.is_new_phase:
                self._meet()
            begun_ns = time.monotonic_ns()
            try:
                self._storage.perform(operation, seq)
            except OSError as error:
                # A medium that fails is evidence about the NAS, not an error of the load.
                self.failed_errno = error.errno or 0
                self._channel.send(
                    event="failed", seq=seq, errno=self.failed_errno, call=self._storage.step
                )
                return
            returned_ms = clock_ms()
            took_ms = ms_since(begun_ns)
            sync_ms, thought_ms = self._storage.take_times()
            self.acknowledged += operation.is_durable
            over = self._channel.stopping.is_set() or time.monotonic() >= self._until
            following = None if over else self._planner.draw()
            # waits for its turn, for the host or on purpose are no work of the storage
            next_seq = self._channel.done(
                self._number,
                seq,
                following,
                work_ms=round(max(0.0, took_ms - thought_ms), 3),
                sync_ms=sync_ms,
                returned_ms=returned_ms,
            )
            if following is None:
                return
            operation, seq = following, next_seq

    def _meet(self) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            self._turns.wait(_MEET_WAIT_S)


def run(job: dict[str, Any], descriptor: int) -> int:
    """Run a job, talking to the host over `descriptor`; returns the exit code.

    A job holds: trial, seed, mode ("files", "raw" or "application"), directory or device, writers,
    and duration_ms. One key is optional: drain_ms, the wait at the end for writers that hang in the
    kernel. The load's own jobs also hold files_per_writer, blocks_per_file_max, and, optional,
    keepsakes_per_writer. An application's job holds its name and the keys of its module.
    """
    channel = Channel(descriptor)
    application = None
    if job["mode"] == "application":
        from .applications import application_of

        application = application_of(job)
        application.begin()
    try:
        channel.hello(
            trial=job["trial"],
            mode=job["mode"],
            writers=job["writers"],
            device_bytes=device_bytes(job["device"]) if job["mode"] == "raw" else None,
            before=job.get("before", 0),
        )
    except HostGoneError:
        return EXIT_HOST_GONE
    until = time.monotonic() + job["duration_ms"] / 1000
    turns = threading.Barrier(job["writers"])
    writers = []
    for number in range(job["writers"]):
        planner, storage = _parts(job, number, application)
        writers.append(
            Writer(
                number=number,
                planner=planner,
                storage=storage,
                channel=channel,
                turns=turns,
                until=until,
            )
        )
    for writer in writers:
        writer.start()
    channel.stopping.wait(max(0.0, until - time.monotonic()))
    give_up = time.monotonic() + job.get("drain_ms", _DRAIN_MS_DEFAULT) / 1000
    for writer in writers:
        writer.join(max(0.0, give_up - time.monotonic()))
    stuck = [number for number, writer in enumerate(writers) if writer.is_alive()]
    channel.send(
        event="end",
        acknowledged=sum(writer.acknowledged for writer in writers),
        failed=sum(writer.failed_errno is not None for writer in writers),
        stuck=stuck,
    )
    channel.close()
    if application is not None and not stuck:
        application.end()
    return EXIT_HOST_GONE if any(writer.host_gone for writer in writers) else EXIT_OK


def _parts(
    job: dict[str, Any], number: int, application: Application | None
) -> tuple[Drawing, Performing]:
    """The planner and the performer of one writer."""
    if application is not None:
        return application.planner(number), application.performer(number)
    encoder = Encoder(job["trial"])
    storage = (
        RawStorage(encoder, job["device"], job["blocks_per_file_max"])
        if job["mode"] == "raw"
        else FileStorage(encoder, job["directory"], job["blocks_per_file_max"])
    )
    return Planner(job, number), storage
