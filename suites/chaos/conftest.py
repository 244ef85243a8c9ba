"""The options of the chaos: its length, and the seed that draws it."""

from __future__ import annotations

import pytest

from fixtures.options import refuse_options
from fixtures.states import WALK_OPTIONS

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
    refuse_options(config, "--cell", "--matrix", "--shard", "--until", "--schedule", *WALK_OPTIONS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The chaos has deadlines of its own; this one ends it where they fail."""
    for item in items:
        item.add_marker(pytest.mark.timeout(_DEADLINE_S))
