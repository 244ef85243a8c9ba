"""Reports of hostile records and runs: a note and a right result, never a traceback.

The grid that answers first, and the sentence of a cell.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from suites.selftest.unit.report.test_report_answer import ALWAYS, DISABLED, STANDARD, figures
from suites.selftest.unit.report_records import figures_of, make_records, write_run
from torture.choices.matrix.cells import Cell, cells_of
from torture.errors import HarnessError
from torture.facts.axes.sweeps import Matrix
from torture.facts.stats.rates import rate_of
from torture.records.record.run_document import RUN_FILE, TRIALS_FILE, read_run_document
from torture.records.record.trials import TrialRecord
from torture.report.exports import EXPORTS
from torture.report.figures.answer import answer_in_words, fastest_safe, question_in_words
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.pairs import USUAL, axes_rank, grid_of
from torture.report.figures.sensitivity import measured_sensitivity
from torture.report.reading.runs import find_run, folder_in_words
from torture.report.reading.tally import Worth
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


NFS3 = "nfs3-standard-noslog-files-bothdie"
ASYNC = "nfs3-export_async-standard-noslog-files-bothdie"
CELLS = st.lists(st.sampled_from(cells_of(Matrix.FULL)), unique=True, min_size=1)


@given(CELLS)
def test_every_cell_has_one_mark_and_its_choices_find_it(cells: list[Cell]) -> None:
    grid = grid_of([figures(cell.name, intact=1) for cell in cells])
    marks = [mark for _, fields in grid.rows for field in fields for mark in field]
    assert sorted(mark.figures.cell for mark in marks) == sorted(cell.name for cell in cells)
    assert {len(fields) for _, fields in grid.rows} == {len(grid.columns)}
    assert sum(width for _, width in grid.syncs) == len(grid.columns)
    picked = {tuple(grid.key_of(mark, name) for name in grid.pickers) for mark in marks}
    assert len(picked) == len(marks), "two cells stand behind the same choices"
    assert grid.chosen is not None
    assert grid.is_shown(next(mark for mark in marks if mark is grid.chosen))


def test_the_marks_of_unusual_settings_and_other_filesystems_wait_until_they_are_picked() -> None:
    names = (
        ALWAYS,
        ALWAYS.replace("btrfs", "xfs"),
        ALWAYS.replace("noslog", "noslog-raidz1"),
        NFS3,
    )
    grid = grid_of([figures(name, intact=1) for name in (*names, DISABLED)])
    shown = {
        mark.figures.cell
        for _, fields in grid.rows
        for field in fields
        for mark in field
        if grid.is_shown(mark)
    }
    assert shown == {ALWAYS, DISABLED, NFS3}
    assert [option.key for option in grid.pickers["filesystem"]] == ["btrfs", "xfs"]
    assert [option.key for option in grid.pickers["others"]] == [USUAL, "raidz1"]


def test_an_export_with_async_has_a_row_of_its_own() -> None:
    grid = grid_of([figures(name, intact=1) for name in (NFS3, ASYNC)])
    assert [option.words for option, _ in grid.rows] == ["NFSv3", "NFSv3, export async"]


def test_no_cells_make_an_empty_grid() -> None:
    grid = grid_of([])
    assert (grid.rows, grid.columns, grid.chosen) == ((), (), None)


def test_the_question_names_every_choice_away_from_the_defaults() -> None:
    assert question_in_words(figures(ALWAYS)) == (
        "Over iSCSI with sync=always, no SLOG, btrfs, the VM dies too"
    )
    assert question_in_words(figures(ASYNC)).startswith("Over NFSv3 with export async, ")
    mirrored = figures(ALWAYS.replace("noslog", "noslog-mirrored"))
    assert question_in_words(mirrored).endswith(", mirrored data disks")


@pytest.mark.parametrize(
    ("name", "counts", "said"),
    [
        (
            ALWAYS,
            {"intact": 42},
            "nothing acknowledged was lost in 42 cuts [at most 8.41 %; 0 operations checked]; ",
        ),
        (
            ALWAYS,
            {"intact": 1},
            "nothing acknowledged was lost in 1 cut [at most 98 %; 0 operations checked]; ",
        ),
        (ALWAYS, {"inconclusive": 3}, "none of 3 cuts was conclusive."),
        (
            STANDARD,
            {"intact": 11, "rolled_back": 9},
            "9 of 20 cuts lost acknowledged writes [23-69 %], up to 0.7 s of them.",
        ),
        (
            STANDARD,
            {"intact": 11, "rolled_back": 8, "corrupted": 1},
            "9 of 20 cuts damaged data or lost acknowledged writes [23-69 %]; where nothing was "
            "damaged, up to 0.7 s of writes were lost",
        ),
        (
            ALWAYS,
            {"intact": 19, "rolled_back": 1},
            "; 1 worse than theory guarantees (safe).",
        ),
        (
            ALWAYS,
            {"intact": 20, "inconclusive": 2},
            "; 2 inconclusive: as safe 0/22 0 % [0-16 %], as lost 2/22 ",
        ),
    ],
)
def test_an_answer_has_its_bound_and_the_trials_against_it(
    name: str, counts: dict[str, int], said: str
) -> None:
    assert said in answer_in_words(figures(name, **counts), measured_sensitivity())


def test_an_answer_of_none_seen_says_which_fault_would_have_been_seen() -> None:
    said = answer_in_words(figures(ALWAYS, intact=42), measured_sensitivity())
    assert said.endswith(
        'more than 99.99 % of such runs would have detected the planted fault "a disk drops one '
        'flush in 20".'
    )
    assert "planted" not in answer_in_words(
        figures(STANDARD, rolled_back=3), measured_sensitivity()
    )


@given(CELLS)
def test_a_list_is_ordered_by_choices_and_never_by_outcomes(cells: list[Cell]) -> None:
    one = [figures(cell.name, intact=1) for cell in cells]
    other = [figures(cell.name, corrupted=place + 1) for place, cell in enumerate(cells)]
    order = [sorted(both, key=lambda own: axes_rank(own.axes)) for both in (one, other)]
    assert [own.cell for own in order[0]] == [own.cell for own in order[1]]


def with_speed(cell: str, per_s: float, **counts: int) -> CellFigures:
    return replace(figures(cell, **counts), worth=Worth(durable_per_s=per_s))


PLP = ALWAYS.replace("noslog", "plp")
ALWAYS_LIVES = ALWAYS.replace("bothdie", "nasonly")
PLP_LIVES = PLP.replace("bothdie", "nasonly")
STANDARD_DIES = STANDARD.replace("nasonly", "bothdie")


def test_the_first_answer_is_the_worst_fate_that_was_measured() -> None:
    """Not the first one of the axis, a safe one that hides a losing one."""
    grid = grid_of([figures(STANDARD_DIES, intact=29), figures(STANDARD, intact=3, corrupted=7)])
    assert grid.chosen is not None
    assert grid.chosen.figures.cell == STANDARD
    # of equal outcomes the VM that lives on
    grid = grid_of([figures(ALWAYS_LIVES, intact=29), figures(ALWAYS, intact=29)])
    assert grid.chosen is not None
    assert grid.chosen.figures.cell == ALWAYS_LIVES


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        ({"intact": 9, "corrupted": 1}, {"rolled_back": 10}),
        ({"rolled_back": 6, "intact": 4}, {"rolled_back": 5, "intact": 5}),
        ({"rolled_back": 1, "intact": 99}, {"intact": 3}),
        ({"intact": 3}, {"intact": 29}),
    ],
)
def test_damage_is_worse_than_a_loss_and_a_loss_than_few_cuts(
    worse: dict[str, int], better: dict[str, int]
) -> None:
    assert figures(STANDARD, **worse).harmfulness > figures(STANDARD, **better).harmfulness


def test_the_recommended_choices_stand_by_their_slowest_fate() -> None:
    slow = [with_speed(ALWAYS, 10.0, intact=29), with_speed(ALWAYS_LIVES, 50.0, intact=29)]
    fast = [with_speed(PLP, 99.0, intact=29), with_speed(PLP_LIVES, 20.0, intact=30)]
    chosen = fastest_safe([*slow, *fast])
    assert [choice.figures for choice in chosen] == [fast[1], slow[0]]
    assert [choice.fates for choice in chosen] == [tuple(fast), tuple(slow)]


@pytest.mark.parametrize(
    "twin",
    [
        with_speed(ALWAYS_LIVES, 10.0, intact=28, rolled_back=1),
        with_speed(ALWAYS_LIVES, 10.0, intact=28),
        with_speed(ALWAYS_LIVES, 10.0, intact=29, inconclusive=1),
        replace(with_speed(ALWAYS_LIVES, 10.0, intact=29), broken=1),
    ],
    ids=["lost", "too few", "open", "worse"],
)
def test_a_setting_with_a_fate_that_is_not_safe_is_not_recommended(twin: CellFigures) -> None:
    assert fastest_safe([with_speed(ALWAYS, 10.0, intact=29), twin]) == []


def test_a_setting_whose_other_fate_theory_calls_lossy_is_not_recommended() -> None:
    """Also where that fate was never measured."""
    assert fastest_safe([with_speed(STANDARD_DIES, 10.0, intact=99)]) == []


def test_the_bounds_of_choices_allow_for_the_choosing() -> None:
    """Two of three safe cells are chosen since they lost nothing, so each may err in 2/3 of 5 %."""
    safe = [with_speed(name, 10.0, intact=29) for name in (ALWAYS, ALWAYS_LIVES)]
    lossy = with_speed(PLP, 10.0, intact=28, rolled_back=1)
    bounds = {choice.lost_at_most for choice in fastest_safe([*safe, lossy])}
    assert bounds == {rate_of(0, 29, confidence=1 - 0.05 * 2 / 3).high}
    assert {choice.lost_at_most for choice in fastest_safe(safe)} == {rate_of(0, 29).high}
