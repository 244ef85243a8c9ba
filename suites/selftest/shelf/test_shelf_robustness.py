"""Whatever a client says, the shelf does not fall, does not hang, and serves the others."""

from __future__ import annotations

import errno
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.shelf.raw_nbd import (
    CMD_FLUSH,
    CMD_READ,
    CMD_TRIM,
    CMD_WRITE,
    CMD_ZERO,
    FLAG_FUA,
    RawClient,
)
from suites.selftest.shelf.rig import Server, build, disk, of_cut, of_view
from torture.errors import HarnessError
from torture.facts.recording.events import Kind, load_recording

DISK_BYTES = 65536
MARK_BYTES_MAX = 65536


@pytest.fixture
def shelf(folder: Path) -> Iterator[Server]:
    """A shelf of two disks, which has to be well in the end and to have recorded no nonsense."""
    disks = [disk("d0", size=DISK_BYTES), disk("d1", size=DISK_BYTES, sector=4096)]
    server = Server(build(), folder, "s", disks, recording="life")
    yield server
    try:
        must_serve(server)
        assert server.status()["errors"] == 0
        server.stop()
    finally:
        server.end()
    for event in load_recording(folder / "life").events:
        assert event.offset + event.length <= DISK_BYTES or event.kind is Kind.MARK


def must_serve(server: Server) -> None:
    """Another client writes and reads."""
    line = server.line("d0")
    line.wait_all([line.write(b"good" * 128, 0)])
    assert line.wait(line.read(512, 0)).data() == b"good" * 128


def recorded(server: Server) -> int:
    """The number of the last event."""
    return int(server.status()["seq"])


@pytest.mark.parametrize(
    "greeting",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        bytes(1000),
        b"\xff" * 1000,
        b"\0\0\0\3" + b"IHAVEOPT" + b"\0\0\0\7" + b"\xff\xff\xff\xff",
        b"\0\0\0\3" + b"IHAVEOPT" + b"\xff\xff\xff\xff" + b"\0\0\0\0",
        b"\0\0\0\3" + b"IHAVEOPT" + b"\0\0\0\7" + b"\0\0\0\6" + b"\xff\xff\xff\xff\0\0",
        b"\0\0\0\3" + b"IHAVENOT" + b"\0\0\0\7" + b"\0\0\0\6",
    ],
)
def test_garbage_instead_of_a_handshake(greeting: bytes, shelf: Server) -> None:
    with RawClient(shelf.socket) as client:
        client.send(greeting)
        must_serve(shelf)


@pytest.mark.parametrize(
    "name", ["", "nonsense", "d", "d00", "../d0", "d0\0", "x" * 4000, "\u00e9"]
)
def test_an_export_that_is_not_there(name: str, shelf: Server) -> None:
    with RawClient(shelf.socket) as client:
        assert not client.go(name)


TOO_LONG = MARK_BYTES_MAX + 1
REQUESTS = {
    "d0": [
        {"command": CMD_READ, "offset": DISK_BYTES},
        {"command": CMD_READ, "offset": DISK_BYTES - 512, "length": 1024},
        {"command": CMD_READ, "offset": 2**64 - 512},
        {"command": CMD_READ, "offset": 2**63},
        {"command": CMD_READ, "length": 0},
        {"command": CMD_READ, "length": 2**32 - 512},
        {"command": CMD_READ, "offset": 1},
        {"command": CMD_READ, "length": 511},
        {"command": CMD_WRITE, "offset": DISK_BYTES, "payload": bytes(512)},
        {"command": CMD_WRITE, "offset": 2**64 - 512, "payload": bytes(512)},
        {"command": CMD_WRITE, "offset": 100, "payload": bytes(512)},
        {"command": CMD_WRITE, "length": 100, "payload": bytes(100)},
        {"command": CMD_WRITE, "flags": 0xFFFF, "payload": bytes(512)},
        {"command": CMD_TRIM, "offset": DISK_BYTES},
        {"command": CMD_TRIM, "length": 2**32 - 512},
        {"command": CMD_TRIM, "offset": 2**64 - 512, "length": 1024},
        {"command": CMD_TRIM, "length": 513},
        {"command": CMD_ZERO, "offset": DISK_BYTES - 512, "length": 1024},
        {"command": CMD_ZERO, "length": 2**32 - 512},
        {"command": CMD_ZERO, "offset": 8, "length": 504},
        {"command": 77},
        {"command": 0xFFFF, "length": 0},
    ],
    "marks": [
        {"command": CMD_WRITE, "length": TOO_LONG, "payload": bytes(TOO_LONG)},
        {"command": CMD_WRITE, "length": 8, "flags": FLAG_FUA, "payload": bytes(8)},
        {"command": CMD_WRITE, "length": 0},
        {"command": CMD_TRIM},
        {"command": CMD_FLUSH, "length": 0},
    ],
}


@pytest.mark.parametrize(
    ("export", "request_"),
    [(export, request) for export, requests in REQUESTS.items() for request in requests],
)
def test_a_request_that_makes_no_sense_is_refused(
    export: str, request_: dict[str, Any], shelf: Server
) -> None:
    with RawClient(shelf.socket) as client:
        assert client.go(export)
        client.request(**request_)
        assert client.reply() in (errno.EINVAL, errno.ENOSPC, errno.ENOMEM)
        assert recorded(shelf) == 0
        client.request(CMD_WRITE, payload=bytes(512))
        assert client.reply() == 0


@pytest.mark.parametrize("length", [512, 2048, 4096 + 512])
@pytest.mark.parametrize("command", [CMD_READ, CMD_WRITE, CMD_TRIM, CMD_ZERO])
def test_a_large_sector_cannot_be_had_in_parts(command: int, length: int, shelf: Server) -> None:
    with RawClient(shelf.socket) as client:
        assert client.go("d1")
        client.request(
            command, length=length, payload=bytes(length) if command == CMD_WRITE else b""
        )
        assert client.reply() == errno.EINVAL
    assert recorded(shelf) == 0


@pytest.mark.parametrize(
    "request_",
    [
        {"command": CMD_WRITE, "length": 2**32 - 1},
        {"command": CMD_TRIM, "magic": 0x12345678},
    ],
    ids=["more data than a request may have", "no magic"],
)
def test_a_request_that_cannot_be_answered_ends_the_connection(
    request_: dict[str, Any], shelf: Server
) -> None:
    with RawClient(shelf.socket) as client:
        assert client.go("d0")
        client.request(**request_)
        with pytest.raises(ConnectionError):
            assert client.reply() == 0
    assert recorded(shelf) == 0


@pytest.mark.parametrize("sent", [0, 1, 512, 4095])
def test_half_a_write_is_none(sent: int, shelf: Server) -> None:
    """The client vanishes before its payload is there."""
    with RawClient(shelf.socket) as client:
        assert client.go("d0")
        client.request(CMD_WRITE, length=4096, payload=b"x" * sent)
    must_serve(shelf)
    assert recorded(shelf) == 2, "one write, submitted and completed, is what must_serve does"


def test_a_client_that_vanishes_leaves_its_submitted_requests(folder: Path) -> None:
    """Its requests are done, without an answer."""
    disks = [disk("d0", size=DISK_BYTES, profile={"write_us": 20_000})]
    server = Server(build(), folder, "s", disks, recording="life")
    for _ in range(5):
        line = server.line("d0")
        before = recorded(server)
        # not where must_serve writes: of two writes in flight to one place either may come last
        replies = [line.write(b"x" * 512, place * 512) for place in range(1, 5)]
        deadline = time.monotonic() + 10
        while recorded(server) < before + 4:
            assert time.monotonic() < deadline
        del line, replies
    must_serve(server)
    server.stop()
    events = load_recording(folder / "life").events
    kinds = Counter(event.kind for event in events)
    # a client may go before the shelf has read its last request, so not all 5 * 4 must be there
    assert kinds[Kind.WRITE_COMPLETE] == kinds[Kind.WRITE_SUBMIT] > 5
    assert max(event.in_flight for event in events) > 1
    assert events[-1].in_flight == 0


@pytest.mark.parametrize("length", [1, 511, 512, 513, MARK_BYTES_MAX])
def test_a_mark_has_any_length_up_to_its_maximum(length: int, shelf: Server, folder: Path) -> None:
    line = shelf.line("marks")
    line.wait_all([line.write(b"m" * length, 5)])
    recording = load_recording(folder / "life")
    assert [recording.payload(event) for event in recording.events[1:]] == [b"m" * length]


@pytest.mark.parametrize(
    "command",
    [
        b"nonsense", b"{", b"[]", b"null", b"7", b'"freeze"', b"\xff\xfe\x00", b"{}" * 2, b"{}",
        b'{"thaw": "now"}', b'{"freeze": "later"}', b'{"freeze": null}', b'{"freeze": []}',
        b'{"freeze": {}}', b'{"freeze": {"after_ms": "soon"}}', b'{"freeze": {"after_ms": -1}}',
        b'{"freeze": {"after_ms": 1e300}}', b'{"freeze": {"at_seq": -1}}',
        b'{"freeze": {"at_seq": 1.5}}', b'{"freeze": {"at_seq": "9"}}',
        b'{"freeze": {"at_seq": 18446744073709551616}}', b'{"freeze": {"event": "sneeze"}}',
        b'{"freeze": {"event": 1}}', b'{"freeze": {"event": "mark", "count": 0}}',
        b'{"freeze": {"event": "mark", "count": -1}}', b'{"freeze": {"event": "mark", "count": "x"}}',
        b'{"freeze": {"event": "mark", "disk": "nonsense"}}',
        b'{"freeze": {"event": "mark", "disk": 0}}', b"[" * 65536, b'{"freeze":' * 6000,
    ],
)  # fmt: skip
def test_nonsense_on_control_is_refused(command: bytes, shelf: Server) -> None:
    with RawClient(shelf.socket) as client:
        assert client.go("control")
        client.request(CMD_WRITE, length=len(command), payload=command)
        assert client.reply() == errno.EINVAL
    assert not shelf.status()["frozen"]


def test_a_command_may_be_padded(folder: Path) -> None:
    server = Server(build(), folder, "s", [disk("d0")], recording="life")
    control = server.line("control")
    command = json.dumps({"freeze": {"at_seq": 0}}).encode()
    control.wait_all([control.write(command + b" " * 200 + b"\n" * 300, 0)])
    assert server.status()["frozen"]
    server.kill()
    assert [event.kind for event in load_recording(folder / "life").events] == [
        Kind.BEGIN, Kind.FREEZE
    ]  # fmt: skip


@pytest.mark.parametrize(
    "configuration",
    [
        "", "{", "[]", '{"schema": 1}', '{"schema": 2, "disks": []}',
        '{"schema": 1, "disks": [{"name": "d0", "size": 512, "sector": 1024}]}',
        '{"schema": 1, "disks": [{"name": "d0", "size": 100}]}',
        '{"schema": 1, "disks": [{"name": "d0", "size": -512}]}',
        '{"schema": 1, "disks": [{"name": "d0", "size": 0}]}',
        '{"schema": 1, "disks": [{"name": "", "size": 512}]}',
        '{"schema": 1, "disks": [{"name": "marks", "size": 512}]}',
        '{"schema": 1, "disks": [{"name": "a", "size": 512}, {"name": "a", "size": 512}]}',
        '{"schema": 1, "disks": [{"name": "a", "size": 512, "source": {"image": "gone.raw"}}]}',
        '{"schema": 1, "disks": [{"name": "a", "size": 512, "source": {"view": "gone.json"}}]}',
    ],
)  # fmt: skip
def test_a_configuration_that_makes_no_sense_is_refused(configuration: str, folder: Path) -> None:
    with pytest.raises(HarnessError, match=r"error: shelf: .*(json|gone\.raw)"):
        Server(build(), folder, "s", [], configuration=configuration)


def test_a_recording_is_never_written_over(folder: Path) -> None:
    Server(build(), folder, "first", [disk("d0")], recording="life").kill()
    before = (folder / "life" / "log").read_bytes()
    with pytest.raises(HarnessError, match="exists"):
        Server(build(), folder, "second", [disk("d0")], recording="life")
    assert (folder / "life" / "log").read_bytes() == before


def test_views_that_go_round_in_a_circle_are_refused(folder: Path) -> None:
    """A recording whose disk began as what a view of it left."""
    Server(build(), folder, "first", [disk("d0")], recording="life").stop()
    source = of_cut(folder, 0)
    configuration = {"schema": 1, "disks": [disk("d0", source=of_view("../cut.view.json", "d0"))]}
    (folder / "life" / "shelf.json").write_text(json.dumps(configuration))
    with pytest.raises(HarnessError, match="views of views"):
        Server(build(), folder, "second", [disk("d0", source=source)])
