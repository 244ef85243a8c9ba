"""Many restarts of one machine, played in a sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from suites.benchmarks.settings import Settings
from suites.selftest.machinery.restarts import kill_and_resume
from torture.machines.lab.lab import Lab


def restarts(lab: Lab, scratch: Path) -> dict[str, Any]:
    """Kill and resume a machine for as many rounds as the settings request."""
    return kill_and_resume(lab, scratch, rounds=Settings.from_environment().restarts)
