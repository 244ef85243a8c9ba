"""The plan of a night: its cells and shards, the trials of each cell, and the seed (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import cycle

from torture.choices.matrix.cells import Cell
from torture.choices.matrix.shards import Shard
from torture.records.record.specs import DRAWN_AGAIN_MAX, TrialSpec, draw_seed, drawn_again


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """The missing trials of a shard."""

    shard: Shard
    missing: int
    trials: int
    """The number of its planned trials."""
    cells: tuple[str, ...]
    """The names of the cells with a missing trial."""

    def __str__(self) -> str:
        cells = ", ".join(self.cells)
        if self.missing == self.trials:
            return f"shard {self.shard} is missing: none of its {self.trials} trials came ({cells})"
        return (
            f"shard {self.shard} is not complete: {self.missing} of its {self.trials} trials did"
            f" not come ({cells})"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A whole night. The same plan has the same trials, in any number of shards."""

    cells: tuple[Cell, ...]
    shards: int
    """The requested number; there are never more shards than cells."""
    trials: int
    """The trials of each cell."""
    seed: int
    """The run's seed, equal in every shard."""

    @property
    def all_shards(self) -> tuple[Shard, ...]:
        """Every shard with cells."""
        return Shard.all_of(min(self.shards, len(self.cells)))

    def outputs(self, *, hosts: Sequence[str] = ()) -> dict[str, str]:
        """The outputs for a CI's jobs, by name: `shards` is a JSON list, `count` its length.

        With hosts each shard is an object that names the host that cuts it. Hosts take turns, so that the
        same cells meet the same host every night.
        """
        shards = [str(shard) for shard in self.all_shards]
        dealt = [{"shard": shard, "host": host} for shard, host in zip(shards, cycle(hosts))]
        return {
            "shards": json.dumps(dealt if hosts else shards, separators=(",", ":")),
            "count": str(len(shards)),
            "trials": str(self.trials),
            "seed": str(self.seed),
        }

    def gaps(self, found: Iterable[str]) -> tuple[Gap, ...]:
        """The shards with trials that are missing among the found ones; trials go by their names."""
        there = frozenset(found)
        return tuple(gap for shard in self.all_shards if (gap := self._gap(shard, there)))

    def unplanned(self, found: Iterable[str]) -> int:
        """How many found trials are neither planned nor drawn after an empty cut."""
        return len(frozenset(found).difference(*map(self._possible_names, self.cells)))

    def _gap(self, shard: Shard, found: frozenset[str]) -> Gap | None:
        owed = {
            cell: {spec.trial for spec in self._specs(cell)} - found
            for cell in shard.share_of(self.cells)
        }
        missing = sum(map(len, owed.values()))
        if missing == 0:
            return None
        return Gap(
            shard=shard,
            missing=missing,
            trials=len(owed) * self.trials,
            cells=tuple(sorted(cell.name for cell, names in owed.items() if names)),
        )

    def _possible_names(self, planned: Cell) -> Iterator[str]:
        for spec in self._specs(planned):
            yield spec.trial
            for _ in range(DRAWN_AGAIN_MAX):
                spec = drawn_again(spec)
                yield spec.trial

    def _specs(self, planned: Cell) -> Iterator[TrialSpec]:
        for index in range(self.trials):
            seed = draw_seed(run_seed=self.seed, cell=planned, index=index)
            yield TrialSpec(cell=planned, index=index, seed=seed, load_ms=0)


def seed_of_night(day: date) -> int:
    """A new seed each day, equal for all shards of that day: 20260729."""
    return day.year * 10_000 + day.month * 100 + day.day
