"""The printed answers of pools administered in trials, and evidence that is made of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from suites.selftest.unit.good_evidence import RECORDED, evidence, output_of
from torture.choices.administration import CHOICES
from torture.choices.administration.protocol import Administration, Outcome, Printed
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.folder import AdministrationDocument, Evidence, Step, ToolOutput

ALL = {choice.name: choice.value for choice in CHOICES if choice.value is not None}
OPERATIONS = {name: operation for name, operation in ALL.items() if operation.sweep is not None}
"""Those of the sweeps; any other is one of these with its cut at another time."""
CASES = sorted(path.stem for path in (RECORDED / "administration").glob("*.json"))
HOME = "iscsi-standard-noslog-btrfs-bothdie"
CELL = "iscsi-standard-noslog-raidz1-expand-btrfs-nasonly"


def outputs_of(case: str) -> list[ToolOutput]:
    """The printed answers of a trial, by the name of its operation and of its outcome."""
    raw = json.loads((RECORDED / "administration" / f"{case}.json").read_text())
    return [output_of(one) for one in raw]


def read(case: str, outputs: list[ToolOutput]) -> Outcome:
    return administration_of(case).read(Printed(outputs))


def administration_of(case: str) -> Administration:
    return OPERATIONS[case.split("-")[0]]


def with_pool(case: str, **changes: Any) -> list[ToolOutput]:
    """The same, with other sections in what `zpool status` says of the pool; None: without one."""
    (output,) = outputs_of(case)
    document = json.loads(output.stdout)
    pool = document["pools"]["tank"]
    for key, value in changes.items():
        pool.pop(key, None)
        if value is not None:
            pool[key] = value
    return [replace(output, stdout=json.dumps(document))]


def at(step: Step, outputs: list[ToolOutput]) -> tuple[ToolOutput, ...]:
    return tuple(replace(output, step=step) for output in outputs)


def cut(
    *states: list[ToolOutput],
    end: list[ToolOutput] | None = None,
    returned: int | None = None,
    cell: str = CELL,
) -> Evidence:
    """Good evidence of an operation: what was printed after each import, and in the end."""
    made = evidence()
    tools = [output for state in states for output in at(Step.ADMINISTRATION_STATE, state)]
    if end is not None:
        tools += at(Step.ADMINISTRATION_END, end)
    name = Cell.parse(cell).axes["administration"]
    document = AdministrationDocument(name=name, moment="start", issued_seq=1, returned=returned)
    return replace(
        made, spec={"cell": cell, "seed": 1}, tools=(*made.tools, *tools), administration=document
    )
