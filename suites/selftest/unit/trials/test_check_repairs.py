"""How often a repair is run: as long as it leaves something, and as much time as it took is left."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from torture.facts.evidence.folder import Completed, Step
from torture.trials.trial import check

REPAIR, CHECK = ("mend", "/dev/vdb"), ("look", "/dev/vdb")


class Clock:
    """The time of `time.monotonic`: it goes on as commands take time."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


def runs_of(
    monkeypatch: pytest.MonkeyPatch, *, took_s: float, left: list[int], ends: bool = True
) -> tuple[int, list[str]]:
    """How often the repair was run, and whose writes were diverted; `left`: what each check returns."""
    clock, kept, diverted = Clock(), [], []

    def run_verbose(*argv: str, deadline_s: float) -> Completed:
        is_repair = argv == REPAIR
        clock.now_s += took_s if is_repair else 1
        assert not is_repair or took_s <= deadline_s or not ends, "it would have been given up"
        code = (0 if ends else None) if is_repair else left.pop(0)
        return Completed(
            vm="checker", argv=argv, exit_code=code, stdout="", stderr="", duration_ms=1
        )

    client = Mock(run_verbose=run_verbose)
    client.divert_writes = lambda disk, into: diverted.append(disk.target)
    trial: Any = SimpleNamespace(
        boots_from_disk=False,
        client_disks=(SimpleNamespace(target="vdb"),),
        device="/dev/vdb",
        scratch=Path("scratch"),
        filesystem=Mock(repairs=(REPAIR,), check=CHECK),
    )
    evidence: Any = SimpleNamespace(keep=lambda step, _completed: kept.append(step))
    monkeypatch.setattr(check, "time", clock)
    monkeypatch.setattr(check, "_mount_read_umount", lambda *_, **__: True)
    check._repair(trial, evidence, client)
    assert kept.count(Step.FS_REPAIR) + kept.count(Step.FS_CHECK_AFTER_REPAIR) == len(kept)
    return kept.count(Step.FS_REPAIR), diverted


@pytest.mark.parametrize(
    ("took_s", "left", "runs"),
    [
        (10, [0], 1),
        (10, [1, 0], 2),
        (10, [1, 1, 1], 3),
        (check.REPAIR_DEADLINE_S * 0.6, [1], 1),
        (check.REPAIR_DEADLINE_S * 0.4, [1, 1], 2),
    ],
)
def test_it_is_run_again_while_something_is_left_and_it_can_come_to_its_end(
    monkeypatch: pytest.MonkeyPatch, took_s: float, left: list[int], runs: int
) -> None:
    assert runs_of(monkeypatch, took_s=took_s, left=left) == (runs, ["vdb"])
    assert left == []


def test_one_that_was_given_up_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    took_s = check.REPAIR_DEADLINE_S + 1
    assert runs_of(monkeypatch, took_s=took_s, left=[1], ends=False)[0] == 1
