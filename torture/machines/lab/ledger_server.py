"""The host's side of the ledger: records each acknowledgement before the client learns of it.

The guest's half is `vmimages/client/load`. Its channel is a virtio-serial port; this side is a unix
socket that the client's QEMU listens on.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from torture.deadlines import wait_for
from torture.errors import HarnessError
from torture.facts.evidence import ledger

_RECEIVE_BYTES = 65536
_POLL_S = 0.2
_CONNECT_DEADLINE_S = 10
_RECEIVED_DEADLINE_S = 10
_LOOK_S = 0.5
"""How often a wait checks whether the trial can go on."""


class LedgerServer:
    """Writes every event of the guest into the trial's ledger before it answers the event.

    `clock_ms` is the trial's clock. `mark` first puts a line into the shelf's recording, if the
    shelf still accepts it. So event numbers of one recording show which operations were
    acknowledged before a cut. `must_go_on` runs during waits, and raises `HarnessError`. A separate
    thread listens from `start` until `close`.
    """

    def __init__(
        self,
        *,
        client_socket: Path,
        file: Path,
        clock_ms: Callable[[], float],
        mark: Callable[[bytes], bool] = lambda _line: True,
        must_go_on: Callable[[], None] = lambda: None,
    ) -> None:
        self._socket_path = client_socket
        self._path = file
        self._file = file.open("ab")
        self._clock_ms = clock_ms
        self._mark = mark
        self._must_go_on = must_go_on
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._write_lock = threading.Lock()
        self._changed = threading.Condition()
        self._closing = False
        self._owed: set[int] = set()
        self.received = 0
        """Lines of the guest in the ledger."""
        self.begun = 0
        self.acknowledged = 0
        """Durable operations acknowledged; a write without an fsync does not count."""
        self.failed = 0
        self.ended = False
        """Whether every writer has ended or failed. Of a failed writer the load reports nothing
        more until it is stopped."""
        self._writers = 0
        self.failure: str | None = None

    def start(self) -> None:
        """Connect and listen; raises `HarnessError` when the client's QEMU does not answer."""

        def connection() -> socket.socket | None:
            candidate = socket.socket(socket.AF_UNIX)
            try:
                candidate.connect(str(self._socket_path))
            except OSError:
                candidate.close()
                return None
            return candidate

        self._socket = wait_for(
            connection, what="ledger socket of the client", deadline_s=_CONNECT_DEADLINE_S
        )
        self._socket.settimeout(_POLL_S)
        self._thread = threading.Thread(target=self._listen, name="ledger", daemon=True)
        self._thread.start()

    def mark_cut(self, t_ms: float) -> None:
        """Note in the ledger's order that the NAS lost power."""
        self._keep(ledger.cut_mark(t_ms))

    def stop_load(self) -> None:
        """Ask the guest's writers to finish their present operations and end."""
        if self._socket is not None:
            try:
                self._socket.sendall(ledger.STOP)
            except OSError as error:
                raise HarnessError(f"the load cannot be stopped: {error}") from error

    def wait_until(self, reached: Callable[[], bool], *, deadline_s: float) -> bool:
        """Wait for the ledger to reach a state; False when the deadline passed first.

        Raises `HarnessError` when the ledger cannot be kept any more.
        """
        end = time.monotonic() + deadline_s
        with self._changed:
            while not reached() and self.failure is None and time.monotonic() < end:
                self._must_go_on()
                self._changed.wait(max(0.0, min(_LOOK_S, end - time.monotonic())))
            if self.failure is not None:
                raise HarnessError(self.failure)
            return reached()

    def must_begin_with(self, marks: Sequence[bytes], *, log: Path) -> None:
        """Raise `HarnessError` unless the marks of the recording in `log` are its file's first lines.

        Otherwise the ledger does not show which operations were acknowledged when the disks stopped.
        """
        self.wait_until(lambda: self.received >= len(marks), deadline_s=_RECEIVED_DEADLINE_S)
        if ledger.received_lines(self._path.read_bytes())[: len(marks)] != marks:
            raise HarnessError(
                "the marks in the shelf's recording are not the first lines of the ledger",
                hint=f"compare {self._path} with {log}",
            )

    def close(self) -> None:
        """Read the rest of the socket (the client is gone), and end."""
        self._closing = True
        if self._thread is not None:
            self._thread.join(timeout=10)
        if self._socket is not None:
            self._socket.close()
        self._file.close()

    def _listen(self) -> None:
        assert self._socket is not None
        rest = b""
        try:
            while True:
                try:
                    received = self._socket.recv(_RECEIVE_BYTES)
                except TimeoutError:
                    if self._closing:
                        return
                    continue
                except ConnectionError:
                    return
                if not received:
                    return
                *lines, rest = (rest + received).split(b"\n")
                for line in lines:
                    self._take(line)
        except (OSError, HarnessError) as error:
            self._fail(f"the ledger could not be kept: {error}")

    def _take(self, line: bytes) -> None:
        now_ms = self._clock_ms()
        stamped = ledger.stamp(line, now_ms)
        self._mark(stamped)
        self._keep(stamped)
        with self._changed:
            self.received += 1
            self._changed.notify_all()
        if (reply := ledger.reply_to(line)) is not None and self._socket is not None:
            # a client that was cut off no longer receives the answer
            with contextlib.suppress(ConnectionError):
                self._socket.sendall(reply)
        try:
            events = ledger.parse_line(stamped)
        except ValueError:
            return  # garbled: the verdict counts such lines
        with self._changed:
            for event in events:
                self._count(event)
            self._changed.notify_all()

    def _keep(self, line: bytes) -> None:
        with self._write_lock:
            self._file.write(line)
            self._file.flush()

    def _count(self, event: ledger.Event) -> None:
        match event:
            case ledger.Begin(seq=seq, kind=kind):
                self.begun += 1
                if kind.is_durable:
                    self._owed.add(seq)
            case ledger.Done(seq=seq):
                self.acknowledged += seq in self._owed
                self._owed.discard(seq)
            case ledger.Hello(writers=writers):
                self._writers = writers
            case ledger.Failed():
                self.failed += 1
                self.ended |= self.failed == self._writers
            case ledger.End():
                self.ended = True
            case ledger.Cut():
                pass

    def _fail(self, why: str) -> None:
        with self._changed:
            self.failure = why
            self._changed.notify_all()
