"""The instructions of a trial: plain data, drawn from the run's seed."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from torture.choices.matrix.cells import DISK_SECTOR, Cell
from torture.choices.workloads.protocol import Brought
from torture.facts.axes.setting import SECTOR_BEFORE
from torture.facts.evidence.documents import strictly
from torture.records.record.trials import Origin, known_origins
from torture.records.tasks import as_json, drawn_origins, task_of
from torture.records.tasks.core_tasks import Cut, Replay
from torture.records.tasks.protocol import Task

DRAW = 3
"""The version of a seed's draws. It grows when seeds draw other cuts or survivors; old specs keep
theirs."""
DRAWS = (1, DRAW)
"""Those that this version can make: no published trial is of draw 2."""
_DRAW_WITH_DISK_SECTORS = 3
"""Earlier draws had disks of `SECTOR_BEFORE`, and their names say nothing of sectors."""


_LAST_WITHOUT_TASKS = "9486305e"
"""The commit that still reads specs with a walk or a measurement but no `task`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialSpec:
    """One trial: a cell, a seed, and the length of its load.

    Raises `ValueError` for a live trial that repeats another, and for a repeated one that does not.
    """

    cell: Cell
    index: int
    """Place among the trials of this cell, from 0."""
    seed: int
    """Every random choice in the trial is drawn from it (64 bits)."""
    load_ms: int
    """Length of the load phase within which the cut falls."""
    survive_ms: int = 4000
    """The time for which a surviving client goes on writing once the NAS is back."""
    fault: str = ""
    """The name of a fault that is planted on purpose (`torture.choices.experiments`); empty for none."""
    brought: tuple[Brought, ...] = ()
    """The user's own files for the loads."""
    origin: str = Origin.LIVE
    """As that of the record."""
    repeats: str = ""
    """The name of the trial that this one repeats; empty for a live one."""
    replay_of: str = ""
    """The evidence folder of that trial, with its plan, and its recording."""
    task: Task = field(default_factory=Cut)
    draw: int = DRAW
    """The version of the seed's draws: specs without one are of the first."""

    def __post_init__(self) -> None:
        if self.draw not in DRAWS:
            raise ValueError(f"draw {self.draw} is not in {DRAWS}; commit 75e50dc5 has 2, too")
        is_drawn = self.origin in (Origin.LIVE, Origin.PLANTED) or self.origin in drawn_origins()
        if is_drawn != (self.repeats == ""):
            raise ValueError(f"a {self.origin} trial cannot repeat {self.repeats!r}")
        if self.origin == Origin.PLANTED and not self.fault:
            raise ValueError("a planted trial has a fault")

    @property
    def trial(self) -> str:
        """The trial's name: the same for the same cell, index and run seed.

        A repeated trial has the name of the first with its origin after it. It never stands for the
        first.
        """
        if self.repeats:
            return f"{self.repeats}.{self.origin}"
        cell = self.cell
        if self.draw < _DRAW_WITH_DISK_SECTORS:
            cell = cell.but(disk_sector=DISK_SECTOR.default or "")
        named = {origin: f"{origin}." for origin in drawn_origins()}
        kind = (named | {Origin.PLANTED: f"{self.fault}."}).get(self.origin, "")
        return f"{kind}{cell.frozen_name}.{self.index:04d}-{self.seed:016x}"

    def as_json(self) -> dict[str, Any]:
        """The spec as plain data; `from_json` takes it back."""
        return asdict(self) | {"cell": self.cell.name, "task": as_json(self.task)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The spec of `as_json`'s data; other keys are ignored. Raises `ValueError`, `KeyError`."""
        draw = int(data.get("draw", 1))
        cell = Cell.parse(data["cell"])
        if draw < _DRAW_WITH_DISK_SECTORS:
            cell = cell.but(disk_sector=SECTOR_BEFORE)
        return cls(
            cell=cell,
            index=data["index"],
            seed=data["seed"],
            load_ms=data["load_ms"],
            survive_ms=data["survive_ms"],
            fault="" if data.get("fault", "none") == "none" else data["fault"].replace("_", "-"),
            brought=strictly(tuple[Brought, ...], data.get("brought", ())),
            origin=_known_origin(data.get("origin", Origin.LIVE)),
            repeats=data.get("repeats", ""),
            replay_of=data.get("replay_of", ""),
            draw=draw,
            task=_task_in(data),
        )


def _known_origin(text: str) -> str:
    if text not in known_origins():
        raise ValueError(f"origin {text!r} is unknown")
    return text


def _task_in(data: dict[str, Any]) -> Task:
    """The task of a spec; one without is a cut or its replay."""
    if "task" in data:
        return task_of(data["task"])
    if data.get("walk_states") or data.get("measure"):
        raise ValueError(
            f"its walk or measurement is read by commit {_LAST_WITHOUT_TASKS} and before"
        )
    return Replay() if data.get("origin") == Origin.REPLAY else Cut()


def draw_seed(*, run_seed: int, cell: Cell, index: int, fault: str = "", draw: int = DRAW) -> int:
    """The seed of one trial: the same whichever other cells are selected, and in any order.

    It differs for each `draw` since disks have their own sectors: no two trials share a name.
    """
    drawn = f"draw {draw}" if draw >= _DRAW_WITH_DISK_SECTORS else ""
    text = "/".join([str(run_seed), cell.frozen_name, str(index), *filter(None, [fault, drawn])])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


DRAWN_AGAIN_MAX = 3
"""The limit of new draws for a trial: a cell whose cuts are all empty must come to an end."""


def drawn_again(spec: TrialSpec) -> TrialSpec:
    """The successor of a trial whose cut could take nothing, with a seed drawn from its own."""
    return replace(spec, seed=draw_seed(run_seed=spec.seed, cell=spec.cell, index=spec.index))
