"""Fixtures of the shelf's tests: they run the real plugin, and no virtual machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder with a short path, as sockets need; pytest's own are too long."""
    with tempfile.TemporaryDirectory(prefix="shelf-") as made:
        yield Path(made)


@pytest.fixture(scope="session")
def sequences() -> int | None:
    """How many sequences somebody wants, from the environment; None: few, and always the same."""
    wanted = os.environ.get("SHELF_SEQUENCES")
    return int(wanted) if wanted else None
