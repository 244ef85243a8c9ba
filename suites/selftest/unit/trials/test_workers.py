"""Where workers run: their orders, the places there are, and how a worker's death is said.

Files that the user brought for a load: refused before anything begins, and the same in a rerun.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import torture.trials.workers
from fixtures.user_files import brought_by, require_brought_files
from suites.selftest.unit.fake_workers import FakeSite
from torture.choices.matrix.cells import Cell
from torture.choices.workloads import AXIS
from torture.choices.workloads.fio import JOB_FILE, must_be_verifiable
from torture.choices.workloads.protocol import Brought, Command, Place
from torture.errors import HarnessError
from torture.facts.evidence.folder import SPEC, Completed, write_document
from torture.machines.host.abilities import Accelerator, NetworkKind
from torture.machines.lab.agent import Agent
from torture.machines.lab.lab import Boot, LabSettings
from torture.records.record.run_document import RunLayout
from torture.trials.plan.draw import draw_trials
from torture.trials.replay.replay import replay
from torture.trials.trial.check import READ_DEADLINE_S, REPAIR_DEADLINE_S
from torture.trials.trial.loads import brought_program, brought_text, content_of
from torture.trials.workers import local, must_be_known, open_site, worker_sites
from torture.trials.workers._where import processor_model
from torture.trials.workers.local import LocalController, LocalSite, ending_in_words, last_words
from torture.trials.workers.protocol import WorkerOrders

PLAIN = LabSettings(warm_states=Path("/warm"))
FORCED = LabSettings(
    boot=Boot.COLD,
    accelerator=Accelerator.TCG,
    network=NetworkKind.USER_MODE,
    libvirt_uri="qemu:///embed?root=/x",
    warm_states=Path("/warm"),
)


def orders_of(folder: Path, lab: LabSettings = PLAIN) -> WorkerOrders:
    return WorkerOrders(scratch=folder / "scratch", run=RunLayout(folder=folder / "run"), lab=lab)


@pytest.mark.parametrize("lab", [PLAIN, FORCED], ids=["plain", "forced"])
def test_a_workers_orders_come_back_from_json(tmp_path: Path, lab: LabSettings) -> None:
    orders = orders_of(tmp_path, lab)
    assert WorkerOrders.from_json(json.loads(json.dumps(orders.as_json()))) == orders


def test_a_trial_whose_machines_boot_for_real_may_take_longer(tmp_path: Path) -> None:
    warm, cold = (LocalSite(orders_of(tmp_path, lab)) for lab in (PLAIN, FORCED))
    assert 300 < warm.trial_deadline_s < cold.trial_deadline_s


def test_a_repair_that_does_not_end_leaves_time_for_a_verdict(tmp_path: Path) -> None:
    """And for a read-back that does not, and all that takes seconds: or what is lost is inconclusive."""
    site = LocalSite(orders_of(tmp_path))
    assert site.trial_deadline_s > REPAIR_DEADLINE_S + READ_DEADLINE_S + 240


def test_leftovers_of_the_last_worker_of_a_number_are_gone(tmp_path: Path) -> None:
    orders = orders_of(tmp_path)
    for name in ("w0", "w1"):
        (orders.scratch / name / "t0").mkdir(parents=True)
    controller = LocalSite(orders).controller(0, hear=lambda _text: None)
    assert [path.name for path in orders.scratch.iterdir()] == ["w1"]
    assert not controller.is_running
    controller.kill()


def test_this_host_is_a_place_and_takes_no_address(tmp_path: Path) -> None:
    assert isinstance(open_site("local", orders_of(tmp_path)), LocalSite)
    with pytest.raises(HarnessError, match="--workers local is this host"):
        open_site("local:there", orders_of(tmp_path))


def test_a_place_there_is_no_file_of_is_refused() -> None:
    known = ", ".join(worker_sites())
    assert "local" in known
    with pytest.raises(ValueError, match=f"there are no workers 'slurm', but {known}$"):
        must_be_known("slurm:here")


def test_a_new_place_is_one_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = worker_sites().keys()
    assert "local" in known
    (tmp_path / "elsewhere.py").write_text(
        "from torture.trials.workers.protocol import WorkerSiteKind\n"
        "from torture.trials.workers.local import LocalSite\n"
        "class Elsewhere(LocalSite):\n"
        "    trial_deadline_s = 7.0\n"
        "def site(orders, place):\n"
        "    assert place == 'tcp://10.0.0.1'\n"
        "    return Elsewhere(orders)\n"
        "WORKERS = WorkerSiteKind(name='elsewhere', words='', open=site)\n"
    )
    monkeypatch.setattr(
        torture.trials.workers, "__path__", [*torture.trials.workers.__path__, str(tmp_path)]
    )
    monkeypatch.delitem(sys.modules, "torture.trials.workers.elsewhere", raising=False)
    assert worker_sites().keys() == {*known, "elsewhere"}
    must_be_known("elsewhere:tcp://10.0.0.1")
    assert open_site("elsewhere:tcp://10.0.0.1", orders_of(tmp_path)).trial_deadline_s == 7


def test_the_processors_model_is_read_once_of_each_kind(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(
        "processor\t: 0\nmodel name\t: A 1\nmodel\t: 2\n\nmodel name\t: A 1\nmodel name\t: B\n"
    )
    assert processor_model(file) == "A 1, B"
    file.write_text("processor\t: 0\nBogoMIPS\t: 50\n")
    assert processor_model(file) == ""


# How a worker's death is said: its signal first, and its own words without libvirt's warnings.

WARNING = "2026-11-24 07:28:00.540+0000: 4829: warning : virProcessKillPainfully:1 : Timed out\n"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-signal.SIGKILL, "died of SIGKILL"),
        (128 + signal.SIGSEGV, "died of SIGSEGV"),
        (3, "ended with exit code 3"),
        (0, "ended with exit code 0"),
        (255, "ended with exit code 255"),
        (None, "does not answer"),
    ],
)
def test_the_signal_or_the_exit_code_is_named(code: int | None, words: str) -> None:
    assert ending_in_words(code) == words


def test_warnings_of_libvirt_are_not_the_workers_last_words() -> None:
    log = "Traceback\n" + WARNING * 6 + "MemoryError\n" + WARNING * 6
    assert last_words(log) == ["Traceback", "MemoryError"]
    assert last_words(WARNING * 6) == []
    assert last_words("\n".join(map(str, range(9)))) == list("345678")


def controller_of(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalController:
    """A worker that is this script, in no sandbox."""
    monkeypatch.setattr(local, "sandboxed", lambda _argv: (sys.executable, "-c", script))
    orders: Any = type("Orders", (), {"as_json": lambda self: {}, "probes": False})()
    return LocalController(orders, log=tmp_path / "w0.log", hear=lambda _text: None)


def test_a_worker_that_dies_reports_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        f"import os, sys; sys.stderr.write({WARNING!r} + 'last\\n'); sys.stderr.flush(); os.abort()"
    )
    controller = controller_of(script, tmp_path, monkeypatch)
    with pytest.raises(HarnessError, match=r"^a worker died of SIGABRT\nlast\n"):
        controller.start()


def test_an_interrupt_of_the_terminal_does_not_reach_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C goes to all processes of the terminal's group (tty_ioctl(4), ISIG)."""
    script = 'import sys; print(\'{"say": "ready"}\', flush=True); sys.stdin.read()'
    controller = controller_of(script, tmp_path, monkeypatch)
    controller.start()
    process = controller._process
    assert isinstance(process, subprocess.Popen)
    try:
        assert os.getpgid(process.pid) != os.getpgid(0)
        assert os.getsid(process.pid) != os.getsid(0)
    finally:
        controller.kill()
    assert process.poll() is not None


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
