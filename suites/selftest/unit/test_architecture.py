"""The house: imports run one way, the pure rooms touch no machinery, and no file is a warehouse."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from torture.checkout import CHECKOUT

TORTURE = CHECKOUT / "torture"
LINES_MAX = 350
FOLDER_LINES_MAX = 2000
SAME_THING = frozenset({"ledger", "replay"})
"""`evidence.ledger` is what `workloads.ledger` leaves, `schedules.replay` the schedule of a replay."""

GROUND = frozenset({"checkout", "deadlines", "discovery", "errors", "files", "shell"})
"""Single modules that every room stands on, but `stats`."""

FLOORS = (
    "stats", "zfs", "axes", "evidence", "wire", "recording", "audit", "verdict", "volumes", "filesystems",
    "workloads", "slogs", "transports", "administration", "matrix", "faults", "knownbugs", "record",
    "scoring", "nas", "plan", "schedules", "host", "images", "lab", "shelf", "client", "trial",
    "workers", "campaign", "replay",
)  # fmt: skip
"""From the ground up: a room may import from its own floor and from below."""

_READ_ONLY = frozenset(
    {"stats", "axes", "evidence", "recording", "verdict", "filesystems", "workloads", "slogs",
     "transports", "administration", "matrix", "record"}
)  # fmt: skip
"""What those rooms that run nothing may see."""

_REPORT = ("report.reading", "report.figures", "report.page", "report.terminal", "report.exports")

ALLOWED = (
    dict.fromkeys(GROUND, GROUND)
    | {room: GROUND | frozenset(FLOORS[: floor + 1]) for floor, room in enumerate(FLOORS)}
    | {
        "stats": frozenset({"stats"}),
        "setup": GROUND | {"zfs", "host", "images", "setup"},
        "report.reading": GROUND | _READ_ONLY | {"report.reading"},
        "report.figures": GROUND | _READ_ONLY | {"report.reading", "report.figures"},
        **{
            room: GROUND | _READ_ONLY | {"report.reading", "report.figures", room}
            for room in _REPORT[2:]
        },
        "report": GROUND | _READ_ONLY | {*_REPORT, "report"},
        "night": GROUND | _READ_ONLY | {*_REPORT, "report", "plan", "night"},
    }
)
"""Room to the rooms it may import from. `setup`, `report` and `night` stand beside the floors."""

MACHINERY = frozenset(
    {"ctypes", "libvirt", "libvirt_qemu", "multiprocessing", "signal", "socket", "subprocess",
     "threading"}
)  # fmt: skip
PURE = frozenset(FLOORS[: FLOORS.index("host")])
OUTSIDERS = frozenset({"pytest", "_pytest", "fixtures", "suites", "hypothesis"})
"""What the engine knows nothing of."""

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
            # `from torture import lab` names a room only here
            yield from (f"{base}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str:
    """`torture.lab.agent` is in `lab`, `torture.report.page.charts` in a room of `report`."""
    parts = module.split(".")[1:]
    room = ".".join(parts[:2])
    return room if room in _REPORT else parts[0] if parts else ""


def trespasses(source: str, *, room: str, package: str) -> list[str]:
    """What a file of a room imports and must not."""
    found = []
    for module in imported_by(source, package):
        top = module.split(".")[0]
        if top in OUTSIDERS or (room in PURE and top in MACHINERY):
            found.append(module)
        if top == "torture" and room_of(module) not in {"", *ALLOWED[room]}:
            found.append(module)
    return found


def engine_files() -> list[Path]:
    return sorted(TORTURE.rglob("*.py"))


def room_of_file(path: Path) -> str:
    return room_of(".".join(path.relative_to(CHECKOUT).with_suffix("").parts))


def test_every_room_has_a_place() -> None:
    """A new room must say what it may import."""
    rooms = {room_of_file(path) for path in engine_files()} - {"__init__"}
    assert rooms == set(ALLOWED)


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_imports_run_one_way(room: str) -> None:
    found = {}
    for path in engine_files():
        if room_of_file(path) != room:
            continue
        package = ".".join(path.parent.relative_to(CHECKOUT).parts)
        if trespassed := trespasses(path.read_text(), room=room, package=package):
            found[str(path.relative_to(CHECKOUT))] = trespassed
    assert not found


def test_what_runs_and_what_reports_never_meet() -> None:
    for room in _REPORT:
        assert room not in ALLOWED["replay"], "the highest floor"
        assert not ALLOWED[room] & set(FLOORS[FLOORS.index("host") :])


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("stats", "from torture.errors import HarnessError"),
        ("matrix", "import torture.record.trials"),
        ("stats", "from torture.record.trials import TrialRecord"),
        ("record", "from torture.scoring.judge import judge"),
        ("record", "from torture import lab"),
        ("record", "import subprocess"),
        ("verdict", "def late():\n    import libvirt"),
        ("verdict", "from ..lab import agent"),
        ("transports", "from torture.matrix.cells import Cell"),
        ("workloads", "import socket"),
        ("host", "from torture.lab.domains import Disk"),
        ("images", "from torture.setup.doctor import examine"),
        ("setup", "from torture.lab.lab import Lab"),
        ("lab", "from torture.shelf.log import activity_of"),
        ("nas", "if True:\n    from torture.trial import live as machinery"),
        ("trial", "import pytest"),
        ("trial", "from fixtures.options import Options"),
        ("trial", "from torture.replay.stages import replay_stages"),
        ("campaign", "from torture.report.terminal.outcome_table import outcome_table"),
        ("report.page", "from torture.campaign.run import Run"),
        ("report.reading", "from torture.report.figures.answer import answer"),
        ("report.exports", "from torture.report.page.render import render_page"),
        ("night", "from torture.campaign.run import Run"),
        ("errors", "from torture.matrix import cells"),
    ],
)
def test_a_trespass_is_seen(room: str, source: str) -> None:
    assert trespasses(source, room=room, package=f"torture.{room}")


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("matrix", "from torture.axes.sync import Sync"),
        ("record", "from torture.errors import HarnessError"),
        ("lab", "from torture.host import accelerator\nimport subprocess"),
        ("verdict", "from ..evidence import ledger\nfrom . import fsck"),
        ("campaign", "from torture.trial.live import run_trial"),
        ("report.page", "from torture.record.trials import TrialRecord"),
        ("report", "from torture.report.page.render import render_page"),
        ("campaign", "from torture.stats.rates import Rate"),
    ],
)
def test_what_is_allowed_is_no_trespass(room: str, source: str) -> None:
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


@pytest.mark.parametrize("module", ["setup.doctor", "setup.provision", "host.native"])
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


_IMPORTS = "import sys; sys.path.insert(0, {checkout!r}); import torture.{module}"
