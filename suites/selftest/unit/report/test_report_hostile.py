"""Reports of hostile records and runs: a note and a right result, never a traceback."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from suites.selftest.unit.report_records import figures_of, make_records, write_run
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.records.record.run_document import RUN_FILE, TRIALS_FILE, read_run_document
from torture.records.record.trials import TrialRecord
from torture.report.exports import EXPORTS
from torture.report.reading.runs import find_run, folder_in_words
from torture.report.reading.text import shell_word
from torture.report.terminal import (
    outcome_table,
    print_cell_comparison,
    print_run_comparison,
)
from torture.report.write import build_report

NAMES = ("iscsi-always-noslog-btrfs-bothdie", "iscsi-standard-noslog-btrfs-bothdie")


def made(number: int, seed: int = 8) -> list[dict[str, Any]]:
    cells = [Cell.parse(name) for name in NAMES]
    return [record.as_json() for record in make_records(number, cells=cells, seed=seed)]


RECORDS = made(24)
NONSENSE: tuple[Any, ...] = (
    2**62, 2**64, 1e300, -1, None, True, "=x|<b>\u202e$(touch x)", [], [1], {}, {"a": {"b": [1]}},
)  # fmt: skip
OUTAGE = ("absence", "acknowledged_in_outage")
AUDITED = ("cut", "audit", "acknowledgements")
FOUND = ("judgement", "findings")
EXIT_EQUAL = 0
EXIT_NOT_COMPARED = 3


def put(data: dict[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """The data with another value at a path."""
    first, *rest = path
    inner = data.get(first)
    inside = inner if isinstance(inner, dict) else {}
    return data | {first: put(inside, rest, value) if rest else value}


def run_of(folder: Path, lines: Sequence[Any], document: bytes | None = None) -> Path:
    run = write_run(folder, ())
    (run / TRIALS_FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    if document is not None:
        (run / RUN_FILE).write_bytes(document)
    return run


def report(runs: Sequence[Path], output: Path) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """The page, the notes and the exported JSON, after every export and both comparisons."""
    built = build_report(runs, output=output, formats=list(EXPORTS))
    for run in runs[:2]:
        assert print_run_comparison(run, run) in {EXIT_EQUAL, EXIT_NOT_COMPARED}
    assert print_cell_comparison(runs, *NAMES) in {EXIT_EQUAL, EXIT_NOT_COMPARED}
    exported = json.loads((output / "report.json").read_bytes())
    return built.page.read_text("utf-8"), built.notes, exported


def test_counters_of_62_bits_add_up(tmp_path: Path) -> None:
    huge = 2**62
    lines = [put(put(line, OUTAGE, huge), AUDITED, huge) for line in RECORDS]
    page, _, exported = report([run_of(tmp_path / "run", lines)], tmp_path / "out")
    of_cell = [cell["acknowledged_in_outage"] for cell in exported["cells"]]
    assert of_cell == [huge * cell["trials"] for cell in exported["cells"]]
    assert f"{huge * len(RECORDS):,} acknowledgements" in page


@pytest.mark.parametrize("value", [2**63, "3"])
def test_a_wrong_count_of_losses_leaves_its_line_out(value: Any, tmp_path: Path) -> None:
    lines = [put(RECORDS[0], (*FOUND, "lost"), value), *RECORDS[1:]]
    run = run_of(tmp_path / "run", lines)
    built = build_report([run], output=tmp_path / "out", formats=list(EXPORTS))
    exported = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert exported["trials"] == len(RECORDS) - 1
    assert any("1 line cannot be read and is left out" in note for note in built.notes)
    with pytest.raises(HarnessError, match="cannot be read"):
        print_run_comparison(run, run)


@pytest.mark.parametrize("huge", [1e300, 1.7e308])
def test_a_time_or_speed_of_any_size_is_shown_in_few_digits(
    huge: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = RECORDS
    speeds = [("speed", name) for name in ("durable_per_s", "sync_p50_ms", "sync_p99_ms")]
    for path in ((*FOUND, "rollback_ms"), *speeds, ("absence", "outage_ms"), ("cut", "t_ms")):
        lines = [put(line, path, huge) for line in lines]
    _, _, exported = report([run_of(tmp_path / "run", lines)], tmp_path / "out")
    assert {cell["rollback_ms"]["most"] for cell in exported["cells"]} == {huge}
    cells = figures_of(TrialRecord.from_json(line) for line in lines)
    Console(width=300).print(outcome_table(cells, width=300))
    texts = [capsys.readouterr().out]
    for file in (tmp_path / "out").rglob("*"):
        with suppress(UnicodeDecodeError):
            texts.append(file.read_text("utf-8"))
    assert len(texts) > len(EXPORTS) // 2
    for text in texts:
        assert re.search(r"\d{25}", text) is None


PATHS = (
    ("speed", "durable_per_s"), ("timings", "load"), ("cut", "t_ms"), ("cut", "disks"), OUTAGE,
    AUDITED, ("cut", "view"), ("axes", "sync"), ("repeats",), ("schema",),
    ("judgement", "fsck"), ("judgement", "reasons"), ("cut", "phase"), ("error",), ("writers",),
    ("administration",), ("guarantee",), ("cut",),
)  # fmt: skip


def test_nonsense_in_records_is_noted(tmp_path: Path) -> None:
    """Each field of each other type, in a record of its own, and as many whole records."""
    wrong = [(path, value) for path in PATHS for value in NONSENSE]
    whole = made(len(wrong), seed=9)
    lines = [put(line, *one) for line, one in zip(made(len(wrong)), wrong, strict=True)]
    _, notes, exported = report([run_of(tmp_path / "run", [*lines, *whole])], tmp_path / "out")
    assert len(whole) < exported["trials"] <= 2 * len(whole)
    assert any("fields have other types than they should" in note for note in notes)


def descriptions() -> list[bytes]:
    fields = ("run", "seed", "options", "begun", "host", "accelerator", "images", "zfs", "versions",
              "merged", "notes", "network", "processor")  # fmt: skip
    inner = [
        {
            "options": {"until": value, "cells": value, "jobs": value, "duration_ms": value},
            "images": {"nas": {"packages": {"zfs": value, "kernel": value}}},
            "host": {"cores": value, "kernel": value},
            "accelerator": {"kind": value},
        }
        for value in NONSENSE
    ]
    wrong = [json.dumps(each).encode() for each in inner]
    wrong += [json.dumps(dict.fromkeys(fields, value)).encode() for value in NONSENSE]
    times = ("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "2026-W01-1")
    wrong += [json.dumps({"begun": time}).encode() for time in times]
    return [*wrong, b"", b"null", b"[]", b"{}", b"\xff", b"[" * 10_000, b'{"seed": 1e400}']


def test_nonsense_in_descriptions_changes_no_count(tmp_path: Path) -> None:
    runs = [
        run_of(tmp_path / f"run {place}", made(4, seed=place), document)
        for place, document in enumerate(descriptions())
    ]
    _, notes, exported = report(runs, tmp_path / "out")
    assert exported["trials"] == 4 * len(runs)
    assert sum(sum(cell["verdicts"].values()) for cell in exported["cells"]) == 4 * len(runs)
    unreadable = [note for note in notes if "has no readable run.json" in note]
    assert len(unreadable) == sum(read_run_document(run) is None for run in runs)


@pytest.mark.parametrize("name", ["two words' $(touch x)", "-rf", "a\nb<b>\u202e"])
def test_a_folder_of_any_name_is_a_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path / "runs" / name / "run", RECORDS).rename(tmp_path / name)
    (run / RUN_FILE).unlink()
    monkeypatch.chdir(tmp_path)
    page, notes, exported = report([run], tmp_path / f"{name} out")
    assert exported["trials"] == len(RECORDS)
    assert any("no readable run.json" in note for note in notes)
    assert not (tmp_path / "x").exists()
    assert "<b>/trials" not in page


@given(st.text(st.characters(exclude_characters="\0")))
def test_a_word_for_the_shell_is_on_one_line(text: str) -> None:
    word = shell_word(text)
    assert len(word.splitlines()) == 1
    if "$'" not in word:
        assert shlex.split(word) == [text]


def test_a_trials_folder_is_one_word_of_a_command(tmp_path: Path) -> None:
    trial = "it's $(touch x)  \t\x1b\u202e\\"
    words = folder_in_words(find_run(write_run(tmp_path / "a run", [])), trial)
    said = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True, cwd=tmp_path
    ).stdout.decode()
    assert said == f"{tmp_path / 'a run' / 'trials' / trial}\0"
    assert not (tmp_path / "x").exists()
