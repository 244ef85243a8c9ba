"""Wrong shelves are distinguished from right ones: each mistake is found within a few sequences."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase
from hypothesis.errors import Flaky

from suites.selftest.shelf.machine import run_sequences
from suites.selftest.shelf.mutants import (
    MUTANTS,
    POLICY_MUTANTS,
    RECORDING_MUTANTS,
    write_mutants,
)
from suites.selftest.shelf.requests import Difference
from suites.selftest.shelf.rig import Build, build

_ALL = (*MUTANTS, *POLICY_MUTANTS, *RECORDING_MUTANTS)
_SEQUENCES_MAX = 250
_SEQUENCES_OF_THE_CONTROL = 40


@pytest.fixture(scope="module")
def wrong_shelves(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """All mutants in one build, none of them switched on."""
    return build(
        write_mutants(tmp_path_factory.mktemp("mutants") / "native", _ALL), optimised=False
    )


def differences(shelf: Build, folder: Path, sequences: int) -> list[Difference]:
    """The findings until the first difference; anything else is raised."""
    found: list[BaseException] = []
    try:
        run_sequences(
            shelf, folder, sequences, is_random=False, phases=(Phase.generate,), found=found
        )
    except (Difference, Flaky):  # threads do not repeat themselves
        assert found
    assert all(isinstance(error, Difference) for error in found), found
    return [error for error in found if isinstance(error, Difference)]


@pytest.mark.parametrize("name", [mutant.name for mutant in _ALL])
def test_a_wrong_shelf_is_found_out(name: str, wrong_shelves: Build, folder: Path) -> None:
    assert differences(wrong_shelves.chosen(name), folder, _SEQUENCES_MAX)


def test_the_same_build_without_a_mistake_is_not(wrong_shelves: Build, folder: Path) -> None:
    assert not differences(wrong_shelves, folder, _SEQUENCES_OF_THE_CONTROL)
