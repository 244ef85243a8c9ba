"""The host's end of a load that runs on this machine."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from torture.facts.evidence import ledger
from vmimages.client.load import write

WAIT_S = 20.0
QUIET_S = 0.5


class Host:
    """The host's end: stamps each line, stores it, and only then answers.

    After `pause_after` acknowledgements it answers no writer. Once all are silent it runs `meanwhile`,
    and goes on. After `stop_after` it says stop.
    """

    def __init__(
        self,
        connection: socket.socket | int,
        *,
        stop_after: int,
        pause_after: int = 0,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        self._descriptor = connection if isinstance(connection, int) else connection.fileno()
        self._stop_after = stop_after
        self._pause_after = pause_after
        self._meanwhile = meanwhile
        self.stored = bytearray()
        self.acknowledgements = 0
        self._held: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def ledger(self) -> ledger.Ledger:
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive(), "the load never said that it ended"
        return ledger.parse_ledger(bytes(self.stored))

    def _serve(self) -> None:
        rest = b""
        began = time.monotonic()
        while b'"event":"end"' not in self.stored and time.monotonic() - began < WAIT_S:
            if self._held and not select.select([self._descriptor], [], [], QUIET_S)[0]:
                self._go_on()
                continue
            try:
                *lines, rest = (rest + os.read(self._descriptor, 65536)).split(b"\n")
            except OSError:
                return
            for line in lines:
                self.stored += ledger.stamp(line, (time.monotonic() - began) * 1000)
                self._answer(line)

    def _answer(self, line: bytes) -> None:
        self.acknowledgements += b'"event":"done"' in line
        reply = ledger.reply_to(line)
        if reply is None:
            return
        if self._pause_after and self.acknowledgements >= self._pause_after:
            self._held.append(reply)
            return
        os.write(self._descriptor, reply)
        if self.acknowledgements == self._stop_after:
            os.write(self._descriptor, ledger.STOP)

    def _go_on(self) -> None:
        """All are silent: every writer waits for an answer, or for another writer."""
        self._meanwhile()
        self._pause_after = 0
        os.write(self._descriptor, b"".join(self._held))
        self._held.clear()


def run_load(job: dict[str, Any], **options: Any) -> ledger.Ledger:
    """The ledger of a load that ended well; the options are those of its host."""
    ours, guests = socket.socketpair()
    with ours, guests:
        host = Host(ours, **options)
        assert write.run(job, guests.fileno()) == write.EXIT_OK
        return host.ledger()
