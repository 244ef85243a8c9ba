"""The way of flushes and forced writes through each target: calls of `zil_commit`, flushes of the disk.

`tools/run suites/benchmarks -k each_flush -rP` prints them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suites.benchmarks.flush_scene import REQUESTS
from suites.selftest.machinery.sandbox import in_sandbox
from torture.choices.matrix.cells import AXES, TRANSPORT

_DEADLINE_S = 900
_DISKS = [
    choice.name for choice in AXES[TRANSPORT.field].choices if not choice.value.traits.gives_files
]
_SWALLOWED = [f"scst_file{end}" for end in ("", "_guest", "_head", "_nv", "_ext4", "_xfs")]
"""SCST on a file: docs/findings.md."""


@pytest.mark.parametrize("transport", _DISKS)
def test_each_flush_reaches_the_log(transport: str, tmp_path: Path) -> None:
    found = in_sandbox(
        "suites.benchmarks.flush_scene:flush_counts",
        scratch=tmp_path / transport,
        log=tmp_path / "log",
        deadline_s=_DEADLINE_S,
    )
    print(json.dumps({transport: found}))
    commits, _ = found["flushes"]
    if transport in _SWALLOWED:
        assert commits == 0
    else:
        assert commits >= REQUESTS
