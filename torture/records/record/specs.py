"""The instructions of a trial: plain data, drawn from the run's seed."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from torture.choices.matrix.axes import DISK_SECTOR
from torture.choices.matrix.cells import Cell
from torture.choices.workloads.protocol import Brought
from torture.facts.axes.setting import SECTOR_BEFORE
from torture.facts.evidence.walk_document import WalkEngine
from torture.records.record.measure_order import MeasureOrder
from torture.records.record.trials import Origin

DRAW = 3
"""The version of a seed's draws. It grows when seeds draw other cuts or survivors; old specs keep
theirs."""
_DRAW_WITH_DISK_SECTORS = 3
"""Earlier draws had disks of `SECTOR_BEFORE`, and their names say nothing of sectors."""


WALK_MINUTES = 20
"""The time of a walk without a choice of the user."""
FRESH_S = 30
"""The time for each fresh recovery of a content; under emulation it takes some 20 s."""


_FIRST_OF_THEIR_SEED = (Origin.LIVE, Origin.PLANTED, Origin.WALKED, Origin.MEASURED)


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
    """The name of a fault that is planted on purpose (`torture.choices.faults`); empty for none."""
    brought: tuple[Brought, ...] = ()
    """The user's own files for the loads."""
    origin: Origin = Origin.LIVE
    repeats: str = ""
    """The name of the trial that this one repeats; empty for a live one."""
    replay_of: str = ""
    """The evidence folder of that trial. `Origin.REPLAY` opens the recording that is in it."""
    draw: int = DRAW
    """The version of the seed's draws: specs without one are of the first."""
    walk_states: int = 0
    """The number of crash states of its recording to recover, where it is walked."""
    walk_engine: WalkEngine = WalkEngine.KERNEL
    """The code that recovers them."""
    walk_coverage: bool = False
    """Whether the native engine counts the blocks of ZFS's code that it runs."""
    walk_fresh: int = 0
    """The number of contents for each of which a fresh NAS recovers a state once more."""
    walk_minutes: int = WALK_MINUTES
    """The walk ends after this time, whatever is left; fresh recoveries of contents come on top."""
    measure: MeasureOrder | None = None
    """The jobs to measure, instead of a load and a cut."""

    def __post_init__(self) -> None:
        if (self.origin in _FIRST_OF_THEIR_SEED) != (self.repeats == ""):
            raise ValueError(f"a {self.origin} trial cannot repeat {self.repeats!r}")
        if self.origin is Origin.PLANTED and not self.fault:
            raise ValueError("a planted trial has a fault")

    @property
    def walk_s(self) -> int:
        """The time of its walk at most, with the fresh recoveries; 0 where it is not walked."""
        return self.walk_minutes * 60 + self.walk_fresh * FRESH_S if self.walk_states else 0

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
        named = {one: f"{one}." for one in (Origin.WALKED, Origin.MEASURED)}
        kind = (named | {Origin.PLANTED: f"{self.fault}."}).get(self.origin, "")
        return f"{kind}{cell.frozen_name}.{self.index:04d}-{self.seed:016x}"

    def as_json(self) -> dict[str, Any]:
        """The spec as plain data; `from_json` takes it back."""
        return asdict(self) | {"cell": self.cell.name}

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
            brought=tuple(
                Brought(**{field.name: str(raw[field.name]) for field in fields(Brought)})
                for raw in data.get("brought", ())
            ),
            origin=Origin(data.get("origin", Origin.LIVE)),
            repeats=data.get("repeats", ""),
            replay_of=data.get("replay_of", ""),
            draw=draw,
            walk_states=data.get("walk_states", 0),
            walk_engine=WalkEngine(data.get("walk_engine", WalkEngine.KERNEL)),
            walk_coverage=data.get("walk_coverage", False) is True,
            walk_fresh=data.get("walk_fresh", 0),
            walk_minutes=data.get("walk_minutes", WALK_MINUTES),
            measure=MeasureOrder.from_json(data["measure"]) if data.get("measure") else None,
        )


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
