"""The guest's program that reads back as often as the host asks: by its command, over a terminal."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.loads.load_host import WAIT_S
from torture.choices.workloads._guest_load import guest_command, job_read_back_by
from torture.files import CHECKOUT
from vmimages.client.load import read


def _job(directory: Path, *, trial: int) -> dict[str, Any]:
    return {
        "trial": trial, "seed": 5, "mode": "files", "directory": str(directory), "writers": 1,
        "files_per_writer": 1, "blocks_per_file_max": 8, "keepsakes_per_writer": 2,
    }  # fmt: skip


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
        job = _job(tmp_path, trial=trial)
        answer = server.ask(json.dumps(job))
        assert (answer["exit_code"], answer["stderr"]) == (0, "")
        assert json.loads(answer["stdout"]) == read.run(job)


def test_a_read_back_that_fails_is_reported_and_the_next_one_goes_on(
    server: _Server, tmp_path: Path
) -> None:
    failed = server.ask("{no job")
    assert failed["exit_code"] == 1
    assert "JSONDecodeError" in failed["stderr"]
    assert server.ask(json.dumps(_job(tmp_path, trial=1)))["exit_code"] == 0


def test_the_program_ends_with_its_port(server: _Server) -> None:
    os.close(server.port)
    server.process.wait(WAIT_S)


def test_only_a_read_back_of_the_load_has_a_job(tmp_path: Path) -> None:
    job = _job(tmp_path, trial=1)
    line = job_read_back_by(guest_command("read", job))
    assert line is not None
    assert json.loads(line) == job
    assert "\n" not in line
    assert job_read_back_by(guest_command("write", job)) is None
    assert job_read_back_by(("gobonniego", "--json", "read")) is None
