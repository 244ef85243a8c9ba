"""The host's end of the ledger against the guest's own writer, over a real socket."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from torture.facts.evidence.ledger import STOP, Begin, Cut, Done, End, Hello, parse_ledger, reply_to
from torture.machines.lab.ledger_server import LedgerServer
from vmimages.client.load import write
from vmimages.client.load.storage import FileStorage

_DEADLINE_S = 20


class Guest(threading.Thread):
    """The writer as the client runs it, its port one end of a socket."""

    def __init__(self, port: socket.socket, directory: Path) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._job: dict[str, Any] = {
            "trial": 1,
            "seed": 1,
            "mode": "files",
            "directory": str(directory),
            "writers": 2,
            "files_per_writer": 2,
            "blocks_per_file_max": 4,
            "duration_ms": 60_000,
        }
        self.exit_code: int | None = None

    def run(self) -> None:
        self.exit_code = write.run(self._job, self._port.fileno())


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Closes what a test opened, when it is over."""
    with ExitStack() as made:
        yield made


@pytest.fixture
def qemu(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket on which the client's QEMU listens."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "port"))
        listener.listen()
        yield listener


@pytest.fixture
def server(tmp_path: Path, qemu: socket.socket) -> Iterator[LedgerServer]:
    begun_s = time.monotonic()
    made = LedgerServer(
        client_socket=tmp_path / "port",
        file=tmp_path / "ledger.jsonl",
        clock_ms=lambda: (time.monotonic() - begun_s) * 1000,
    )
    yield made
    made.close()


def _directory(tmp_path: Path) -> Path:
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


@pytest.fixture
def guest(tmp_path: Path, qemu: socket.socket, server: LedgerServer, stack: ExitStack) -> Guest:
    """A guest at work, of whom the server has received acknowledgements."""
    server.start()
    port = stack.enter_context(qemu.accept()[0])
    guest = Guest(port, _directory(tmp_path))
    guest.start()
    assert server.wait_until(lambda: server.acknowledged >= 8, deadline_s=_DEADLINE_S)
    return guest


def test_counted_lines_are_in_the_file_and_the_load_ends_when_asked(
    tmp_path: Path, server: LedgerServer, guest: Guest
) -> None:
    server.mark_cut(1.5)
    server.stop_load()
    assert server.wait_until(lambda: server.ended, deadline_s=_DEADLINE_S)
    guest.join(_DEADLINE_S)
    assert guest.exit_code == write.EXIT_OK
    kept = parse_ledger((tmp_path / "ledger.jsonl").read_bytes())
    durable = {e.seq for e in kept.events if isinstance(e, Begin) and e.kind.is_durable}
    done = {e.seq for e in kept.events if isinstance(e, Done)}
    assert kept.garbled == 0
    assert kept.cut_ms == 1.5
    assert len(done & durable) == server.acknowledged
    assert sum(isinstance(e, Begin) for e in kept.events) == server.begun
    assert {type(e) for e in kept.events} == {Hello, Begin, Done, Cut, End}


def test_writers_that_have_all_failed_are_a_load_that_is_over(
    server: LedgerServer, guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing more comes of it: who waited for an acknowledgement would take the NAS for gone."""
    assert not server.ended

    def fail(storage: FileStorage, *_: object) -> None:
        raise OSError(errno.EIO, "as a medium that fails")

    monkeypatch.setattr(FileStorage, "perform", fail)
    assert server.wait_until(lambda: server.ended, deadline_s=_DEADLINE_S)
    assert server.failed == 2
    server.stop_load()
    guest.join(_DEADLINE_S)
    assert guest.exit_code == write.EXIT_OK


def test_the_client_does_not_go_on_before_the_host_has_it(
    tmp_path: Path,
) -> None:
    """A host that hears and does not answer hears the first word, and no more."""
    host, guest_end = socket.socketpair()
    with host, guest_end:
        guest = Guest(guest_end, _directory(tmp_path))
        guest.start()
        received = _all_received(host, silence_s=0.5)
        assert received.count(b"\n") == 1
        assert b'"hello"' in received
        assert list((tmp_path / "disk").iterdir()) == []
        host.sendall(STOP)
        _answer(host, received)
        guest.join(_DEADLINE_S)
    assert guest.exit_code == write.EXIT_OK


def _answer(host: socket.socket, received: bytes) -> None:
    """Answer what was received and all that comes, until the guest says its end."""
    while received:
        for line in received.splitlines():
            if (reply := reply_to(line)) is not None:
                host.sendall(reply)
        if b'"end"' in received:
            return
        received = host.recv(65536)


def _all_received(host: socket.socket, *, silence_s: float) -> bytes:
    host.settimeout(silence_s)
    received = b""
    try:
        while more := host.recv(65536):
            received += more
    except TimeoutError:
        pass
    return received
