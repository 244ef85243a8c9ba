"""One JSON document with the figures of every cell; `trials.jsonl` has the trials already."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torture.facts.stats.rates import CONFIDENCE, Rate
from torture.files import write_whole
from torture.oracles.verdict.guarantee import Verdict
from torture.report.exports.protocol import ExportFormat
from torture.report.figures.answer import Group, answer, theory_of
from torture.report.figures.cell_figures import CellFigures, cell_figures, rates_either_way
from torture.report.figures.tables import CELL_RATES, EXPORT_SCHEMA
from torture.report.reading.runs import RunInfo
from torture.report.reading.store import Store


def export_json(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `report.json`."""
    cells = cell_figures(store.tallies())
    document = {
        "export_schema": EXPORT_SCHEMA,
        "confidence": CONFIDENCE,
        "trials": store.trials,
        "runs": [_run(run) for run in store.runs],
        "notes": list(store.notes),
        "groups": [_group(group) for group in answer(cells)],
        "cells": [_cell(figures) for figures in cells],
    }
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    return (write_whole(folder / "report.json", text.encode()),)


def _run(run: RunInfo) -> dict[str, Any]:
    return {
        "run": run.name,
        "seed": run.document.seed,
        "begun": run.document.begun,
        "is_sequential": run.document.is_sequential,
        "options": run.document.options,
    }


def _cell(figures: CellFigures) -> dict[str, Any]:
    return {
        "cell": figures.cell,
        "axes": figures.axes,
        "guarantee": figures.guarantee,
        "answer_group": theory_of(figures),
        "trials": figures.trials,
        "conclusive": figures.conclusive,
        "verdicts": {verdict: figures.verdicts.get(verdict, 0) for verdict in Verdict},
        "empty": figures.empty,
        **{
            key: value
            for name in CELL_RATES
            for key, value in _rates(name, getattr(figures, name), figures.unresolved).items()
        },
        "broken": figures.broken,
        **figures.survey_counts,
        "acknowledged_per_s": figures.acknowledged_per_s,
        **asdict(figures.worth),
        "checked": figures.checked,
        "acknowledged_in_outage": figures.acknowledged_in_outage,
        "rollback_ms": None if figures.rollback_ms is None else asdict(figures.rollback_ms),
    }


def _group(group: Group) -> dict[str, Any]:
    """Its cells together, and the bound that holds for each of them at once."""
    return {
        "answer_group": group.theory,
        "sentence": group.sentence,
        "cells": [figures.cell for figures in group.cells],
        **_rates("harm", group.together, group.unresolved),
        "worst_bound": group.worst_bound,
        "worst_bound_if_lost": group.worst_bound_if_lost,
    }


def _rates(name: str, rate: Rate, unresolved: int) -> dict[str, Any]:
    """A rate, and the same with unresolved trials counted as safe, and as lost."""
    safe, lost = rates_either_way(rate, unresolved)
    return {
        name: _rate(rate),
        f"{name}_counted_safe": _rate(safe),
        f"{name}_counted_lost": _rate(lost),
    }


def _rate(rate: Rate) -> dict[str, Any]:
    return asdict(rate) | {"share": rate.share if rate.trials else None}


EXPORT = ExportFormat(name="json", write=export_json)
