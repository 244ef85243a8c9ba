"""Every loss has a line, and the documented findings stand on the page."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.checkout import CHECKOUT
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.run_layout import TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.report.page import render
from torture.report.page.documented_findings import (
    DOCUMENT,
    REPORTS,
    Finding,
    findings_in,
    known_findings,
)
from torture.report.reading.store import Store

CELL = Cell.parse("iscsi-standard-noslog-btrfs-nasonly")


def records(count: int) -> list[TrialRecord]:
    made = make_records(count, cells=[CELL], seed=1)
    return [
        changed(record, verdict=Verdict.ROLLED_BACK, lost=place, reasons=(f"reason {place}",))
        for place, record in enumerate(made, start=1)
    ]


def test_every_loss_has_its_line_and_the_command_that_repeats_it(tmp_path: Path) -> None:
    lossy = records(30)
    intact = changed(lossy[0], trial=f"x{lossy[0].trial}", verdict=Verdict.INTACT, lost=0)
    run = write_run(tmp_path / "a run", [*lossy, intact])
    (run / "trials" / lossy[3].trial).mkdir(parents=True)
    with Store.open([run]) as store:
        count, losses = store.losses(most=100)
        page = unescape(render.render_page(store))
    assert count == len(lossy)
    assert {loss.trial: (loss.seed, loss.lost, loss.reason) for loss in losses} == {
        record.trial: (record.seed, record.lost, record.reasons[0]) for record in lossy
    }
    assert [loss.trial for loss in losses if loss.has_evidence] == [lossy[3].trial]
    for record in lossy:
        assert f"<td>{record.seed:016x}</td>" in page
        assert f"tools/replay --live '{run}/trials/{record.trial}'</code>" in page


def test_more_losses_than_lines_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "LOSSES_MAX", 4)
    with Store.open([write_run(tmp_path / "run", records(9))]) as store:
        page = render.render_page(store)
    assert "Every loss: 9 trials" in page
    assert "5 more are in the exported" in page
    assert len(re.findall(r"tools/replay --live \S+</code></td>", page)) == 4


def test_a_file_that_changed_under_the_report_is_noticed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", records(40))
    with Store.open([folder]) as store:
        write = "".join(json.dumps(record.as_json()) + "\n" for record in reversed(records(40)))
        (folder / TRIALS_FILE).write_text(write)
        with pytest.raises(HarnessError, match="changed while it was read"):
            store.cases(most=5)


def test_a_trial_with_a_name_that_a_shell_would_run_is_quoted(tmp_path: Path) -> None:
    evil = changed(records(1)[0], trial="$(touch x); y")
    with Store.open([write_run(tmp_path / "run", [evil])]) as store:
        page = unescape(render.render_page(store))
    assert f"'{tmp_path}/run/trials/$(touch x); y'" in page
    assert f"--live {tmp_path}/run/trials/$" not in page


def test_every_finding_of_the_document_is_known_with_its_two_lines() -> None:
    text = DOCUMENT.read_text()
    assert CHECKOUT / "docs" / "findings.md" == DOCUMENT
    known = known_findings()
    assert len(known) == text.count("**Who is affected:**") == text.count("**What to do:**") > 15
    assert all(found.title and found.affected and found.advice for found in known)
    assert not any(re.search(r"[`*]|\]\(", f"{found}") for found in known)


def test_a_finding_has_the_versions_of_its_report() -> None:
    section = "## A `b`, c\n\n- **Who is affected:** users.\n- **What to do:** wait.\n\n"
    report = (
        "| finding | [a](../findings.md#a-b-c), [x](../findings.md#x) |\n"
        "| affected from | `v1`, by [its source](y) |\n| affected to | v3 |\n"
    )
    other = "| finding | [x](../findings.md#x) |\n| affected from | v7 |\n"
    (found,) = findings_in(section, [report, other])
    assert found.versions == "from: v1, by its source; to: v3"
    assert findings_in(section, [other])[0].versions == ""


def test_every_report_is_of_a_finding_that_the_page_has() -> None:
    reports = [file for file in REPORTS.glob("*.md") if file.name != "README.md"]
    named = {found.versions for found in known_findings() if found.versions}
    assert len(named) == len(reports) > 8
    assert all(words.startswith("from: ") and "; to: " in words for words in named)


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ("", ()),
        ("## A\n\nProse.\n", ()),
        (
            "## A `b`\n\n- **Who is affected:** users\n  of [this](x.md).\n"
            "- **What to do:** wait.\n\nMore.\n",
            (Finding(title="A b", affected="users of this.", advice="wait."),),
        ),
        ("## A\n\n- **Who is affected:** users.\n\n## B\n\n- **What to do:** wait.\n\n", ()),
    ],
)
def test_a_section_without_these_lines_is_none(document: str, found: tuple[Finding, ...]) -> None:
    assert findings_in(document) == found
