"""The project's own tests in tiers: a folder each, chosen by marker, the pure one by `pytest` alone."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from torture.host.scratch import Scratch

_HERE = Path(__file__).parent
_DEADLINE_S = 600

_TIERS = {"machinery": "machines", "shelf": "shelf", "unit": "pure", "browser": "browser"}
"""Folder to marker, in the order in which a run of all begins them: the longest first, so that no
core idles at the end."""
_THOROUGH = "thorough"
"""Of the pure tier what takes long: linters, simulations. Bare `pytest` leaves it out."""

# machines under test share the cores: how long an example takes says nothing about the code
settings.register_profile("unhurried", deadline=None)
settings.register_profile("bare", deadline=None, max_examples=15)


def _is_bare(config: pytest.Config) -> bool:
    """Whether somebody typed `pytest` and nothing that says which tests."""
    chosen = config.option.markexpr or config.option.keyword
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not chosen


def pytest_configure(config: pytest.Config) -> None:
    """A bare run tries few examples of each property; every other run as many as ever."""
    # a worker of a distributed run has the arguments of the whole
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    settings.load_profile("bare" if _is_bare(config) and not is_worker else "unhurried")


@pytest.fixture(scope="session")
def vm_scratch() -> Iterator[Path]:
    """A folder for real machines: its path is short, as sockets need, and it is always removed."""
    scratch = Scratch()
    scratch.remove_abandoned()
    with scratch.directory(f"s{secrets.token_hex(2)}") as directory:
        yield directory


def _tier_of(item: pytest.Item) -> str | None:
    if not item.path.is_relative_to(_HERE):
        return None
    return _TIERS.get(item.path.relative_to(_HERE).parts[0])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tiers, keep a bare run to the pure one, and begin with what takes longest."""
    order = list(_TIERS.values())
    for item in items:
        if (tier := _tier_of(item)) is None:
            continue
        item.add_marker(tier)
        # no test of the project may hang, whatever its own deadlines miss
        item.add_marker(pytest.mark.timeout(_DEADLINE_S))
        if tier in ("machines", "browser"):
            # its tests share machines, or a browser, that a second process would start again
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    if _is_bare(config):
        left_out = [item for item in items if _is_left_out_of_a_bare_run(item)]
        items[:] = [item for item in items if not _is_left_out_of_a_bare_run(item)]
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=lambda item: order.index(_tier_of(item) or order[0]))


def _is_left_out_of_a_bare_run(item: pytest.Item) -> bool:
    is_pure = item.get_closest_marker("pure") is not None
    return not is_pure or item.get_closest_marker(_THOROUGH) is not None
