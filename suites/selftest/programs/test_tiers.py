"""Which tests a session runs that says little, and that all of them have a tier."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from suites.selftest.programs.launcher import LAUNCHER, run_program
from suites.selftest.tiers import HOME, Tier, tier_of, tiers_of
from torture.files import CHECKOUT

DEADLINE_S = 180


def collect(*arguments: str) -> list[str]:
    """The tests that a session would run."""
    done = pytest_with("--collect-only", "-q", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


def pytest_with(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = ("-m", "pytest", "-p", "no:cacheprovider", *arguments)
    return LAUNCHER.run(*argv, deadline_s=DEADLINE_S)


def test_without_arguments_the_pure_tests_run_and_the_whole_suite_runs_all() -> None:
    bare, whole = collect(), collect("suites/selftest")
    assert len(bare) > 1000
    assert bare == [test for test in whole if test.startswith("suites/selftest/unit/")]
    files = {str(path.relative_to(CHECKOUT)) for path in HOME.rglob("test_*.py")}
    assert {test.partition("::")[0] for test in whole} == files


def test_each_folder_of_tests_has_a_tier_and_each_tier_a_folder() -> None:
    assert {tier_of(path) for path in HOME.rglob("test_*.py")} == set(Tier)


def test_a_folder_without_a_tier_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        tier_of(HOME / "elsewhere" / "test_it.py")
    assert tier_of(HOME / "conftest.py") is None
    assert tier_of(CHECKOUT / "suites" / "powercut" / "test_powercut.py") is None


@pytest.mark.parametrize("expression", ["", "shelf or browser", "not machines", "nonsense"])
def test_an_expression_may_choose_from_any_tier(expression: str) -> None:
    assert tiers_of(expression) == set(Tier)


def test_power_cuts_are_not_dealt_out_to_processes_that_would_each_run_them_all() -> None:
    done = pytest_with("suites/powercut", "--matrix", "quick", "-k", "always", "-n", "1")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "--jobs, not -n" in done.stdout
    assert "passed" not in done.stdout


def test_bytecode_is_kept_even_where_python_may_write_none() -> None:
    """By a process started for real: a fork has its parent's settings."""
    test = HOME / "unit" / "facts" / "test_axes.py"
    for file in _bytecode_of(test):
        file.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "pytest", "-n0", "-q", "--collect-only", "-p", "no:cacheprovider"]
    done = run_program(*argv, test, deadline_s=DEADLINE_S, PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert _bytecode_of(test)


def _bytecode_of(source: Path) -> list[Path]:
    return list(source.parent.glob(f"__pycache__/{source.stem}.*.pyc"))
