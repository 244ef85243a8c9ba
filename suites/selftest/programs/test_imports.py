"""Imports run one way, by the contracts in `pyproject.toml`; each contract sees a planted breach."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from suites.selftest.programs.launcher import run_program
from torture.files import CHECKOUT

PLANTED = (
    ("facts.stats", "from torture.errors import HarnessError"),
    ("facts.stats", "from torture.facts.axes.axis import Axis"),
    ("facts.stats", "from torture.records.record.trials import TrialRecord"),
    ("facts.axes", "from torture.choices.matrix.cells import Cell"),
    ("choices.matrix", "import torture.records.record.trials"),
    ("records.record", "from torture.machines import lab"),
    ("records.record", "import subprocess"),
    ("oracles.verdict", "def late():\n    import libvirt"),
    ("oracles.verdict", "from ...machines.lab import agent"),
    ("oracles.verdict", "from torture.choices.matrix.cells import Cell"),
    ("choices.workloads", "import socket"),
    ("choices.experiments", "from torture.records.scoring.judge import judge"),
    ("machines.images", "from torture.setup.doctor import examine"),
    ("machines.nas", "if True:\n    from torture.trials.trial import one_trial as machinery"),
    ("machines.nas", "from torture.machines.lab.agent import Agent"),
    ("machines.shelf", "from torture.trials.plan.draw import draw_trials"),
    ("trials.plan", "from torture.machines.lab.agent import Agent"),
    ("trials.plan", "import threading"),
    ("trials.trial", "import pytest"),
    ("trials.trial", "from fixtures.options import Options"),
    ("trials.campaign", "from torture.report.terminal import outcome_table"),
    ("report.page", "from torture.trials.campaign.run import Run"),
    ("report.page", "from torture.report.exports.as_markdown import as_markdown"),
    ("report.reading", "from torture.report.figures.answer import answer"),
    ("report.exports", "from torture.report.page.render import render_page"),
    ("report.page", "from torture.features.speed.page import SECTION"),
    ("features.night", "from torture.features.bisect.search import Search"),
    ("trials.campaign", "from torture.features.fleet.workers import WORKERS"),
    ("setup.doctor", "from torture.machines.lab.lab import Lab"),
    ("errors", "from torture.choices.matrix import cells"),
)
"""A room, and an import that it must not have."""


def linted(checkout: Path) -> tuple[int, str]:
    """The exit code and output of import-linter in a checkout."""
    program = Path(sys.executable).with_name("lint-imports")
    assert program.exists(), f"{program.name} is not installed; next: tools/run --setup-only"
    done = run_program(program, "--no-cache", cwd=checkout, COLUMNS="300", NO_COLOR="1")
    return done.returncode, done.stdout + done.stderr


def test_imports_run_one_way() -> None:
    code, output = linted(CHECKOUT)
    assert code == 0, output


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The output for a copy of the engine with all breaches, a circle of rooms, and a wing more."""
    checkout = tmp_path_factory.mktemp("checkout")
    shutil.copy(CHECKOUT / "pyproject.toml", checkout)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "torture", checkout / "torture", ignore=ignored)
    for number, (room, source) in enumerate(PLANTED):
        place = checkout / "torture" / room.replace(".", "/")
        module = place / f"planted_{number:02}.py" if place.is_dir() else place.with_suffix(".py")
        with module.open("a") as file:
            file.write(f"\n{source}\n")
    (checkout / "torture/machines/host/circle.py").write_text("import torture.machines.lab.lab\n")
    (checkout / "torture/attic").mkdir()
    (checkout / "torture/attic/__init__.py").touch()
    code, output = linted(checkout)
    assert code == 1, output
    return output


@pytest.mark.parametrize("number", range(len(PLANTED)), ids=lambda number: PLANTED[number][0])
def test_a_planted_import_is_seen(number: int, output: str) -> None:
    room, _ = PLANTED[number]
    is_room = (CHECKOUT / "torture" / room.replace(".", "/")).is_dir()
    module = f"torture.{room}.planted_{number:02}" if is_room else f"torture.{room}"
    assert f"{module} -> " in output


def test_a_circle_of_rooms_and_a_wing_without_a_place_are_seen(output: str) -> None:
    circles = output.split("rooms of a wing never import in a circle")[-1]
    assert ".host" in circles.split("\n---")[1]
    assert "torture.attic" in output
