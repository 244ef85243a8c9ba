"""The ledger's channel: JSON lines to the host over a virtio-serial port, and its replies.

The host answers each `begin` or `done` line with the sequence number on a line of its own, once the
host has the line. A writer goes on only then. So the host knows of every operation that the client
may have started, and of every acknowledgement that the client received.
"""

from __future__ import annotations

import json
import os
import threading
import time

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Protocol

    class Operation(Protocol):
        """A writer's next operation."""

        def announced(self) -> dict[str, object]:
            """Its announcement to the host: `op`, its kind, and more."""


REPLY_WAIT_S = 60.0
"""The longest wait of a writer for the host; it is much longer than the host ever takes."""
_NO_HOST_WAIT_S = 10.0
"""How long a port may read as closed: virtio-serial does so until the host has connected."""
_NO_HOST_POLL_S = 0.02
HELLO_SEQ = 0


def clock_ms() -> float:
    """The guest's clock, in milliseconds since it booted."""
    return time.monotonic_ns() / 1e6


class HostGoneError(Exception):
    """The host did not answer in time, or closed the channel."""


def open_port(path: str) -> int:
    """A descriptor of the port, for reading and writing; raises `OSError`."""
    return os.open(path, os.O_RDWR | os.O_CLOEXEC)


class Channel:
    """Sends events in the order of their sequence numbers, and wakes the writers upon replies."""

    def __init__(self, descriptor: int) -> None:
        # A separate descriptor: the listener may still read when the caller's is closed.
        self._descriptor = os.dup(descriptor)
        self._lock = threading.Lock()
        self._seq = HELLO_SEQ
        self._waiting: dict[int, threading.Event] = {}
        self._answered: tuple[int, float] | None = None
        """The last answer and its time: with it the host aligns the guest's clock with its own."""
        self._closed = threading.Event()
        self.stopping = threading.Event()
        threading.Thread(target=self._listen, name="replies", daemon=True).start()

    def hello(self, **facts: object) -> None:
        """Announce the start of the load to the host, and wait for its reply."""
        with self._lock:
            heard = self._expect(HELLO_SEQ)
            self._send({"event": "hello", "seq": HELLO_SEQ, **facts})
        self._wait(HELLO_SEQ, heard)

    def begin(self, writer: int, operation: Operation) -> int:
        """Announce a writer's first operation; returns its sequence number once the host has it."""
        with self._lock:
            event = self._announcement(writer, operation)
            seq = self._seq
            heard = self._expect(seq)
            self._send({"event": "begin", **event})
        self._wait(seq, heard)
        return seq

    def done(self, writer: int, seq: int, following: Operation | None, **spent: object) -> int:
        """Report that `seq` is done, with the time `spent` on it, and what follows, in one round trip.

        Returns the following operation's sequence number (0 without one).
        """
        with self._lock:
            event: dict[str, object] = {"event": "done", "seq": seq, **spent}
            next_seq = 0
            if following is not None:
                event["next"] = self._announcement(writer, following)
                next_seq = self._seq
            heard = self._expect(seq)
            self._send(event)
        self._wait(seq, heard)
        return next_seq

    def send(self, **event: object) -> None:
        """Send an event without a reply (`failed`, `end`)."""
        with self._lock:
            self._send(event)

    def close(self) -> None:
        """Send and receive nothing more; the listener ends when the host closes its end."""
        self._closed.set()

    def _announcement(self, writer: int, operation: Operation) -> dict[str, object]:
        # The number is drawn under the lock that also orders the lines: they agree.
        self._seq += 1
        return {"seq": self._seq, "writer": writer, **operation.announced()}

    def _expect(self, seq: int) -> threading.Event:
        heard = self._waiting[seq] = threading.Event()
        if self._closed.is_set():  # the listener has read it already
            heard.set()
        return heard

    def _wait(self, seq: int, heard: threading.Event) -> None:
        answered = heard.wait(REPLY_WAIT_S)
        self._waiting.pop(seq, None)
        if not answered or self._closed.is_set():
            self.stopping.set()
            raise HostGoneError(f"no reply to {seq}")

    def _send(self, event: dict[str, object]) -> None:
        if self._answered is not None:
            event["answered_seq"], event["answered_ms"] = self._answered
        event["guest_ms"] = clock_ms()
        left = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        while left:
            left = left[os.write(self._descriptor, left) :]

    def _listen(self) -> None:
        rest = b""
        silent_since: float | None = None
        while not self._closed.is_set() and (
            silent_since is None or time.monotonic() - silent_since < _NO_HOST_WAIT_S
        ):
            try:
                data = os.read(self._descriptor, 4096)
            except OSError:
                data = b""
            if not data:
                silent_since = silent_since or time.monotonic()
                time.sleep(_NO_HOST_POLL_S)
                continue
            silent_since = None
            heard_ms = clock_ms()
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._hear(line.strip(), heard_ms)
        self._closed.set()
        self.stopping.set()
        for heard in list(self._waiting.values()):
            heard.set()

    def _hear(self, line: bytes, heard_ms: float) -> None:
        if line == b"stop":
            self.stopping.set()
        elif line.isdigit() and (heard := self._waiting.get(int(line))):
            self._answered = (int(line), heard_ms)
            heard.set()
