"""The plugin against its specification, in random lives. `SHELF_SEQUENCES=10000` runs that many."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.selftest.shelf.machine import run_sequences
from suites.selftest.shelf.rig import build

_SEQUENCES = 100


@pytest.mark.timeout(7200)  # as many as somebody asks for
def test_the_shelf_behaves_as_its_specification_says(folder: Path, sequences: int | None) -> None:
    run_sequences(build(), folder, sequences or _SEQUENCES, is_random=sequences is not None)
