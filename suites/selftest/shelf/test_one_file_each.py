"""A transport, load, filesystem, log device, administration, fault, bug, ZFS version ...: one file each.

Here each is added to a copy of the checkout, touching no other file, and trials are played over them.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.programs.launcher import run_program
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.files import CHECKOUT
from torture.trials.plan.draw import draw_trials

HERE = Path(__file__).with_name("one_file_each")
ADDED = {
    "transport.py": "torture/choices/transports/dummy.py",
    "filesystem.py": "torture/choices/filesystems/dummy.py",
    "slog.py": "torture/choices/slogs/dummy.py",
    "experiments.toml": "torture/choices/experiments/dummy.toml",
    "workload.py": "torture/choices/workloads/dummy.py",
    "administration.py": "torture/choices/administration/dummy.py",
    "export.py": "torture/report/exports/as_dummy.py",
    "schedule.py": "torture/records/schedules/backwards.py",
    "zfs.toml": "vmimages/zfs/9.9.9.toml",
    "linux.toml": "vmimages/linux/sid-backports.toml",
}
COPIED = ("torture", "vmimages", "suites")
_DEADLINE_S = 180


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The trials of a checkout with these files more."""
    checkout = tmp_path_factory.mktemp("checkout")
    for folder in COPIED:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(CHECKOUT / folder, checkout / folder, ignore=ignored)
    for name, place in ADDED.items():
        assert not (checkout / place).exists(), "a new file replaces none"
        shutil.copy(HERE / name, checkout / place)
    run = tmp_path_factory.mktemp("r")
    argv = [sys.executable, "-m", "suites.selftest.shelf.one_file_each.play", str(run / "run")]
    done = run_program(*argv, cwd=checkout, deadline_s=_DEADLINE_S)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_trial_over_them_comes_to_its_verdict(played: dict[str, Any]) -> None:
    assert played["is_over"]
    for record in played["records"]:
        assert record["error"] is None
        assert record["judgement"]["verdict"] == "intact"
        assert record["guarantee"] == "safe"
        assert record["zfs"] == "9.9.9"
        assert record["axes"]["workload"] == "dummyload"
        assert record["judgement"]["administration"] == "undone"


def test_each_stage_ran_the_commands_of_the_new_files(played: dict[str, Any]) -> None:
    nas, client = ("\n".join(ran) for ran in played["ran"])
    assert "log mirror" in nas, "three log devices"
    assert nas.index("zpool create") < nas.index("make-volume disabled") < nas.index("publish")
    assert "attach nas.invalid" in client
    assert client.index("mkfs.dummy /dev/dummy0") < client.index("prepare-dummy")
    assert client.index("prepare-dummy") < client.index("dummy-load")
    assert nas.index("publish") < nas.index("plant-dummy")
    assert (
        nas.index("make-volume disabled") < nas.index("dummy-prepare-pool") < nas.index("publish")
    )
    assert nas.index("plant-dummy") < nas.index("dummy-state") < nas.index("dummy-administer")


def test_two_of_three_log_devices_are_gone_after_the_cut(played: dict[str, Any]) -> None:
    for record in played["records"]:
        policies = [disk["policy"] for disk in record["cut"]["disks"].values()]
        assert policies.count("gone") == 2


def test_the_schedule_had_the_last_trial_run_first(played: dict[str, Any]) -> None:
    assert played["begun"] == played["drawn"][::-1]
    assert len(played["begun"]) == 2


def test_the_version_of_zfs_names_the_suite_of_the_nas(played: dict[str, Any]) -> None:
    assert played["nas_suite"] == "sid"


def test_a_kernel_that_no_zfs_fits_is_the_clients(played: dict[str, Any]) -> None:
    assert played["client_kernel_suite"] == "sid"


def test_the_known_bug_has_its_cell_and_its_tree_can_be_named(played: dict[str, Any]) -> None:
    assert played["known_bug"] == "iscsi-always-dummyslog-raidz1-ext4-bothdie"
    assert "9.9.10" in played["trees"]


def test_the_export_is_written_and_the_page_has_the_new_words(played: dict[str, Any]) -> None:
    assert played["exported"] == ["2\n"]
    assert "a dummy" in played["page"]
    assert "SLOG of a dummy kind" in played["page"]


def test_no_matrix_has_a_cell_more_and_old_trials_keep_their_names(played: dict[str, Any]) -> None:
    for matrix in Matrix:
        assert played["matrices"][matrix] == [cell.name for cell in cells_of(matrix)]
    drawn = draw_trials(cells_of(Matrix.QUICK), trials=1, run_seed=1, load_ms=1000)
    assert not set(played["drawn"]) & {spec.trial for spec in drawn}
