"""Fixtures of the project's own tests."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from torture.lab.scratch import Scratch


@pytest.fixture(scope="session")
def vm_scratch() -> Iterator[Path]:
    """A folder for real machines: its path is short, as sockets need, and it is always removed."""
    scratch = Scratch()
    scratch.remove_abandoned()
    with scratch.directory(f"s{secrets.token_hex(2)}") as directory:
        yield directory
