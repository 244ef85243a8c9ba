"""No file is a warehouse, and the set-up needs only Python. `pyproject.toml` has the rules of imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from torture.files import CHECKOUT

TORTURE = CHECKOUT / "torture"
LINES_MAX = 500
FOLDER_LINES_MAX = 2500
SAME_THING = frozenset({"ledger", "replay"})
"""`evidence.ledger` is what `workloads.ledger` leaves, `schedules.replay` the schedule of a replay."""

SOURCES = ("torture", "fixtures", "suites", "vmimages", "tools", ".ci")
SUFFIXES = frozenset({"", ".py", ".sh", ".toml", ".cpp", ".hpp", ".ini"})
"""Of what people write; recorded outputs and prose are as long as they are."""


def engine_files() -> list[Path]:
    return sorted(TORTURE.rglob("*.py"))


def test_every_folder_is_a_package() -> None:
    """Import-linter sees no other."""
    folders = {path.parent for path in engine_files()}
    assert [str(one) for one in folders if not (one / "__init__.py").is_file()] == []


def test_a_wing_by_itself_is_a_docstring() -> None:
    wings = [path for path in TORTURE.glob("*/__init__.py") if path.parent.name != "setup"]
    assert len(wings) >= 7
    for wing in wings:
        [said] = ast.parse(wing.read_text()).body
        assert isinstance(said, ast.Expr), f"{wing.parent.name} is its rooms"


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
    assert {"run", "doctor", "judge", "replay", "report", "plan"} <= {path.name for path in tools}
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
    """A protocol is one in every room; a load is called as what it keeps.

    A feature's module has the name of the part of the core that it extends.
    """
    places: dict[str, list[str]] = {}
    for path in engine_files():
        if path.parent.parent == TORTURE / "features":
            continue
        places.setdefault(path.stem, []).append(str(path.parent.relative_to(TORTURE)))
    alike = {name: rooms for name, rooms in places.items() if len(rooms) > 1}
    assert alike.keys() <= {"__init__", "protocol", *SAME_THING}


@pytest.mark.parametrize(
    "module",
    [
        "torture.setup.doctor",
        "torture.setup.provision",
        "torture.machines.host.native",
        "fixtures.early_options",
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
