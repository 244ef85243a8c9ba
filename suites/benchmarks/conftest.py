"""Fixtures of the benchmarks, and their figures at the end of the run."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from suites.benchmarks.figures import Figures
from suites.benchmarks.settings import Settings
from torture.machines.host.scratch import Scratch

_DEADLINE_S = 3600
"""Of one benchmark, on a slow disk; each step in it has a deadline of its own."""

_lines_key = pytest.StashKey[list[str]]()

MakeFolder = Callable[[Path], Path]


@pytest.fixture(scope="session")
def settings() -> Settings:
    """How much is measured."""
    return Settings.from_environment()


@pytest.fixture
def figures(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Figures:
    """The measurements of a benchmark, for the report and for the end of the run."""
    lines = request.config.stash.setdefault(_lines_key, [])
    return Figures(record_property=record_property, lines=lines)


@pytest.fixture(scope="session")
def make_folder() -> Iterator[MakeFolder]:
    """Makes a folder on a filesystem, its path short as sockets need; it is always removed."""
    with ExitStack() as stack:

        def make(place: Path) -> Path:
            scratch = Scratch(place)
            scratch.remove_abandoned()
            return stack.enter_context(scratch.directory(f"bench-{secrets.token_hex(2)}"))

        yield make


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """No benchmark may hang, whatever its own deadlines miss."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(_DEADLINE_S))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line a figure."""
    lines = terminalreporter.config.stash.get(_lines_key, [])
    if not lines:
        return
    terminalreporter.section("benchmarks")
    for line in lines:
        terminalreporter.write_line(line)
