"""The machines' tests share a sandbox to play scenes in, and the controls in their background."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from suites.selftest.machinery.controls import Controls
from suites.selftest.machinery.sandbox import Stage


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A sandbox with a lab, for one scene after the other."""
    with Stage(tmp_path_factory.mktemp("stage") / "log") as stage:
        yield stage


@pytest.fixture(scope="session")
def controls(vm_scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controls]:
    """The trials whose outcome is known, on their way or over."""
    results = tmp_path_factory.mktemp("controls")
    with Controls(scratch=vm_scratch, results=results) as controls:
        yield controls


@pytest.fixture(scope="session", autouse=True)
def _controls_begin_first(request: pytest.FixtureRequest) -> None:
    """The other tests mostly wait: the controls begin before them, and are judged after them."""
    if any(_judges_controls(item) for item in request.session.items):
        request.getfixturevalue("controls")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The controls' tests come last."""
    items.sort(key=_judges_controls)


def _judges_controls(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and "controls" in item.fixturenames
