"""The host's end of the ledger against the guest's own writer, over a real socket.

Whose fault it is that a saved state does not resume, and what becomes of the state.
"""

from __future__ import annotations

import errno
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import libvirt
import pytest

from suites.selftest.unit.machines.test_domains import SPEC
from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.evidence.ledger import STOP, Begin, Cut, Done, End, Hello, parse_ledger, reply_to
from torture.machines.lab import machine as machine_module
from torture.machines.lab.agent import StartRefused, StateFault, fault_of_state
from torture.machines.lab.ledger_server import LedgerServer
from torture.machines.lab.machine import Machine
from torture.machines.lab.saved_states import WarmStates
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


RECORDED = Path(__file__).resolve().parents[2] / "recorded" / "resume"
REFUSALS = {
    (path.stem, case): words
    for path in sorted(RECORDED.glob("*.json"))
    for case, words in json.loads(path.read_text())["refusals"].items()
}
ELSEWHERE = frozenset(
    {"name-not-let-go", "name-taken", "no-folder-of-the-console", "no-kernel", "no-qemu", "no-room",
     "no-root-image", "no-state", "no-tap", "out-of-files", "out-of-memory", "tap-taken"}
)  # fmt: skip
UNEXPLAINED = frozenset({"qemu-killed"})
SILENT = DeadlineExceeded("the guest agent of nas did not answer within 60 s")
DAMAGED = StartRefused("nas does not resume", refusal="operation failed: image magic is incorrect")
NAME_TAKEN = StartRefused(
    "nas does not resume", refusal="operation failed: domain 'nas' is already being removed"
)


def fault(refusal: str) -> StateFault:
    return fault_of_state(StartRefused("nas does not resume", refusal=refusal))


def test_every_failure_was_recorded_with_each_libvirt() -> None:
    stems = {stem for stem, _ in REFUSALS}
    cases = {case for _, case in REFUSALS}
    assert len(stems) == 2
    assert set(REFUSALS) == {(stem, case) for stem in stems for case in cases}
    assert cases > ELSEWHERE | UNEXPLAINED


@pytest.mark.parametrize(("stem", "case"), REFUSALS)
def test_only_a_wrong_file_is_the_fault_of_the_state(stem: str, case: str) -> None:
    expected = StateFault.CERTAIN
    if case in ELSEWHERE:
        expected = StateFault.NONE
    if case in UNEXPLAINED:
        expected = StateFault.POSSIBLE
    assert fault(REFUSALS[stem, case]) is expected


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        # written down from the sources of QEMU and libvirt
        ("operation failed: job 'start' unexpectedly failed", StateFault.POSSIBLE),
        (
            "internal error: qemu unexpectedly closed the monitor: qemu-system-x86_64: "
            "../target/i386/kvm/kvm.c:2893: kvm_buf_set_msrs: Assertion `ret == n' failed.",
            StateFault.POSSIBLE,
        ),
        ("Domain not found: no domain with matching name 'nas'", StateFault.POSSIBLE),
        (
            "operation failed: guest CPU doesn't match specification: missing features: avx512f",
            StateFault.CERTAIN,
        ),
        (
            "operation failed: job 'start' failed: load of migration failed: Cannot allocate memory",
            StateFault.NONE,
        ),
        ("words that are new", StateFault.NONE),
    ],
)
def test_rarer_words_are_understood_too(refusal: str, expected: StateFault) -> None:
    assert fault(refusal) is expected


def test_a_guest_that_stays_silent_after_its_resume_puts_the_state_under_suspicion() -> None:
    assert fault_of_state(SILENT) is StateFault.POSSIBLE


class Nas:
    """A machine whose next resume fails in the given way, or works."""

    name = "nas"

    def __init__(self) -> None:
        self.failure: HarnessError | None = None

    def resume(self, _state: Path, *, deadline_s: float) -> None:
        assert deadline_s > 0
        if self.failure is not None:
            raise self.failure


class Resumes:
    """Resumes from one saved state, again and again."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "nas-0123.state"
        self.state.write_bytes(b"LibvirtQemudSave")
        self.announced: list[str] = []
        self._warm = WarmStates(directory=folder, connection=None, libvirt_root=folder)
        self._nas = Nas()

    def resume(self, failure: HarnessError | None) -> None:
        self._nas.failure = failure
        machine = cast(Machine, self._nas)
        self._warm.resume(machine, self.state, deadline_s=1, say=self.announced.append)

    def fail(self, failure: HarnessError) -> None:
        with pytest.raises(HarnessError) as raised:
            self.resume(failure)
        assert raised.value is failure


@pytest.mark.parametrize(
    ("failures", "is_kept"),
    [
        ([DAMAGED], False),
        ([NAME_TAKEN] * 10, True),
        ([SILENT], True),
        ([SILENT, SILENT], False),
        ([SILENT, None, SILENT], True),
        ([SILENT, NAME_TAKEN], True),
        ([SILENT, NAME_TAKEN, SILENT], False),
    ],
    ids=[
        "a damaged state is deleted at once",
        "a sound state outlives any number of failures elsewhere",
        "one silence is a suspicion",
        "a suspected state is deleted at the second failure in a row",
        "a resume that works clears a state of suspicion",
        "a failure elsewhere raises no suspicion",
        "a failure elsewhere clears no suspicion",
    ],
)
def test_a_state_is_kept_until_its_failures_are_its_own(
    failures: list[HarnessError | None], is_kept: bool, tmp_path: Path
) -> None:
    resumes = Resumes(tmp_path)
    for place, failure in enumerate(failures, start=1):
        resumes.fail(failure) if failure else resumes.resume(None)
        assert resumes.state.exists() or place == len(failures)
    assert resumes.state.exists() is is_kept
    if SILENT not in failures or not is_kept:
        assert list(tmp_path.iterdir()) == ([resumes.state] if is_kept else [])
    said = ["deleting the saved state of nas, which did not resume"]
    assert resumes.announced == ([] if is_kept else said)


class Refusal(libvirt.libvirtError):  # type: ignore[misc]
    """The error that libvirt raises; without a connection it has no code of its own."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words)
        self.code = code

    def get_error_code(self) -> int:
        return self.code


class Libvirt:
    """Finds no domain, lists `nas` a few times more, and refuses every start."""

    def __init__(self, *, listings: int) -> None:
        self.listings = listings

    def lookupByName(self, name: str) -> Any:
        raise Refusal(f"no domain {name}", libvirt.VIR_ERR_NO_DOMAIN)

    def listDefinedDomains(self) -> list[str]:
        self.listings -= 1
        return ["other", "nas"] if self.listings >= 0 else ["other"]

    def createXML(self, _xml: str, _flags: int) -> Any:
        words = "too early" if self.listings >= 0 else "in time"
        raise Refusal(words, libvirt.VIR_ERR_OPERATION_FAILED)


def refused_start(connection: Libvirt, root: Path) -> StartRefused:
    nas = Machine(connection=connection, libvirt_root=root, spec=SPEC)
    with pytest.raises(StartRefused) as raised:
        nas.boot(deadline_s=1)
    return raised.value


def test_a_start_waits_until_the_former_life_has_left_the_list(tmp_path: Path) -> None:
    assert refused_start(Libvirt(listings=3), tmp_path).refusal == "in time"


def test_a_former_life_that_never_leaves_is_not_the_fault_of_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_module, "_GONE_DEADLINE_S", 0.05)
    error = refused_start(Libvirt(listings=10**9), tmp_path)
    assert "end of the former nas" in error.message
    assert fault_of_state(error) is StateFault.NONE
