"""The story of a pool that nothing has happened to."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.selftest.unit.audit_story import Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(folder=tmp_path)
