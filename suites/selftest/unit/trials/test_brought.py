"""Files that the user brought for a load: refused before anything begins, and the same in a rerun."""

from __future__ import annotations

import base64
import gzip
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.user_files import brought_by, require_brought_files
from suites.selftest.unit.fake_workers import FakeSite
from torture.choices.matrix.cells import Cell
from torture.choices.workloads import AXIS
from torture.choices.workloads.fio import JOB_FILE, must_be_verifiable
from torture.choices.workloads.protocol import Brought, Command, Place
from torture.errors import HarnessError
from torture.facts.evidence.folder import SPEC, Completed, write_document
from torture.machines.lab.agent import Agent
from torture.trials.plan.draw import draw_trials
from torture.trials.replay.replay import replay
from torture.trials.trial.loads import brought_program, brought_text, content_of

BENCH = Cell.parse("iscsi-always-noslog-ext4-gobonniego-bothdie")
OWN_FIO = Cell.parse("iscsi-always-noslog-ext4-fio_own-bothdie")
USUAL = Cell.parse("iscsi-always-noslog-ext4-bothdie")
JOB = "[own]\nrw=write\nsize=64k\nverify=crc32c\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "gobonniego"
    path.parent.mkdir()
    path.write_bytes(b"#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    path = tmp_path / "own.fio"
    path.write_text(JOB)
    return path


def test_a_cell_whose_load_takes_a_file_is_refused_without_it() -> None:
    with pytest.raises(pytest.UsageError, match=r"gobonniego(?s:.*)next: say --gobonniego PATH"):
        require_brought_files([USUAL, BENCH], ())
    with pytest.raises(pytest.UsageError, match=r"fio_own(?s:.*)next: say --fio-job PATH"):
        require_brought_files([OWN_FIO], ())
    require_brought_files([USUAL], ())


def test_options_and_path_say_where_they_are(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, program: Path, job_file: Path
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert brought_by(pytestconfig) == ()
    monkeypatch.setenv("PATH", str(program.parent))
    assert [one.path for one in brought_by(pytestconfig)] == [str(program)]
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(pytestconfig.option, "gobonniego", program)
    monkeypatch.setattr(pytestconfig.option, "fio_job", job_file)
    brought = brought_by(pytestconfig)
    assert [(one.load, one.text) for one in brought] == [("gobonniego", ""), ("fio_own", JOB)]
    require_brought_files([BENCH, OWN_FIO], brought)
    monkeypatch.setattr(pytestconfig.option, "gobonniego", program.with_name("another"))
    with pytest.raises(pytest.UsageError, match="cannot be read"):
        brought_by(pytestconfig)


_ANOTHER_MACHINE = b"\x7fELF\x01\x02\x01" + b"\0" * 11 + b"\0\x08" + b"\0" * 44
"""Of a 32-bit MIPS, with the larger byte first."""


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        (b"", "is no program"),
        (b"package main\n", "is no program"),
        (_ANOTHER_MACHINE, "is a program of another machine"),
    ],
)
def test_a_program_that_no_client_could_run_is_refused_before_anything_begins(
    pytestconfig: pytest.Config,
    monkeypatch: pytest.MonkeyPatch,
    program: Path,
    data: bytes,
    refused: str,
) -> None:
    program.write_bytes(data)
    monkeypatch.setattr(pytestconfig.option, "gobonniego", program)
    with pytest.raises(pytest.UsageError, match=rf"{refused}(?s:.*)next: file "):
        brought_by(pytestconfig)
    monkeypatch.setattr(pytestconfig.option, "gobonniego", None)
    monkeypatch.setenv("PATH", str(program.parent))
    assert brought_by(pytestconfig) == ()  # a session without that load does not mind


def test_a_program_of_this_machine_is_taken() -> None:
    assert brought_program("gobonniego", Path(sys.executable)).path == sys.executable


def test_trials_know_the_programs_of_their_own_load_alone(program: Path, job_file: Path) -> None:
    brought = (brought_program("gobonniego", program), brought_text("fio_own", job_file))
    cells = [USUAL, BENCH, OWN_FIO]
    specs = draw_trials(cells, trials=1, run_seed=1, load_ms=500, brought=brought)
    assert [spec.brought for spec in specs] == [(), brought[:1], brought[1:]]
    before = draw_trials(cells, trials=1, run_seed=1, load_ms=500)
    assert [replace(spec, brought=()) for spec in specs] == list(before)


def test_a_job_file_is_in_the_job_whole(job_file: Path) -> None:
    own = brought_text("fio_own", job_file)
    workload = AXIS.choice("fio_own").value
    job = workload.job(seed=1, place=Place(directory="/mnt", brought=(own,)))
    assert job[JOB_FILE] == JOB
    assert "verify=crc32c" in workload.prepare(job)
    job_file.unlink()
    assert content_of(own) == JOB.encode()


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("", "has no job"),
        ("[global]\nverify=crc32c\n", "has no job"),
        ("[a]\nrw=write\n", "does not name a verification"),
        ("[a]\nrw=write\n;verify=crc32c\n", "does not name a verification"),
        ("[a]\nverify=0 ; not\n", "does not name a verification"),
        (JOB + "filename = /dev/sda\n", "sets its own path"),
        (JOB + "time_based\nruntime=3\n", "ends after a time"),
    ],
)
def test_a_job_file_that_cannot_be_verified_is_refused(text: str, refused: str) -> None:
    with pytest.raises(HarnessError, match=refused) as error:
        must_be_verifiable(text, of="own.fio")
    assert error.value.hint


@pytest.mark.parametrize(
    ("data", "refused"), [(b"\xff\xfe", "is no text"), (b"#" * 100_001, "has 100,001 bytes")]
)
def test_an_invalid_job_file_is_refused(job_file: Path, data: bytes, refused: str) -> None:
    job_file.write_bytes(data)
    with pytest.raises(HarnessError, match=refused):
        brought_text("fio_own", job_file)


def evidence_of(tmp_path: Path, brought: Brought) -> Path:
    (spec,) = draw_trials([BENCH], trials=1, run_seed=1, load_ms=500, brought=[brought])
    folder = tmp_path / "results" / "run" / "trials" / spec.trial
    folder.mkdir(parents=True)
    write_document(folder, SPEC, spec.as_json())
    return folder


def again(folder: Path) -> Brought:
    site = FakeSite(outcome=lambda _spec: "C")
    replay(folder, results=folder.parents[2], live=True, site_of=lambda _orders: site)
    return site.begun[0].brought[0]


def test_a_rerun_has_the_same_program_and_is_refused_with_another_or_none(
    tmp_path: Path, program: Path
) -> None:
    brought = brought_program("gobonniego", program)
    folder = evidence_of(tmp_path, brought)
    assert again(folder) == brought
    assert content_of(brought) == b"#!/bin/sh\n"
    program.write_bytes(b"#!/bin/false\n")
    with pytest.raises(HarnessError, match="is not the file that the trial ran") as other:
        again(folder)
    assert other.value.hint == f"put that file back at {program}"
    program.unlink()
    with pytest.raises(HarnessError, match="cannot be read") as gone:
        again(folder)
    assert gone.value.hint == f"ls -l {program}"


def test_a_program_arrives_in_the_guest_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(domain=None, vm="client", raise_if_dead=lambda: None)
    calls: list[tuple[str, Any]] = []
    ran: list[Command] = []

    def call(command: str, arguments: Any) -> int:
        calls.append((command, arguments))
        return 7

    def run(argv: Command, *, deadline_s: float) -> Completed:
        ran.append(argv)
        return Completed(
            vm="client", argv=argv, exit_code=len(ran) - 1, stdout="", stderr="full", duration_ms=1
        )

    monkeypatch.setattr(agent, "call", call)
    monkeypatch.setattr(agent, "run", run)
    content = random.Random(1).randbytes(1_000_000)
    agent.put_program("/run/program", content)
    assert calls[0] == ("guest-file-open", {"path": "/run/program.gz", "mode": "w"})
    assert calls[-1] == ("guest-file-close", {"handle": 7})
    pieces = [arguments["buf-b64"] for command, arguments in calls if "write" in command]
    assert max(map(len, pieces)) <= 128 * 1024, "an emulated agent takes no more within 15 s"
    assert gzip.decompress(b"".join(base64.b64decode(piece) for piece in pieces)) == content
    assert ran[0][-1] == "/run/program"
    with pytest.raises(HarnessError, match="/run/program could not be written in client: 1: full"):
        agent.put_program("/run/program", content)
