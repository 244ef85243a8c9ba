"""A machine that is killed and resumed at once, again and again, played in a sandbox."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from torture.errors import HarnessError
from torture.lab.lab import Lab

_ROUNDS = 5


def kill_and_resume(lab: Lab, scratch: Path) -> dict[str, Any]:
    """A few rounds, for a libvirt that is slow to let go of a machine."""
    return play(lab, scratch, rounds=_ROUNDS)


def play(lab: Lab, scratch: Path, *, rounds: int) -> dict[str, Any]:
    """How long each start took that succeeded, in seconds, and what was said of each that did not."""
    scratch.mkdir(parents=True)
    console_log = scratch / "console.log"
    started_s, refusals = [], []
    for _ in range(rounds):
        console_log.unlink(missing_ok=True)
        begun = time.monotonic()
        try:
            nas = lab.start_nas(console_log=console_log, disks=())
        except HarnessError as error:
            refusals.append(error.message)
            continue
        started_s.append(time.monotonic() - begun)
        nas.kill()
    return {"started_s": started_s, "refusals": refusals}
