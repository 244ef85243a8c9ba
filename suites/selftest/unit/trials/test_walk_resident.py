"""The dialogue with a resident program, over a real socket; only the guest is a stand-in."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torture.errors import HarnessError
from torture.facts.evidence.folder import Completed
from torture.trials.trial.shared import resident
from torture.trials.trial.shared.resident import ResidentProgram, StorageFailed

_ARGV = ("/usr/lib/torture/recover", "port")
_Play = Callable[[socket.socket], None]


class _Ended(HarnessError):
    """The guest ended."""


class _Guest:
    """A port whose far end plays a part; it can be dead, and its program can have ended."""

    def __init__(self, port: Path) -> None:
        self.name = "nas"
        self.spec = SimpleNamespace(port_socket=port, console_log=Path("nas.console.log"))
        self.agent = self
        self.is_dead = False
        self.ended: Completed | None = None

    def start(self, argv: tuple[str, ...]) -> int:
        assert argv == _ARGV
        return 7

    def poll(self, pid: int, argv: tuple[str, ...]) -> Completed | None:
        assert (pid, argv) == (7, _ARGV)
        return self.ended

    def raise_if_dead(self) -> None:
        if self.is_dead:
            raise _Ended("the guest ended")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "_LOOK_S", 0.02)


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[Callable[[_Play], tuple[_Guest, ResidentProgram]]]:
    """Makes a guest that plays a part, and the program in it."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "port"))
    listener.listen()
    made: list[Any] = [listener]

    def make(play: _Play) -> tuple[_Guest, ResidentProgram]:
        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                play(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        machine = _Guest(tmp_path / "port")
        program = ResidentProgram(machine, _ARGV)  # type: ignore[arg-type]
        made[:0] = [program, SimpleNamespace(close=lambda: thread.join(timeout=10))]
        return machine, program

    yield make
    for thing in made:
        thing.close()


def _answering(*answers: bytes) -> _Play:
    def play(connection: socket.socket) -> None:
        for answer in answers:
            assert connection.recv(100) == b"state\n"
            for byte in answer:  # in pieces
                connection.sendall(bytes([byte]))
        connection.recv(100)

    return play


def test_each_line_gets_its_answer(guest: Any) -> None:
    _, program = guest(_answering(b'{"import": 0}\n', b'{"import": 5}\n'))
    assert program.ask("state", deadline_s=5) == {"import": 0}
    assert program.ask("state", deadline_s=5) == {"import": 5}


@pytest.mark.parametrize("answer", [b"\n", b"{\n", b"[]\n", b'{"failed": "line", "errno": 22}\n'])
def test_another_answer_is_the_machinerys_failure(guest: Any, answer: bytes) -> None:
    _, program = guest(_answering(answer))
    with pytest.raises(HarnessError, match="in nas, /usr/lib/torture/recover answered") as failure:
        program.ask("state", deadline_s=5)
    assert not isinstance(failure.value, StorageFailed)


def test_silence_is_the_storages_failure(guest: Any) -> None:
    _, program = guest(lambda connection: connection.recv(100) and connection.recv(100))
    with pytest.raises(StorageFailed, match="hung for 0\\.1 s at 'state'"):
        program.ask("state", deadline_s=0.1)


def test_the_end_of_the_guest_is_reported_as_such(guest: Any) -> None:
    machine, program = guest(lambda connection: None)
    machine.is_dead = True
    with pytest.raises(_Ended):
        program.ask("state", deadline_s=5)


def test_the_end_of_the_program_is_the_machinerys_failure(guest: Any) -> None:
    machine, program = guest(lambda connection: connection.recv(100) and connection.recv(100))
    machine.ended = Completed(
        vm="nas", argv=_ARGV, exit_code=139, stdout="", stderr="Segmentation", duration_ms=1
    )
    with pytest.raises(HarnessError, match="ended with 139: Segmentation"):
        program.ask("state", deadline_s=5)


def test_a_failed_assertion_of_libzfs_is_the_storages_failure(guest: Any) -> None:
    """A torn label makes `zpool import` end so: no operator gets that pool back."""
    machine, program = guest(lambda connection: connection.recv(100) and connection.recv(100))
    said = "nvlist_lookup_uint64(nvl, name, &rv) == 0\nASSERT at fnpair.c:365:fnvlist_lookup_uint64()\n"
    machine.ended = Completed(
        vm="nas", argv=_ARGV, exit_code=134, stdout="", stderr=said, duration_ms=1
    )
    with pytest.raises(StorageFailed, match="assertion: nvlist_lookup_uint64"):
        program.ask("state", deadline_s=5)
