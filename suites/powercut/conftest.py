"""The options that live cuts have no use for."""

from __future__ import annotations

import pytest

from fixtures.options import refuse_options
from fixtures.states import WALK_OPTIONS


def pytest_configure(config: pytest.Config) -> None:
    """A live cut walks no crash states."""
    refuse_options(config, *WALK_OPTIONS)
