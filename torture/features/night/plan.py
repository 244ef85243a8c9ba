"""The plan of a night: its cells and shards, the trials of each cell, and the seed (pure)."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import cycle
from pathlib import Path

from torture.choices.matrix.cells import Cell, cells_of
from torture.choices.matrix.shards import Shard
from torture.errors import HarnessError
from torture.facts.axes.sweeps import Matrix
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


OUTPUT_VARIABLE = "GITHUB_OUTPUT"
"""Names the file to which a step of GitHub Actions appends its outputs, one `NAME=VALUE` per line."""
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
"""Names the file to which it appends Markdown for the run's page."""
_WARNING = "::warning title=nightly::"
"""With this before it, GitHub shows a printed line on the run's page."""

_TRIALS = 12


def night_parser(description: str) -> argparse.ArgumentParser:
    """The parser of both subcommands; `command` is the chosen one."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    plan = commands.add_parser("plan", help="print the night's shards and its seed")
    merge = commands.add_parser("merge", help="one page of all shards, compared with last night")
    for command in (plan, merge):
        add = command.add_argument
        add("--matrix", type=Matrix, choices=list(Matrix), default=Matrix.DEFAULT)
        add(
            "--cell",
            type=_cell,
            action="append",
            metavar="NAME",
            help="exactly this cell instead of a matrix; may be repeated",
        )
        add("--trials", type=_positive, default=_TRIALS, metavar="N", help="cuts per cell")
        add(
            "--seed",
            type=_seed,
            default="auto",
            metavar="N|auto",
            help="of the run; auto (default) is today's date, in UTC",
        )
    plan.add_argument("--shards", type=_positive, required=True, metavar="N", help="at most")
    plan.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="the CI's name of a host that cuts shards; several take turns",
    )
    add = merge.add_argument
    add("artifacts", type=Path, metavar="ARTIFACTS", help="the shards' runs lie below it")
    add(
        "--shards",
        type=_positive,
        metavar="N",
        help="as planned, with equal matrix, trials and seed: fails when a trial is missing",
    )
    add("--last", type=Path, required=True, metavar="DIR", help="last night's run, if there is one")
    add("--output", type=Path, required=True, metavar="DIR", help="for page, exports and run/")
    add(
        "--remember",
        action="store_true",
        help="then compare the next night with this one, if it is whole and not worse",
    )
    add("--accept", action="store_true", help="with --remember, also if it is worse")
    _add_upkeep(commands)
    return parser


def _add_upkeep(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    trim = commands.add_parser("trim", help="keep the worst trials' evidence, up to a size")
    trim.add_argument("results", type=Path, metavar="RESULTS", help="the folder of a shard's runs")
    trim.add_argument("--mib", type=_positive, required=True, metavar="N", help="of all evidence")
    age = commands.add_parser("age", help="warn if the newest remembered night is old")
    age.add_argument("last", type=Path, metavar="LAST", help="as in merge --last")
    age.add_argument("--days", type=_positive, default=2, metavar="N")


def plan_of(arguments: argparse.Namespace) -> Plan | None:
    """The plan of the arguments; None without a number of shards."""
    if arguments.shards is None:
        return None
    cells = tuple(dict.fromkeys(arguments.cell or ())) or cells_of(arguments.matrix)
    return Plan(cells=cells, shards=arguments.shards, trials=arguments.trials, seed=arguments.seed)


def write_outputs(outputs: Mapping[str, str]) -> None:
    """Append `NAME=VALUE` lines to the file that the CI names, otherwise print them."""
    lines = "".join(f"{name}={value}\n" for name, value in outputs.items())
    if not _append(os.environ.get(OUTPUT_VARIABLE), lines):
        print(lines, end="")


def write_summary(markdown: str) -> None:
    """Append to the CI's summary of the job, if there is one, and print the text."""
    print(markdown)
    _append(os.environ.get(SUMMARY_VARIABLE), markdown + "\n")


def write_warning(text: str) -> None:
    """Print it, as GitHub wants it."""
    print(f"{_WARNING}{text}")


def _append(place: str | None, text: str) -> bool:
    """Append to a file, if there is one; returns whether there is."""
    if not place:
        return False
    try:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        hint = f"ls -ld {Path(place).parent}"
        raise HarnessError(f"cannot write {place}: {error}", hint=hint) from error
    return True


def _cell(name: str) -> Cell:
    try:
        return Cell.parse(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def _seed(text: str) -> int:
    return seed_of_night(datetime.now(UTC).date()) if text == "auto" else int(text)
