"""Waiting for the moment of a cut: the NAS's commands, and the event at which the shelf freezes."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from torture.machines.shelf.control import FreezeOn
from torture.trials.plan.cut_plan import TARGETS, Aim, CutPlan
from torture.trials.trial.client_load.loads import Loads
from torture.trials.trial.moment import wait_for_moment


@dataclass
class Scene:
    """A NAS and a shelf that only listen, and a trial that they could be of."""

    aim: Aim
    said: list[Any] = field(default_factory=list)
    is_frozen: bool = False

    def run(self, *argv: str, deadline_s: float) -> None:
        self.said.append(("run", argv))

    def start(self, argv: tuple[str, ...]) -> int:
        self.said.append(("start", argv))
        return 7

    def freeze_on(self, trigger: FreezeOn) -> None:
        self.said.append(("freeze", trigger.as_json()))
        self.is_frozen = True

    def wait(self) -> bool:
        plan = CutPlan(after_ms=0.0, aim=self.aim, delay_ms=0.0, count=3)
        shelf: Any = self
        nas: Any = SimpleNamespace(run=self.run, agent=self)
        return wait_for_moment(plan, shelf, Loads(()), nas)


@pytest.mark.parametrize("aim", TARGETS)
def test_the_nas_gets_its_command_first_and_then_the_shelf_awaits_the_target(aim: Aim) -> None:
    scene, target = Scene(aim=aim), TARGETS[aim]
    assert scene.wait()
    *orders, (last, trigger) = scene.said
    expected = [("run", target.warm_up)] if target.warm_up else []
    assert orders == expected + ([("start", target.stir)] if target.stir else [])
    assert last == "freeze"
    assert trigger.pop("zil_uncovered", 0) == target.zil_uncovered
    assert trigger.pop("zil_reused", False) == target.is_zil_reused
    assert trigger.pop("role", None) == target.role
    assert trigger == {"event": target.event, "count": 3}


def test_a_cut_without_an_aim_gives_no_commands() -> None:
    scene = Scene(aim=Aim.ANYWHERE)
    assert scene.wait()
    assert scene.said == []
