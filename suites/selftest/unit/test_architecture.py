"""The house: imports run one way, the pure rooms touch no machinery, and no file is a warehouse."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from torture.checkout import CHECKOUT

TORTURE = CHECKOUT / "torture"
LINES_MAX = 350
FOLDER_LINES_MAX = 2000
SAME_THING = frozenset({"ledger", "replay"})
"""`evidence.ledger` is what `workloads.ledger` leaves, `schedules.replay` the schedule of a replay."""

GROUND = frozenset({"checkout", "deadlines", "discovery", "errors", "files", "shell"})
"""Single modules that every room stands on, but `facts.stats`."""

WINGS = ("facts", "oracles", "choices", "records", "machines", "trials")
"""From the ground up: a wing may import from itself and from below."""

_PURE = GROUND | frozenset(WINGS[: WINGS.index("machines")])
"""All that runs nothing."""

ALLOWED = (
    dict.fromkeys(GROUND, GROUND)
    | {wing: GROUND | frozenset(WINGS[: rank + 1]) for rank, wing in enumerate(WINGS)}
    | {
        "report": _PURE | {"report"},
        "setup": GROUND | {"facts.linux", "facts.zfs", "machines.host", "machines.images", "setup"},
    }
)
"""Wing to the wings, or rooms, that it may import from. `report` and `setup` stand beside the others."""

_FIGURES = _PURE | {"report.reading", "report.figures"}

NARROWER = {
    "facts.stats": frozenset({"facts.stats"}),
    "machines.nas": _PURE | {"machines.nas"},
    "trials.plan": _PURE | {"machines.nas", "trials.plan"},
    "report.reading": _PURE | {"report.reading"},
    "report.figures": _FIGURES,
    "report.trade": _FIGURES | {"report.trade"},
    "report.page": _FIGURES | {"report.trade", "report.page"},
    **{f"report.{room}": _FIGURES | {f"report.{room}"} for room in ("terminal", "exports")},
}
"""Rooms that may import less than their wing."""

MACHINERY = frozenset(
    {"ctypes", "libvirt", "libvirt_qemu", "multiprocessing", "signal", "socket", "subprocess",
     "threading"}
)  # fmt: skip
PURE = frozenset(
    {"facts", "oracles", "choices", "records", "report", "machines.nas", "trials.plan"}
)
OUTSIDERS = frozenset({"pytest", "_pytest", "fixtures", "suites", "hypothesis"})
"""Modules that the engine does not know."""

SOURCES = ("torture", "fixtures", "suites", "vmimages", "tools", ".ci")
SUFFIXES = frozenset({"", ".py", ".sh", ".toml", ".cpp", ".hpp", ".ini"})
"""Of what people write; recorded outputs and prose are as long as they are."""


def imported_by(source: str, package: str) -> Iterator[str]:
    """Every module that a file of `package` imports, wherever in it, by its full name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            yield base
            # `from torture.machines import lab` names a room only here
            yield from (f"{base}.{alias.name}" for alias in node.names)


def wing_of(room: str) -> str:
    return room.split(".")[0]


def room_of(module: str) -> str:
    """`torture.machines.lab.agent` is in `machines.lab`; `torture.facts` is a wing, and no room."""
    return ".".join(module.split(".")[1:3])


def trespasses(source: str, *, room: str, package: str) -> list[str]:
    """The forbidden imports of a file of a room."""
    allowed = NARROWER.get(room, ALLOWED[wing_of(room)])
    is_pure = not PURE.isdisjoint({room, wing_of(room)})
    found = []
    for module in imported_by(source, package):
        top = module.split(".")[0]
        if top in OUTSIDERS or (is_pure and top in MACHINERY):
            found.append(module)
        # a wing by itself is a docstring: what is imported from it says which room that is
        if top == "torture" and room_of(module) not in {"", "report", "setup", *WINGS}:
            other = room_of(module)
            if allowed.isdisjoint({other, wing_of(other)}):
                found.append(module)
    return found


def engine_files() -> list[Path]:
    return sorted(TORTURE.rglob("*.py"))


def room_of_file(path: Path) -> str:
    return room_of(".".join(path.relative_to(CHECKOUT).with_suffix("").parts))


def package_of(path: Path) -> str:
    return ".".join(path.parent.relative_to(CHECKOUT).parts)


def test_every_room_has_a_place() -> None:
    """A new wing must say what it may import; a wing by itself says what it is, and no more."""
    wings = {wing_of(room_of_file(path)) for path in engine_files()} - {"__init__"}
    assert wings == set(ALLOWED)
    for wing in wings - GROUND:
        [said] = ast.parse((TORTURE / wing / "__init__.py").read_text()).body
        assert isinstance(said, ast.Expr), f"{wing} is its rooms"
    assert {room for room in NARROWER if not (TORTURE / room.replace(".", "/")).is_dir()} == set()


@pytest.mark.parametrize("wing", sorted(ALLOWED))
def test_imports_run_one_way(wing: str) -> None:
    found = {}
    for path in engine_files():
        room = room_of_file(path)
        if wing_of(room) != wing:
            continue
        if trespassed := trespasses(path.read_text(), room=room, package=package_of(path)):
            found[str(path.relative_to(CHECKOUT))] = trespassed
    assert not found


def test_modules_that_run_and_modules_that_report_do_not_import_each_other() -> None:
    for wing in ("machines", "trials"):
        assert "report" not in ALLOWED[wing]
        assert wing not in ALLOWED["report"]


def neighbours(wing: str) -> dict[str, set[str]]:
    """Each room of a wing to the rooms of the same wing that it imports from."""
    found: dict[str, set[str]] = {}
    for path in engine_files():
        room = room_of_file(path)
        if wing_of(room) == wing:
            imported = {room_of(name) for name in imported_by(path.read_text(), package_of(path))}
            others = {other for other in imported if wing_of(other) == wing} - {room, wing}
            found.setdefault(room, set()).update(others)
    return found


def circle_in(rooms: Mapping[str, Set[str]]) -> list[str]:
    """Rooms that import one another, the first of them again at the end."""
    try:
        TopologicalSorter(rooms).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


@pytest.mark.parametrize("wing", sorted(ALLOWED.keys() - GROUND))
def test_no_rooms_of_a_wing_import_one_another(wing: str) -> None:
    assert circle_in(neighbours(wing)) == []


def test_rooms_that_import_one_another_are_seen() -> None:
    rooms = neighbours("machines")
    assert "machines.host" in rooms["machines.lab"], "or this test shows nothing"
    assert circle_in(rooms | {"machines.host": {"machines.lab"}})


@pytest.mark.parametrize(
    ("room", "source"),
    [
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
        ("trials.campaign", "from torture.report.terminal.outcome_table import outcome_table"),
        ("report.page", "from torture.trials.campaign.run import Run"),
        ("report.page", "from torture.report.exports.as_markdown import as_markdown"),
        ("report.reading", "from torture.report.figures.answer import answer"),
        ("report.figures", "from torture.report.trade.trade import trade_of"),
        ("report.trade", "from torture.report.page.render import render_page"),
        ("report.exports", "from torture.report.trade.trade import trade_of"),
        ("report.exports", "from torture.report.page.render import render_page"),
        ("report.night", "from torture.trials.campaign.run import Run"),
        ("report.night", "import subprocess"),
        ("setup.doctor", "from torture.machines.lab.lab import Lab"),
        ("errors", "from torture.choices.matrix import cells"),
    ],
)
def test_a_trespass_is_seen(room: str, source: str) -> None:
    assert trespasses(source, room=room, package=f"torture.{room}")


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("choices.matrix", "from torture.facts.axes.sync import Sync"),
        ("choices.matrix", "from torture.choices import slogs, transports"),
        ("records.record", "from torture.errors import HarnessError"),
        ("machines.lab", "from torture.machines.host import abilities\nimport subprocess"),
        ("oracles.verdict", "from ...facts.evidence import ledger\nfrom . import fsck"),
        ("trials.plan", "from torture.machines.nas.pool import pool_disks"),
        ("trials.campaign", "from torture.trials.trial.one_trial import run_trial"),
        ("trials.campaign", "from torture.facts.stats.rates import Rate"),
        ("report.page", "from torture.records.record.trials import TrialRecord"),
        ("report.page", "from torture.report.trade.trade import trade_of"),
        ("report.write", "from torture.report.page.render import render_page"),
        ("report.night", "from torture.report.write import build_report"),
        ("setup.doctor", "from torture.machines.host import abilities\nimport subprocess"),
    ],
)
def test_an_allowed_import_is_no_trespass(room: str, source: str) -> None:
    assert trespasses(source, room=room, package=f"torture.{room}") == []


def written_files() -> list[Path]:
    return [
        path
        for folder in SOURCES
        for path in sorted((CHECKOUT / folder).rglob("*"))
        if path.is_file()
        and path.suffix in SUFFIXES
        and "__pycache__" not in path.parts
        and "recorded" not in path.parent.parts
    ]


def test_no_file_is_too_long() -> None:
    lengths = {path: len(path.read_bytes().splitlines()) for path in written_files()}
    assert len(lengths) > 50, "the files were not found"
    too_long = {
        str(path.relative_to(CHECKOUT)): length
        for path, length in lengths.items()
        if length > LINES_MAX
    }
    assert not too_long


def test_the_tools_are_thin_and_can_be_started() -> None:
    tools = [path for path in (CHECKOUT / "tools").iterdir() if path.is_file()]
    assert {"run", "doctor", "judge", "replay", "report", "plan", "night"} <= {
        path.name for path in tools
    }
    for path in tools:
        assert path.stat().st_mode & 0o111, f"{path} cannot be executed"
        assert path.read_text().startswith("#!/usr/bin/env python3\n"), path
        assert len(path.read_text().splitlines()) <= 100, f"{path}: logic belongs in torture/"


def test_no_folder_is_a_warehouse() -> None:
    """Subfolders are rooms apart."""
    lines = Counter[Path]()
    for path in engine_files():
        lines[path.parent] += len(path.read_bytes().splitlines())
    assert {folder: count for folder, count in lines.items() if count > FOLDER_LINES_MAX} == {}


def test_no_two_rooms_have_modules_of_one_name_for_different_things() -> None:
    """A protocol is one in every room; a load is called as what it keeps."""
    places: dict[str, list[str]] = {}
    for path in engine_files():
        places.setdefault(path.stem, []).append(str(path.parent.relative_to(TORTURE)))
    alike = {name: rooms for name, rooms in places.items() if len(rooms) > 1}
    assert alike.keys() <= {"__init__", "protocol", *SAME_THING}


@pytest.mark.parametrize(
    "module",
    [
        "torture.setup.doctor",
        "torture.setup.provision",
        "torture.machines.host.native",
        "fixtures.asked",
    ],
)
def test_setting_up_needs_the_standard_library_only(module: str) -> None:
    """Before there is a virtual environment, and so without any site package."""
    argv = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        _IMPORTS.format(checkout=str(CHECKOUT), module=module),
    ]
    subprocess.run(argv, check=True, timeout=30)


_IMPORTS = "import sys; sys.path.insert(0, {checkout!r}); import {module}"
