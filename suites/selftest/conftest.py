"""Fixtures of the project's own tests."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from torture.host.scratch import Scratch

_DEADLINE_S = 600

# machines under test share the cores: how long an example takes says nothing about the code
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def vm_scratch() -> Iterator[Path]:
    """A folder for real machines: its path is short, as sockets need, and it is always removed."""
    scratch = Scratch()
    scratch.remove_abandoned()
    with scratch.directory(f"s{secrets.token_hex(2)}") as directory:
        yield directory


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """No test of the project may hang, whatever its own deadlines miss."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(_DEADLINE_S))
