"""The project's own tests: which of them a session runs, on how many processes, and what all share."""

from __future__ import annotations

import gc
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from suites.selftest.tiers import HOME, Tier, rank_of, tier_of, tiers_of
from torture.machines.host.scratch import Scratch

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

_DEADLINE_S = 600
_PROCESSES_MAX = 4
"""The machines' tests, one after the other, take longer than all others on so many cores."""
_SLOWEST_SHOWN = 30
_BARE_EXAMPLES = 10
"""Examples of a property without arguments, in place of hypothesis's 100 (`unit/examples.py`)."""

# machines under test share the cores: how long an example takes says nothing about the code
settings.register_profile("whole", deadline=None)
settings.register_profile("bare", deadline=None, max_examples=_BARE_EXAMPLES)
settings.load_profile("whole")


@pytest.fixture(scope="session")
def vm_scratch() -> Iterator[Path]:
    """A folder for real machines: its path is short, as sockets need, and it is always removed."""
    scratch = Scratch()
    scratch.remove_abandoned()
    with scratch.directory(f"s{secrets.token_hex(2)}") as directory:
        yield directory


def _names_no_tests(config: pytest.Config) -> bool:
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS


def _names_all_tests(config: pytest.Config) -> bool:
    return [Path(config.invocation_params.dir, name).resolve() for name in config.args] == [HOME]


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Whole tiers are spread over the cores, unless somebody says `-n`, or looks for something."""
    option = config.option
    is_bare = _names_no_tests(config) and not option.markexpr
    if is_bare:
        option.markexpr = Tier.PURE.value
        settings.load_profile("bare")
    if not (_names_no_tests(config) or _names_all_tests(config)):
        return
    if option.durations is None and not option.collectonly:
        option.durations = _SLOWEST_SHOWN
    # without pytest-xdist there is no such option, and in one of its processes it is not asked again
    if not hasattr(option, "numprocesses") or hasattr(config, "workerinput"):
        return
    option.loadscopereorder = False
    processes = min(len(os.sched_getaffinity(0)), _PROCESSES_MAX)
    is_searching = option.keyword or option.usepdb or option.collectonly
    if option.numprocesses is None and processes > 1 and not is_searching:
        # machines wait for one another, pure tests for threads and deadlines of their own
        option.numprocesses = processes + 1


def pytest_configure(config: pytest.Config) -> None:
    """A marker for each tier; and what is compiled is kept."""
    for tier in Tier:
        config.addinivalue_line("markers", f"{tier}: {tier.meaning}")
    _keep_bytecode()


def pytest_sessionstart() -> None:
    """No garbage is looked for among what is only being loaded: it took a third of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Nor again and again among thousands of tests, which all stay."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Objects of C++ are freed in the end, as it complains otherwise."""
    gc.enable()
    gc.unfreeze()


def _keep_bytecode() -> None:
    """Compiled Python stays beside its sources, even where Python may write none, as in many containers.

    A whole run has dozens of processes, and each would compile anew all that it imports.
    """
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_report_header(config: pytest.Config) -> str:
    """The tiers that a session leaves out if it names nothing."""
    left_out = sorted(set(Tier) - tiers_of(config.option.markexpr))
    if not left_out:
        return "tiers: all"
    chosen = ", ".join(sorted(tiers_of(config.option.markexpr)))
    return f"tiers: {chosen}; not {', '.join(left_out)} (-m TIER; all: tools/run suites/selftest)"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A tier that was not chosen is not even imported."""
    if collection_path.parent != HOME or not collection_path.is_dir():
        return None
    if not any(collection_path.glob("test_*.py")):
        return None
    return True if tier_of(collection_path) not in tiers_of(config.option.markexpr) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with its folder's tier; none may hang, whatever its own deadlines miss."""
    for item in items:
        if (tier := tier_of(item.path)) is not None:
            item.add_marker(tier.value)
            item.add_marker(pytest.mark.timeout(_DEADLINE_S))
    if hasattr(config, "workerinput"):
        # each process has to come to the same order
        items.sort(key=lambda item: rank_of(item.path))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling | None:
    """Tests go out file by file; a folder that stays together goes to one process."""
    if not (_names_no_tests(config) or _names_all_tests(config)):
        return None
    from suites.selftest.scheduling import TierScheduling

    return TierScheduling(config, log)
