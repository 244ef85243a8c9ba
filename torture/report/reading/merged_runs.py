"""Merges several runs into one: a night's shards become the run with which the next night is compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from torture.errors import HarnessError
from torture.facts.evidence.documents import strict_json
from torture.files import whole_file
from torture.records.record.run_document import TRIALS_FILE, RunDocument, agreed
from torture.records.record.trials import Origin, TrialRecord
from torture.report.reading.runs import RunInfo, find_run
from torture.report.reading.store import Store


def write_merged(store: Store, folder: Path) -> Path:
    """Write a run with every trial of the store once, its line byte for byte, by cell and index.

    Of a trial whose later try counts there are two lines, so that a report of the merged run is the same.
    So do void trials have their lines: a rerun would else stand for them.
    Only the line of a replay or rerun is rewritten: it also names its original run. The merged `run.json`
    has the fields that all runs agree on, `merged` (their names) and `notes` (the store's). Evidence is
    not copied. An existing merged run is replaced. Raises `HarnessError` when another run is there, or
    the folder cannot be written.
    """
    _must_be_free(store, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(folder / TRIALS_FILE) as partial, partial.open("wb") as file:
            for line, record in store.lines(has_others=True):
                file.write(_with_its_run(line, record) + b"\n")
        merged_document(folder.resolve().name, store.runs, store.notes_on_files).write(folder)
    except OSError as error:
        raise HarnessError(f"no merged run in {folder}: {error}", hint="df -h") from error
    return folder


def _with_its_run(line: bytes, record: TrialRecord) -> bytes:
    """The line of a replay or rerun, with the name of its run; other lines unchanged."""
    if record.origin == Origin.LIVE:
        return line
    return json.dumps(strict_json(line) | {"origin_run": record.origin_run}).encode()


def merged_document(name: str, runs: Sequence[RunInfo], notes: Sequence[str]) -> RunDocument:
    """The `run.json` of several runs: each field has its value if all runs agree.

    `cells` are the union. `until` stays if only one run has it, since the intervals must allow for it.
    `begun` is the earliest. `void` has all void trials.
    """
    documents = [run.document for run in runs]
    same = agreed(documents)
    options = same.options
    lists = [document.options.get("cells") for document in documents]
    if any(isinstance(cells, list) for cells in lists):
        named = [cell for cells in lists if isinstance(cells, list) for cell in cells]
        options["cells"] = sorted({cell for cell in named if isinstance(cell, str)})
    if until := [document.options["until"] for document in documents if document.is_sequential]:
        options["until"] = until[0]
    return replace(
        same,
        run=name,
        merged=tuple(run.name for run in runs),
        notes=tuple(notes),
        void={trial: why for document in documents for trial, why in document.voided.items()},
        begun=next((document.begun for document in documents if document.begun), ""),
        options=options,
    )


def _must_be_free(store: Store, folder: Path) -> None:
    if not (folder / TRIALS_FILE).exists():
        return
    there = find_run(folder)
    if there.document.merged is None or there.folder in {run.folder for run in store.runs}:
        raise HarnessError(f"{folder} already holds a run", hint="name another folder")
