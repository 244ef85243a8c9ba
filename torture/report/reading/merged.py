"""Several runs as one: a night's shards become a run that the next night is compared with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torture.errors import HarnessError
from torture.files import whole_file, write_whole
from torture.record.trials import TRIALS_FILE
from torture.report.reading.runs import RUN_FILE, RunInfo, find_run
from torture.report.reading.store import Store

MERGED = "merged"
"""In `run.json`: the names of the runs that it was made of."""


def write_merged(store: Store, folder: Path) -> Path:
    """Write a run that has every trial of the store once, its line byte for byte, by cell and index.

    Its `run.json` says what all the runs agree on, `merged` (their names) and `notes` (the store's).
    Evidence stays where it is. A merged run that is there already is replaced. Raises `HarnessError`
    when another run is there, or the folder cannot be written.
    """
    _must_be_free(store, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(folder / TRIALS_FILE) as partial, partial.open("wb") as file:
            for line, _ in store.lines():
                file.write(line + b"\n")
        document = merged_document(folder.resolve().name, store.runs) | {"notes": store.notes}
        write_whole(folder / RUN_FILE, json.dumps(document, indent=1).encode() + b"\n")
    except OSError as error:
        raise HarnessError(f"no merged run in {folder}: {error}", hint="df -h") from error
    return folder


def merged_document(name: str, runs: Sequence[RunInfo]) -> dict[str, Any]:
    """What `run.json` says of several runs: of each field, the value if all have the same.

    `cells` are those of all; `until` stays if only one has it, for the intervals have to allow for
    it; `begun` is the earliest.
    """
    options = _agreed([run.options for run in runs])
    lists = [run.options.get("cells") for run in runs]
    if any(isinstance(cells, list) for cells in lists):
        named = [cell for cells in lists if isinstance(cells, list) for cell in cells]
        options["cells"] = sorted({cell for cell in named if isinstance(cell, str)})
    if until := [run.options["until"] for run in runs if run.is_sequential]:
        options["until"] = until[0]
    return {
        **_agreed([run.document for run in runs]),
        "run": name,
        MERGED: [run.name for run in runs],
        "seed": runs[0].seed if len({run.seed for run in runs}) == 1 else None,
        "begun": next((run.begun for run in runs if run.begun), ""),
        "options": options,
    }


def _agreed(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first, *others = documents
    return {
        key: value
        for key, value in first.items()
        if all(key in one and one[key] == value for one in others)
    }


def _must_be_free(store: Store, folder: Path) -> None:
    if not (folder / TRIALS_FILE).exists():
        return
    there = find_run(folder)
    if MERGED not in there.document or there.folder in {run.folder for run in store.runs}:
        raise HarnessError(f"{folder} is a run already", hint="name another folder")
