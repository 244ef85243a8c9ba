"""In random lives and under sanitizers: the plugin as specified. `SHELF_SEQUENCES=10000` runs 10000."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase
from hypothesis.errors import Flaky

from suites.selftest.shelf.machine import run_sequences
from suites.selftest.shelf.mutants import FAULTS, write_mutants
from suites.selftest.shelf.rig import SANITIZERS, SanitizerReport, build, sanitized_build

_RANDOM_SEQUENCES = 100


@pytest.mark.timeout(7200)  # as many as somebody asks for
def test_the_shelf_behaves_as_its_specification_says(folder: Path, sequences: int | None) -> None:
    run_sequences(build(), folder, sequences or _RANDOM_SEQUENCES, is_random=sequences is not None)


# The same sequences under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer.

_SEQUENCES = 15
_SEQUENCES_MAX = 50


@pytest.mark.timeout(7200)  # as many as somebody asks for
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_a_sanitizer_has_nothing_to_say(
    sanitizer: str, folder: Path, sequences: int | None
) -> None:
    shelf = sanitized_build(sanitizer)
    run_sequences(shelf, folder, sequences or _SEQUENCES, is_random=sequences is not None)


@pytest.mark.parametrize(
    ("sanitizer", "fault"),
    [(sanitizer, fault.name) for sanitizer in SANITIZERS for fault in FAULTS[sanitizer]],
)
def test_a_planted_fault_is_reported(
    sanitizer: str, fault: str, folder: Path, tmp_path: Path
) -> None:
    faulty = sanitized_build(sanitizer, write_mutants(tmp_path / "native", FAULTS[sanitizer]))
    found: list[BaseException] = []
    with pytest.raises((SanitizerReport, Flaky)):
        run_sequences(
            faulty.chosen(fault), folder, _SEQUENCES_MAX,
            is_random=False, phases=(Phase.generate,), found=found,
        )  # fmt: skip
    assert isinstance(found[0], SanitizerReport)
