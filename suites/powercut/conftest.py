"""The options of live cuts."""

from __future__ import annotations

import pytest

from fixtures.options import CELLS, CHOICES, LOAD, ORDER, RUNNING, TRIALS, VERSIONS, take_options


def pytest_configure(config: pytest.Config) -> None:
    """All of the core's but those of known bugs."""
    take_options(config, CELLS, CHOICES, VERSIONS, TRIALS, ORDER, LOAD, RUNNING)
