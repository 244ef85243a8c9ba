"""The wire and a client's disk as proofs: promises of each cut, and the verifiers of an NFS server.

The dialogue with a resident program, over a real socket; only the guest is a stand-in.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from torture.choices.matrix.cells import TRANSPORT, Cell
from torture.choices.transports import AXIS as TRANSPORTS
from torture.choices.transports.protocol import Attachment, Traits, Transport
from torture.choices.volumes import VolumeOptions
from torture.errors import HarnessError
from torture.facts.axes.axis import Choice
from torture.facts.axes.sync import Sync
from torture.facts.evidence.folder import VERIFIERS, Completed
from torture.facts.evidence.requests import (
    BLOCK_REQUESTS,
    FILE_REQUESTS,
    BlockKind,
    BlockRequest,
    FileKind,
    FileRequest,
)
from torture.facts.recording.events import Event, Kind, Recording
from torture.facts.wire.disk_requests import DiskWire
from torture.facts.wire.nvme_pdus import NvmeTcpOnWire
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Advertised
from torture.trials.trial.courses import cut_course
from torture.trials.trial.promises.client_requests import (
    completions_before,
    keep_verifiers,
    listen_on_wire,
    unlike_on_wire,
)
from torture.trials.trial.promises.disk_trace import QemuTrace, WireTrace
from torture.trials.trial.shared import resident
from torture.trials.trial.shared.machines import PowerCut, Trial
from torture.trials.trial.shared.resident import EvidenceWriter, ResidentProgram, StorageFailed


class Listener:
    """Stands in for a packet socket: what is written down is there once it has been stopped."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True
        self.file.write_bytes(b"")


@pytest.mark.parametrize("choice", TRANSPORTS.choices, ids=lambda choice: choice.name)
def test_every_transport_has_one_witness_of_its_promises(choice: Choice[Transport]) -> None:
    attachment = choice.value.attachment(nas_host="nas")
    witnesses = [one for one in (attachment.source, attachment.wire) if one is not None]
    assert len(witnesses) == (0 if choice.value.traits.is_local else 1)


def traced(folder: Path, *, spans: int) -> tuple[WireTrace, list[Listener]]:
    listeners: list[Listener] = []

    def listen(file: Path) -> Any:
        listeners.append(Listener(file))
        return listeners[-1]

    protocol = DiskWire(protocol=NvmeTcpOnWire(4420))
    wire = WireTrace(protocol, sector_bytes=512, spans=spans, folder=folder, listen=listen)
    return wire, listeners


@pytest.mark.parametrize("spans", [1, 2])
def test_the_wire_is_recorded_to_the_last_span_and_no_longer(tmp_path: Path, spans: int) -> None:
    wire, listeners = traced(tmp_path, spans=spans)
    for _ in range(spans):
        assert not listeners[-1].is_stopped
        assert wire.requests() == ()
    assert all(listener.is_stopped for listener in listeners)
    assert [x.file.name for x in listeners] == [f"wire-{x + 1}.pcap" for x in range(spans)]


def test_no_listener_is_left_after_a_trial(tmp_path: Path) -> None:
    wire, [listener] = traced(tmp_path, spans=2)
    wire.close()
    assert listener.is_stopped


def test_a_trace_that_is_not_there_is_the_machinerys_failure(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="QEMU wrote no trace"):
        QemuTrace(file=tmp_path / "none").requests()


def audited(
    folder: Path, *requests: BlockRequest, acknowledged: int = 0, fault: str | None = None
) -> tuple[BlockRequest, ...]:
    """The known requests of a disk at a cut 1 s after the log began, at 5 s by the host's clock."""
    trace = SimpleNamespace(requests=lambda: requests, error_ns=7)
    marks = SimpleNamespace(spans_ns=[(5_499_999_000, 5_500_001_000)])
    machines: Any = SimpleNamespace(disk_trace=trace, marks=marks)
    trial: Any = SimpleNamespace(
        fault=fault,
        folder=folder,
        attachment=Attachment(),
        transport=SimpleNamespace(traits=Traits(ports=())),
        volume_options=VolumeOptions(sync=Sync.STANDARD),
    )
    events = (
        Event(seq=0, time_ns=500_000_000, kind=Kind.MARK),
        Event(seq=1, time_ns=1_000_000_000, kind=Kind.WRITE_COMPLETE),
    )
    recording = Recording(folder=folder, disks=(), events=events)
    power_cut = PowerCut(recording=recording, seq=1, t_ms=0.0, took_ms=0.0)
    completions = completions_before(
        trial, machines, power_cut, acknowledged=acknowledged, is_second=False
    )
    assert completions is not None
    assert completions.error_ns == 1_000 + 7
    lines = (folder / BLOCK_REQUESTS).read_text().splitlines()
    assert [BlockRequest(**json.loads(line)) for line in lines] == [*completions.requests]
    return tuple(x for x in completions.requests if isinstance(x, BlockRequest))


def flush(submitted_ms: int, completed_ms: int) -> BlockRequest:
    return BlockRequest(
        kind=BlockKind.FLUSH,
        submitted_ns=submitted_ms * 1_000_000,
        completed_ns=completed_ms * 1_000_000,
    )


def test_times_of_the_hosts_clock_are_aligned_with_the_recording(tmp_path: Path) -> None:
    known = audited(tmp_path, flush(5_100, 5_900), flush(5_200, 6_100), acknowledged=1)
    assert known == (flush(100, 900),), "the other was completed after the cut"


def test_a_disk_without_a_trace_does_not_count_as_correct(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="3 operations were acknowledged"):
        audited(tmp_path, acknowledged=3)
    assert audited(tmp_path, acknowledged=0) == ()
    assert audited(tmp_path, acknowledged=3, fault="fsync-ignored") == ()


def test_a_disk_whose_blocks_the_nas_moves_is_not_looked_for_at_their_places() -> None:
    asked: Any = SimpleNamespace(disk_trace=QemuTrace(file=Path("nowhere")), marks=object())
    power_cut: Any = None

    def look(disk: str) -> object:
        cell = Cell.parse(f"{disk}-standard-noslog-ext4-bothdie")
        trial: Any = SimpleNamespace(transport=cell[TRANSPORT])
        return completions_before(trial, asked, power_cut, acknowledged=1, is_second=False)

    assert look("scst_file_xfs") is None
    with pytest.raises(HarnessError, match="QEMU wrote no trace"):
        look("scst_file")


# The write verifiers of an NFS server's two lives: kept where a client that lived on shows both.

_LIVES, _DIES = "nfs4-standard-noslog-files-nasonly", "nfs4-standard-noslog-files-bothdie"
_DISK = "nvme_tcp-standard-noslog-ext4-nasonly"


def _request(verifier: str) -> FileRequest:
    return FileRequest(kind=FileKind.WRITE, submitted_ns=1, completed_ns=2, verifier=verifier)


def _trial(folder: Path, cell: str) -> Trial:
    return Trial.begin(
        TrialSpec(cell=Cell.parse(cell), index=0, seed=1, load_ms=1000),
        folder=folder,
        scratch=folder / "scratch",
        nas_host="nas",
    )


def _kept(folder: Path, *, cell: str, before: list[str], after: list[str]) -> dict[str, Any] | None:
    lines = "".join(json.dumps(asdict(_request(verifier))) + "\n" for verifier in before)
    (folder / FILE_REQUESTS).write_text(lines)
    trace = SimpleNamespace(requests=lambda: tuple(map(_request, after)))
    machines: Any = SimpleNamespace(disk_trace=trace)
    keep_verifiers(_trial(folder, cell), machines, EvidenceWriter(folder=folder))
    document = folder / VERIFIERS
    return json.loads(document.read_text()) if document.exists() else None


def test_the_verifiers_of_both_lives_are_kept(tmp_path: Path) -> None:
    kept = _kept(tmp_path, cell=_LIVES, before=["", "b", "a", "b"], after=["c", ""])
    assert kept == {"before": ["a", "b"], "after": ["c"]}


@pytest.mark.parametrize(
    ("of", "before", "after"),
    [
        (_LIVES, ["a"], []),
        (_LIVES, [""], ["b"]),
        (_DIES, ["a"], ["b"]),
        (_DISK, ["a"], ["b"]),
    ],
)
def test_nothing_is_kept_where_one_life_shows_none(
    tmp_path: Path, of: str, before: list[str], after: list[str]
) -> None:
    assert _kept(tmp_path, cell=of, before=before, after=after) is None


@pytest.mark.parametrize(
    ("image", "stable", "unlike"),
    [
        ("rawimage", [True, True], ()),
        (
            "rawimage",
            [True, False],
            ("under the load: 1 of 2 requests on the wire are stable, not all",),
        ),
        (
            "qcow2-noflush",
            [False],
            ("under the load: 0 of 1 requests on the wire are stable, not all",),
        ),
        ("rawimage-writeback", [True, False], ()),
        (
            "rawimage-writeback",
            [True],
            ("under the load: 1 of 1 requests on the wire are stable, not some",),
        ),
        ("rawimage-writeback", [], ()),
        ("rawimage-unsafe", [True], ()),
        ("rawimage-writethrough", [True], ()),
    ],
)
def test_another_mode_on_the_wire_is_not_in_effect(
    tmp_path: Path, image: str, stable: list[bool], unlike: tuple[str, ...]
) -> None:
    requests = [replace(_request(""), is_forced=is_stable) for is_stable in stable]
    lines = (json.dumps(asdict(request)) + "\n" for request in requests)
    (tmp_path / FILE_REQUESTS).write_text("".join(lines))
    trial = _trial(tmp_path, f"nfs3-{image}-standard-noslog-ext4-nasonly")
    assert unlike_on_wire(trial) == unlike
    on_files = _trial(tmp_path, "smb-rawimage-standard-noslog-ext4-nasonly")
    assert unlike_on_wire(on_files) == unlike_on_wire(_trial(tmp_path, _LIVES)) == ()


def test_a_wire_that_cannot_be_read_ends_no_trial(tmp_path: Path) -> None:
    def requests() -> NoReturn:
        raise HarnessError("the wire is garbled")

    (tmp_path / FILE_REQUESTS).write_text(json.dumps(asdict(_request("a"))) + "\n")
    machines: Any = SimpleNamespace(disk_trace=SimpleNamespace(requests=requests))
    keep_verifiers(_trial(tmp_path, _LIVES), machines, EvidenceWriter(folder=tmp_path))
    seen = json.loads((tmp_path / VERIFIERS).read_text())
    assert seen == {"unread": "the wire is garbled"}
    assert Advertised().with_verifiers(seen) == Advertised()


@pytest.mark.parametrize(("of", "spans"), [(_LIVES, 2), (_DIES, 1), (_DISK, 1)])
def test_the_wire_is_heard_again_where_a_client_of_files_lives_on(
    tmp_path: Path, of: str, spans: int
) -> None:
    files: list[Path] = []

    def listen(file: Path) -> Any:
        file.write_bytes(b"")
        files.append(file)
        return SimpleNamespace(file=file, stop=lambda: None)

    trial = _trial(tmp_path, of)
    assert trial.plan.second is None
    lab = SimpleNamespace(record_nas_packets=listen)
    shelf = SimpleNamespace(directory=tmp_path)
    machines: Any = SimpleNamespace(lab=lab, shelf=shelf, disk_trace=None)
    listen_on_wire(trial, machines)
    machines.disk_trace.requests()
    assert len(files) == spans


def test_the_verifiers_are_kept_once_the_nas_has_read_all_of_a_client_that_lived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []

    def notes(name: str) -> Callable[..., bool]:
        def note(*_parts: Any, **_words: Any) -> bool:
            happened.append(name)
            return True

        return note

    for step in ("go_on", "stop_client", "wait_until_idle", "keep_verifiers"):
        monkeypatch.setattr(cut_course, step, notes(step))
    machines: Any = SimpleNamespace(begin_checker=notes("checker"))
    client: Any = SimpleNamespace(kill=notes("kill"))
    returned, loads = (
        cast("Any", SimpleNamespace(nas=object(), former_cache=b"")),
        cast("Any", None),
    )
    evidence = EvidenceWriter(folder=tmp_path)
    trial = _trial(tmp_path, _LIVES)
    assert cut_course._live_on(trial, machines, evidence, loads, returned, client) is returned
    assert happened == [
        "go_on", "stop_client", "kill", "checker", "wait_until_idle", "keep_verifiers",
    ]  # fmt: skip


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
