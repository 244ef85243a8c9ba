"""The options of the chaos: its length, and the seed that draws it."""

from __future__ import annotations

import pytest

from fixtures.options import CHOICES, LOAD, RUNNING, TRIALS, VERSIONS, take_options

_DISTURBANCES = 20
_DEADLINE_S = 4 * 3600


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register `--disturbances`."""
    parser.getgroup("powercut").addoption(
        "--disturbances",
        type=int,
        default=_DISTURBANCES,
        metavar="N",
        help=f"how often something is killed or stands still (suites/chaos; default: {_DISTURBANCES})",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Its campaigns are of the quick matrix."""
    take_options(config, CHOICES, VERSIONS, TRIALS, LOAD, RUNNING)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The chaos has deadlines of its own; this one ends it where they fail."""
    for item in items:
        item.add_marker(pytest.mark.timeout(_DEADLINE_S))
