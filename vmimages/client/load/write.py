"""`load write`: several writers, each on its own files, until told to stop."""

from __future__ import annotations

import contextlib
import threading
import time

from .blocks import Encoder
from .channel import Channel, HostGoneError
from .plan import SCRIBBLE, Planner
from .storage import FileStorage, RawStorage, Storage, ms_since

EXIT_OK = 0
EXIT_HOST_GONE = 3
_DRAIN_MS_DEFAULT = 60_000
_MEET_WAIT_S = 120.0
"""Longer than a NAS is away; when it passes, the writers no longer take turns together."""

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any


class Writer(threading.Thread):
    """One writer; ends when told to stop, after its time, or at the first failure.

    At `turns` all writers meet before each loud or quiet phase; when one ends, the others go on
    without meeting.
    """

    def __init__(
        self,
        *,
        number: int,
        planner: Planner,
        storage: Storage,
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
                # A medium that fails is evidence about the NAS, not a fault of the load.
                self.failed_errno = error.errno or 0
                self._channel.tell(
                    event="failed", seq=seq, errno=self.failed_errno, call=self._storage.step
                )
                return
            took_ms = ms_since(begun_ns)
            sync_ms, thought_ms = self._storage.take_times()
            self.acknowledged += operation.kind != SCRIBBLE
            over = self._channel.stopping.is_set() or time.monotonic() >= self._until
            following = None if over else self._planner.draw()
            # what it waited for its turn, for the host or on purpose is no work of the storage
            next_seq = self._channel.done(
                self._number,
                seq,
                following,
                work_ms=round(max(0.0, took_ms - thought_ms), 3),
                sync_ms=sync_ms,
            )
            if following is None:
                return
            operation, seq = following, next_seq

    def _meet(self) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            self._turns.wait(_MEET_WAIT_S)


def run(job: dict[str, Any], descriptor: int) -> int:
    """Run a job, talking to the host over `descriptor`; returns the exit code.

    A job holds: trial, seed, mode ("files" or "raw"), directory or device, writers,
    files_per_writer, blocks_per_file_max, duration_ms, and, optional, keepsakes_per_writer and
    drain_ms: how long writers that hang in the kernel are waited for at the end.
    """
    channel = Channel(descriptor)
    try:
        channel.hello(trial=job["trial"], mode=job["mode"], writers=job["writers"])
    except HostGoneError:
        return EXIT_HOST_GONE
    until = time.monotonic() + job["duration_ms"] / 1000
    turns = threading.Barrier(job["writers"])
    writers = [_writer(job, number, channel, turns, until) for number in range(job["writers"])]
    for writer in writers:
        writer.start()
    channel.stopping.wait(max(0.0, until - time.monotonic()))
    give_up = time.monotonic() + job.get("drain_ms", _DRAIN_MS_DEFAULT) / 1000
    for writer in writers:
        writer.join(max(0.0, give_up - time.monotonic()))
    channel.tell(
        event="end",
        acknowledged=sum(writer.acknowledged for writer in writers),
        failed=sum(writer.failed_errno is not None for writer in writers),
        stuck=[number for number, writer in enumerate(writers) if writer.is_alive()],
    )
    channel.close()
    return EXIT_HOST_GONE if any(writer.host_gone for writer in writers) else EXIT_OK


def _writer(
    job: dict[str, Any], number: int, channel: Channel, turns: threading.Barrier, until: float
) -> Writer:
    encoder = Encoder(job["trial"])
    storage: Storage = (
        RawStorage(encoder, job["device"], job["blocks_per_file_max"])
        if job["mode"] == "raw"
        else FileStorage(encoder, job["directory"], job["blocks_per_file_max"])
    )
    planner = Planner(job, number)
    return Writer(
        number=number,
        planner=planner,
        storage=storage,
        channel=channel,
        turns=turns,
        until=until,
    )
