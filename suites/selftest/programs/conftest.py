"""The programs' launcher ends with the session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from suites.selftest.programs.launcher import LAUNCHER


@pytest.fixture(scope="session", autouse=True)
def _launcher_ends() -> Iterator[None]:
    yield
    LAUNCHER.close()
