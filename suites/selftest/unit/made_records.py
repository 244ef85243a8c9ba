"""Records for tests that name a field alone, wherever in a record it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from msgspec import structs

from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import Cell
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.judgement import UNJUDGED, Findings, Judgement
from torture.records.record.trials import TrialRecord

_Value = TypeVar("_Value")
_OF_RECORD = set(TrialRecord.names())
_OF_JUDGEMENT = set(Judgement.names())
_OF_FINDINGS = set(Findings.names()) - _OF_JUDGEMENT


def trial_record(*, trial: str, cell: str, **others: Any) -> TrialRecord:
    """A record of these fields; `data` is the verdict of the data."""
    judgement = Judgement(verdict=Verdict.INTACT, findings=UNJUDGED)
    return changed(TrialRecord(trial=trial, cell=cell, judgement=judgement), **others)


def record_in(cell: Cell, verdict: Verdict, **others: Any) -> TrialRecord:
    """A record of a trial of this cell."""
    own: dict[str, Any] = {"trial": "t", "axes": cell.axes, "seed": 1, "verdict": verdict}
    return trial_record(cell=cell.name, **(own | {"guarantee": guarantee_of(cell)} | others))


def plain(record: TrialRecord, **fields: Any) -> dict[str, Any]:
    """The record as plain data, with any values in these fields; `...` leaves the field out."""
    data = record.as_json()
    judgement = data["judgement"]
    for name, value in fields.items():
        homes = ((_OF_JUDGEMENT, judgement), (_OF_FINDINGS, judgement["findings"]))
        home = next((home for names, home in homes if name in names), data)
        home[name] = value
        if value is ...:
            del home[name]
    return data


def changed(value: _Value, **changes: Any) -> _Value:
    """A copy with other values; of a record also those of its judgement and of its findings."""
    if not isinstance(value, TrialRecord):
        return replace(value, **changes)  # type: ignore[type-var]
    verdicts, found = changes.pop("verdicts", {}), changes.pop("found", {})
    changes |= found | {part: verdict and Verdict(verdict) for part, verdict in verdicts.items()}
    own = {name: changes.pop(name) for name in _OF_RECORD & changes.keys()}
    judgement = own.pop("judgement", value.judgement)
    findings = changes.get("findings", judgement.findings)
    if "data" in changes:
        findings = structs.replace(findings, verdict=changes.pop("data"))
    of_findings = {name: changes.pop(name) for name in _OF_FINDINGS & changes.keys()}
    changes["findings"] = structs.replace(findings, **of_findings)
    return structs.replace(value, **own, judgement=structs.replace(judgement, **changes))
