"""Where workers run: their orders, the places there are, and how a worker's death is said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import torture.trials.workers
from torture.errors import HarnessError
from torture.machines.host.abilities import Accelerator, NetworkKind
from torture.machines.lab.lab import Boot, LabSettings
from torture.records.record.run_document import RunLayout
from torture.trials.trial.check import READ_DEADLINE_S, REPAIR_DEADLINE_S
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
    with pytest.raises(ValueError, match=r"there are no workers 'slurm', but .*local"):
        must_be_known("slurm:here")


def test_a_new_place_is_one_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert worker_sites().keys() >= {"elsewhere", "local"}
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
