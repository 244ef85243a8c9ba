"""Where workers run: their orders, the places there are, and that one file adds another."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import torture.trials.workers
from torture.errors import HarnessError
from torture.machines.host.abilities import Accelerator, NetworkKind
from torture.machines.lab.lab import Boot, LabSettings
from torture.records.record.run_layout import RunLayout
from torture.trials.trial.check import READ_DEADLINE_S, REPAIR_DEADLINE_S
from torture.trials.workers import must_be_known, open_site, worker_sites
from torture.trials.workers._where import processor_model
from torture.trials.workers.local import LocalSite
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
    with pytest.raises(ValueError, match="there are no workers 'slurm', but dask, local"):
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
    assert worker_sites().keys() == {"dask", "elsewhere", "local"}
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
