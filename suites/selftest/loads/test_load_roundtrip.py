"""The real guest program, on a real directory: written, read back, and judged; then tampered with."""

from __future__ import annotations

import copy
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from suites.selftest.loads.load_host import WAIT_S, Host, run_load
from torture.choices.workloads._guest_load import guest_command, job_read_back_by
from torture.facts.evidence import ledger
from torture.files import CHECKOUT
from torture.oracles.verdict.blocks.history import parse_readback
from torture.oracles.verdict.blocks.oracle import consult
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.judgement import Findings
from vmimages.client.load import channel, read, storage, write
from vmimages.client.load.blocks import BLOCK_BYTES
from vmimages.client.load.plan import busy_files
from vmimages.client.load.storage import file_name

APPLICATIONS = {ledger.OperationKind.TRANSACTION, ledger.OperationKind.LAZY_TRANSACTION}


def job_for(directory: Path, **changes: object) -> dict[str, Any]:
    job: dict[str, Any] = {
        "trial": 11,
        "seed": 5,
        "mode": "files",
        "directory": str(directory),
        "writers": 3,
        "files_per_writer": 3,
        "blocks_per_file_max": 8,
        "keepsakes_per_writer": 40,
        "duration_ms": 120_000,
    }
    return job | changes


class Written:
    """One finished load, and a copy of its directory from a moment when no writer was writing."""

    def __init__(self, base: Path) -> None:
        self.directory, self.earlier = base / "now", base / "earlier"
        self.directory.mkdir()
        self.job = job_for(self.directory)
        self.ledger = run_load(
            self.job,
            stop_after=600,
            pause_after=300,
            meanwhile=lambda: shutil.copytree(self.directory, self.earlier),
        )

    def judged(self, directory: Path) -> Findings:
        document = read.run(self.job | {"directory": str(directory)})
        return consult(self.ledger, parse_readback(json.dumps(document)), cut_ms=None)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """By a load that is in a hurry: what it waits on purpose changes nothing that it writes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "time", SimpleNamespace(monotonic_ns=time.monotonic_ns, sleep=_nod))
        return Written(tmp_path_factory.mktemp("load"))


def _nod(seconds: float) -> None:
    time.sleep(seconds / 20)


@pytest.fixture
def tampered(written: Written, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written.directory, tmp_path / "tampered"))


def first_keepsake(written: Written) -> str:
    return file_name(busy_files(written.job).stop)


def newest_keepsake(written: Written) -> str:
    return max(path.name for path in written.directory.iterdir())


def test_written_data_reads_back_intact(written: Written) -> None:
    findings = written.judged(written.directory)
    assert findings.verdict is Verdict.INTACT, findings.reasons
    assert findings.acknowledged > 100
    assert findings.lost == 0
    assert not written.ledger.garbled
    assert {
        event.kind for event in written.ledger.events if isinstance(event, ledger.Begin)
    } == set(ledger.OperationKind) - APPLICATIONS


def test_each_operation_reports_the_time_spent_on_it_without_its_waits(written: Written) -> None:
    events = written.ledger.events
    begun = {event.seq: event for event in events if isinstance(event, ledger.Begin)}
    ended = [event for event in events if isinstance(event, ledger.Done)]
    for event in ended:
        assert event.work_ms is not None
        assert bool(event.sync_ms) is begun[event.seq].kind.is_durable
        assert sum(event.sync_ms) <= event.work_ms + 0.01
        assert event.work_ms <= event.t_ms - begun[event.seq].t_ms + 1
    thinking = sum((event.work_ms or 0) - sum(event.sync_ms) >= 20 for event in ended)
    assert thinking < len(ended) / 10, "two in five think, each for longer than that"


def test_an_older_copy_of_everything_is_rolled_back(written: Written) -> None:
    findings = written.judged(written.earlier)
    assert findings.verdict is Verdict.ROLLED_BACK, findings.reasons
    assert findings.lost > 20
    assert findings.rollback_ms is not None
    assert findings.rollback_ms > 0


def test_one_file_of_an_older_copy_is_corruption(written: Written, tampered: Path) -> None:
    assert written.judged(tampered).verdict is Verdict.INTACT
    # A keepsake's first block is written twice, each time with an acknowledgement.
    changed = [
        path.name
        for path in sorted(written.earlier.iterdir())
        if path.name >= first_keepsake(written)
        and (tampered / path.name).read_bytes()[:BLOCK_BYTES] != path.read_bytes()[:BLOCK_BYTES]
    ]
    shutil.copy(written.earlier / changed[0], tampered / changed[0])
    findings = written.judged(tampered)
    assert findings.verdict is Verdict.CORRUPTED
    assert findings.stale + findings.missing > 0
    assert findings.lost > 0


def test_a_flipped_byte_is_a_torn_block(written: Written, tampered: Path) -> None:
    victim = tampered / newest_keepsake(written)
    data = bytearray(victim.read_bytes())
    data[700] ^= 1
    victim.write_bytes(data)
    findings = written.judged(tampered)
    assert findings.verdict is Verdict.CORRUPTED
    assert (findings.torn, findings.lost) == (1, 1)


def test_another_files_blocks_are_foreign(written: Written, tampered: Path) -> None:
    victim = tampered / newest_keepsake(written)
    other = next(path for path in sorted(tampered.iterdir()) if path.stat().st_size)
    size = victim.stat().st_size
    victim.write_bytes((other.read_bytes() * 3)[:BLOCK_BYTES] + victim.read_bytes()[BLOCK_BYTES:])
    assert victim.stat().st_size == size
    findings = written.judged(tampered)
    assert findings.verdict is Verdict.CORRUPTED
    assert (findings.foreign, findings.lost) == (1, 1)


def test_a_deleted_old_keepsake_is_lost(written: Written, tampered: Path) -> None:
    (tampered / first_keepsake(written)).unlink()
    findings = written.judged(tampered)
    assert findings.verdict is Verdict.CORRUPTED
    assert (findings.missing, findings.lost) == (1, 2)  # its making, and its last overwrite
    assert f"{first_keepsake(written)} is not there" in " ".join(findings.reasons)


def test_a_file_that_the_load_did_not_make_is_foreign(written: Written, tampered: Path) -> None:
    (tampered / "stranger").write_bytes(b"boo")
    findings = written.judged(tampered)
    assert (findings.verdict, findings.foreign) == (Verdict.CORRUPTED, 1)


def test_an_empty_directory_is_a_past_from_before_the_load_and_a_missing_one_is_none(
    written: Written, tmp_path: Path
) -> None:
    empty = written.judged(tmp_path)
    assert empty.verdict is Verdict.ROLLED_BACK
    missing = written.judged(tmp_path / "missing")
    assert missing.verdict is Verdict.CORRUPTED
    assert empty.lost > 100
    assert missing.lost > 100


def test_raw_regions_read_back_and_show_a_swap(tmp_path: Path) -> None:
    device = tmp_path / "device"
    with device.open("wb") as file:
        file.truncate(200 * 8 * BLOCK_BYTES)
    job = job_for(tmp_path, mode="raw", device=str(device))
    stored = run_load(job, stop_after=120)

    def judged() -> Findings:
        return consult(stored, parse_readback(json.dumps(read.run(job))), cut_ms=None)

    assert judged().verdict is Verdict.INTACT, judged().reasons
    data = bytearray(device.read_bytes())
    first, second = slice(0, BLOCK_BYTES), slice(BLOCK_BYTES, 2 * BLOCK_BYTES)
    data[first], data[second] = data[second], data[first]
    device.write_bytes(data)
    assert (judged().verdict, judged().foreign) == (Verdict.CORRUPTED, 2)


def test_of_a_raw_device_nothing_is_read_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may refuse what was never asked for, and would be taken for one that failed."""
    device = tmp_path / "device"
    with device.open("wb") as file:
        file.truncate(200 * 8 * BLOCK_BYTES)
    advised: list[tuple[int, int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _file, *advice: advised.append(advice))
    job = job_for(tmp_path, mode="raw", device=str(device))
    assert read.run(job)["files"] == []
    assert advised == [(0, 0, os.POSIX_FADV_RANDOM)]


def test_a_failing_disk_is_evidence_and_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fdatasync
    calls = iter(range(1000))

    def failing(descriptor: int) -> None:
        if next(calls) == 3:
            raise OSError(5, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", failing)
    job = job_for(tmp_path)
    stored = run_load(job, stop_after=150)
    failed = [event for event in stored.events if isinstance(event, ledger.Failed)]
    assert [(event.errno, event.call) for event in failed] == [(5, "fdatasync")]
    findings = consult(stored, parse_readback(json.dumps(read.run(job))), cut_ms=None)
    assert findings.verdict is Verdict.INTACT
    assert "errno 5" in findings.reasons[-1]


def test_a_host_that_is_gone_ends_the_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "_NO_HOST_WAIT_S", 0.1)
    ours, guests = socket.socketpair()
    ours.shutdown(socket.SHUT_WR)
    assert write.run(job_for(tmp_path), guests.fileno()) == write.EXIT_HOST_GONE
    ours.close()
    guests.close()


def test_the_command_lines_that_the_guest_is_given(tmp_path: Path) -> None:
    ours, guests = os.openpty()
    tty.setraw(guests)
    (tmp_path / "load").mkdir()
    job = job_for(tmp_path / "load", port=os.ttyname(guests))
    command = [sys.executable, "-S", "-m", "load"]
    guest_code = CHECKOUT / "vmimages" / "client"
    host = Host(ours, stop_after=30)
    writer = subprocess.run(
        [*command, "write", json.dumps(job)], cwd=guest_code, timeout=WAIT_S, check=False
    )
    assert writer.returncode == 0
    stored = host.ledger()
    reader = [*command, "read", json.dumps(job)]
    said = subprocess.check_output(reader, cwd=guest_code, timeout=WAIT_S, text=True)
    findings = consult(stored, parse_readback(said), cut_ms=None)
    assert findings.verdict is Verdict.INTACT, findings.reasons
    assert findings.acknowledged > 20
    os.close(ours)
    os.close(guests)


def test_reading_reports_unreadable_blocks(written: Written, monkeypatch: Any) -> None:
    real = os.pread
    name = newest_keepsake(written)
    wanted = (written.directory / name).stat().st_ino

    def failing(descriptor: int, length: int, offset: int) -> bytes:
        if os.fstat(descriptor).st_ino == wanted and offset <= 0 < offset + length:
            raise OSError(5, "Input/output error")
        return real(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", failing)
    document = read.run(copy.deepcopy(written.job))
    (seen,) = (entry for entry in document["files"] if entry["name"] == name)
    assert seen["blocks"][0] == "errno:5"
    findings = consult(written.ledger, parse_readback(json.dumps(document)), cut_ms=None)
    assert findings.verdict is Verdict.CORRUPTED
    assert (findings.missing, findings.lost) == (1, 1)


# The program reads back as often as the host asks: by its command, over a terminal.


class _Server:
    """The program, and the host's end of its port."""

    def __init__(self) -> None:
        self.port, guests = os.openpty()
        tty.setraw(guests)
        command = [sys.executable, "-S", "-m", "load", "serve", os.ttyname(guests)]
        self.process = subprocess.Popen(
            command, cwd=CHECKOUT / "vmimages" / "client", stderr=subprocess.PIPE
        )
        assert self.answer() == {"ready": True}
        os.close(guests)

    def ask(self, line: str) -> dict[str, Any]:
        os.write(self.port, f"{line}\n".encode())
        return self.answer()

    def answer(self) -> dict[str, Any]:
        said = b""
        while not said.endswith(b"\n"):
            assert select.select([self.port], [], [], WAIT_S)[0], "the program is silent"
            said += os.read(self.port, 65536)
        answer: dict[str, Any] = json.loads(said)
        return answer


@pytest.fixture
def server() -> Iterator[_Server]:
    server = _Server()
    yield server
    server.process.kill()
    server.process.communicate()


def test_each_read_back_is_that_of_the_command(server: _Server, tmp_path: Path) -> None:
    for trial in (1, 2):
        (tmp_path / f"stray-{trial}").write_bytes(b"content")
        job = job_for(tmp_path, trial=trial)
        answer = server.ask(json.dumps(job))
        assert (answer["exit_code"], answer["stderr"]) == (0, "")
        assert json.loads(answer["stdout"]) == read.run(job)


def test_a_read_back_that_fails_is_reported_and_the_next_one_goes_on(
    server: _Server, tmp_path: Path
) -> None:
    failed = server.ask("{no job")
    assert failed["exit_code"] == 1
    assert "JSONDecodeError" in failed["stderr"]
    assert server.ask(json.dumps(job_for(tmp_path)))["exit_code"] == 0


def test_the_program_ends_with_its_port(server: _Server) -> None:
    os.close(server.port)
    server.process.wait(WAIT_S)


def test_only_a_read_back_of_the_load_has_a_job(tmp_path: Path) -> None:
    job = job_for(tmp_path)
    line = job_read_back_by(guest_command("read", job))
    assert line is not None
    assert json.loads(line) == job
    assert "\n" not in line
    assert job_read_back_by(guest_command("write", job)) is None
    assert job_read_back_by(("gobonniego", "--json", "read")) is None
