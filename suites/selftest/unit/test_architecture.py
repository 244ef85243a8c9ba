"""The house: imports run one way, the pure rooms touch no machinery, and no file is a warehouse."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from torture.checkout import CHECKOUT

TORTURE = CHECKOUT / "torture"
LINES_MAX = 350

FLOORS = (
    "stats", "matrix", "record", "verdict", "lab", "shelf", "nas", "client", "trial", "campaign",
)  # fmt: skip
"""From the ground up: a room may import from its own floor and from below."""

ALLOWED = {
    room: frozenset({"errors", *FLOORS[: floor + 1]}) for floor, room in enumerate(FLOORS)
} | {
    "errors": frozenset[str](),
    "matrix": frozenset({"matrix"}),
    "report": frozenset({"errors", "stats", "matrix", "record", "verdict", "report"}),
    "night": frozenset({"errors", "stats", "matrix", "record", "verdict", "report", "night"}),
}
"""Room to the rooms it may import from. `report` and `night` stand beside the floors: they run
nothing."""

MACHINERY = frozenset(
    {"ctypes", "libvirt", "libvirt_qemu", "multiprocessing", "signal", "socket", "subprocess",
     "threading"}
)  # fmt: skip
PURE = ("stats", "matrix", "record", "verdict")
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
    """The room of a module below `torture`: `torture.lab.agent` is in `lab`."""
    return module.split(".")[1] if module.startswith("torture.") else ""


def trespasses(source: str, *, room: str, package: str) -> list[str]:
    """What a file of a room imports and must not."""
    found = []
    for module in imported_by(source, package):
        top = module.split(".")[0]
        if top in OUTSIDERS or (room in PURE and top in MACHINERY):
            found.append(module)
        if top == "torture" and room_of(module) and room_of(module) not in ALLOWED[room]:
            found.append(module)
    return found


def engine_files() -> list[Path]:
    return sorted(TORTURE.rglob("*.py"))


def room_of_file(path: Path) -> str:
    return path.relative_to(TORTURE).parts[0].removesuffix(".py")


def test_every_room_has_a_place() -> None:
    """A new room must say what it may import."""
    rooms = {room_of_file(path) for path in engine_files()} - {"__init__"}
    assert rooms == set(ALLOWED)


@pytest.mark.parametrize("room", ALLOWED)
def test_imports_run_one_way(room: str) -> None:
    found = {}
    for path in engine_files():
        if room_of_file(path) != room:
            continue
        package = ".".join(path.parent.relative_to(CHECKOUT).parts)
        if trespassed := trespasses(path.read_text(), room=room, package=package):
            found[str(path.relative_to(CHECKOUT))] = trespassed
    assert not found


def test_campaign_and_report_never_meet() -> None:
    assert "report" not in ALLOWED["campaign"]
    assert "campaign" not in ALLOWED["report"]


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("matrix", "from torture.errors import HarnessError"),
        ("matrix", "import torture.record.trials"),
        ("stats", "from torture.record.trials import TrialRecord"),
        ("record", "from torture.scoring.judge import judge"),
        ("record", "from torture import lab"),
        ("record", "import subprocess"),
        ("verdict", "def late():\n    import libvirt"),
        ("verdict", "from ..lab import agent"),
        ("lab", "from torture.shelf.log import activity_of"),
        ("nas", "if True:\n    from torture.trial import live as machinery"),
        ("trial", "import pytest"),
        ("trial", "from fixtures.options import Options"),
        ("campaign", "from torture.report.terminal.outcome_table import outcome_table"),
        ("report", "from torture.campaign.run import Run"),
        ("report", "from torture.lab import lab"),
        ("night", "from torture.campaign.run import Run"),
        ("errors", "from torture.matrix import cells"),
    ],
)
def test_a_trespass_is_seen(room: str, source: str) -> None:
    assert trespasses(source, room=room, package=f"torture.{room}")


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("matrix", "from torture.matrix.axes import Sync"),
        ("record", "from torture.errors import HarnessError"),
        ("lab", "from torture.host import accelerator\nimport subprocess"),
        ("verdict", "from ..record import ledger\nfrom . import fsck"),
        ("campaign", "from torture.trial.live import run_trial"),
        ("report", "from torture.record.trials import TrialRecord"),
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
