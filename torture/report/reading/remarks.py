"""Sentences for the report's reader about damaged, old or unknown content of the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from torture.records.record.run_document import RUN_FILE, TRIALS_FILE
from torture.records.record.trials_file import Odd
from torture.report.reading.runs import RunInfo
from torture.report.reading.text import printable, shortened

_EXAMPLES_MAX = 3
_NOTE_CHARACTERS_MAX = 500
"""The longest note that a merged run keeps about one of its runs."""


class Remark(StrEnum):
    """The kinds of remarks on a file, besides the oddities of single records."""

    UNREADABLE = "unreadable"
    CUT_OFF = "cut off"
    CELL = "cell"
    GUARANTEE = "guarantee"
    NO_GUARANTEE = "no guarantee"


_SENTENCES: dict[Remark | Odd, tuple[str, str]] = {
    Remark.UNREADABLE: (
        "1 line cannot be read and is left out: {line} ({examples})",
        "{count} lines cannot be read and are left out, the first of them {line} ({examples})",
    ),
    Remark.CUT_OFF: (
        "the last line, {line}, was cut off and is left out: the run was stopped, or still goes on",
        "{count} last lines were cut off",
    ),
    Remark.CELL: (
        "1 record is of a cell that this version does not know, and is kept under its own name: "
        "{examples}",
        "{count} records are of cells that this version does not know, and are kept under their own "
        "names: {examples}",
    ),
    Remark.GUARANTEE: (
        "1 record was made under another guarantee; today's counts: {examples}",
        "{count} records were made under another guarantee; today's counts: {examples}",
    ),
    Remark.NO_GUARANTEE: (
        "1 record's cell has no known guarantee, so it cannot have broken one: {examples}",
        "{count} records' cells have no known guarantee, so they cannot have broken one: {examples}",
    ),
    Odd.NEWER: (
        "1 record has a newer schema ({examples}), and what is new in it is not shown",
        "{count} records have a newer schema ({examples}), and what is new in it is not shown",
    ),
    Odd.VERDICT: (
        "1 record has a verdict that this version does not know, and counts as inconclusive: {examples}",
        "{count} records have verdicts that this version does not know, and count as inconclusive: "
        "{examples}",
    ),
    Odd.FIELD: (
        "1 field has another type than it should, and is left out: {examples} (from {line} on)",
        "{count} fields have other types than they should, and are left out: {examples} (from {line} on)",
    ),
}


@dataclass(slots=True)
class _Remarked:
    count: int = 0
    first_line: int = 0
    examples: list[str] = field(default_factory=list)


class Remarks:
    """Collects remarks on the files; its memory is bounded, whatever the files hold."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, Remark | Odd], _Remarked] = {}

    def add(self, run: str, what: Remark | Odd, *, line: int, example: str) -> None:
        """Add a remark on a run's file; only the first few examples are kept."""
        seen = self._seen.setdefault((run, what), _Remarked(first_line=line))
        seen.count += 1
        example = shortened(printable(example))
        if len(seen.examples) < _EXAMPLES_MAX and example not in seen.examples:
            seen.examples.append(example)

    def count(self, what: Remark | Odd) -> int:
        """The number of remarks of a kind, on all files."""
        return sum(seen.count for (_, kind), seen in self._seen.items() if kind is what)

    def sentences(self) -> tuple[str, ...]:
        """One sentence for each kind of remark and file."""
        return tuple(
            f"{printable(run)}/{TRIALS_FILE}: "
            + _SENTENCES[what][seen.count > 1].format(
                count=f"{seen.count:,}",
                line=f"line {seen.first_line:,}",
                examples=", ".join(seen.examples),
            )
            for (run, what), seen in self._seen.items()
        )


def notes_on_runs(runs: Sequence[RunInfo]) -> Iterator[str]:
    """Sentences about whole runs, and the notes that merged runs carry."""
    for run in runs:
        name = printable(run.name)
        if not run.is_documented:
            yield (
                f"{name} has no readable {RUN_FILE}: its software and host are unknown, and whether it "
                "stopped when its question was answered"
            )
        if not run.layout.trials_file.is_file():
            yield f"{name} has no trials"
        for note in run.document.notes:
            yield f"{name}: {shortened(printable(note), _NOTE_CHARACTERS_MAX)}"
