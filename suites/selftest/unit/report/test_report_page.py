"""The page of few, odd, hostile or many records: it exists, shows what is known, and stays small."""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, page_of, write_run
from torture.choices.matrix.cells import Cell, cells_of
from torture.choices.matrix.choices import why_different_there
from torture.errors import HarnessError
from torture.facts.axes.sweeps import Matrix
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import read_line
from torture.report.exports import EXPORTS
from torture.report.figures.sensitivity import measured_sensitivity
from torture.report.page import render
from torture.report.page.promises import (
    DOCUMENT,
    REPORTS,
    Finding,
    findings_in,
    known_findings,
)
from torture.report.page.render import CASES_MAX, anchor, render_page
from torture.report.reading.store import Store

SAFE = Cell.parse("iscsi-always-noslog-btrfs-bothdie")
DISABLED = Cell.parse("iscsi-disabled-noslog-btrfs-bothdie")


def test_no_trials_make_a_page_without_an_answer(tmp_path: Path) -> None:
    (tmp_path / TRIALS_FILE).write_bytes(b"")
    page = page_of(tmp_path)
    assert "0 power cuts" in page
    assert "No power cut was measured." in page


def test_one_trial_makes_a_page(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path / "run", make_records(1, cells=[SAFE], seed=1)))
    assert "nothing acknowledged was lost in 1 cut [at most 98 %; " in page
    assert "<b>0/1</b> <small>&le;&nbsp;98 %</small>" in page


def test_only_inconclusive_trials_answer_nothing(tmp_path: Path) -> None:
    records = [changed(record, verdict=Verdict.INCONCLUSIVE) for record in quick(12)]
    page = page_of(write_run(tmp_path / "run", records))
    assert "cuts was conclusive" in page
    assert "nothing acknowledged was lost" not in page
    assert "12 inconclusive" in page


def quick(count: int) -> list[TrialRecord]:
    return list(make_records(count, cells=cells_of(Matrix.QUICK), seed=5))


def test_a_rollback_of_nearly_nothing_is_drawn(tmp_path: Path) -> None:
    records = [
        changed(record, verdict=Verdict.ROLLED_BACK, lost=1, rollback_ms=ms)
        for record, ms in zip(
            make_records(3, cells=[DISABLED], seed=1), (0.0, 0.4, 90.0), strict=True
        )
    ]
    page = page_of(write_run(tmp_path / "run", records))
    boxes = re.findall(r"""<path d="([^"]*)" fill="var\(--rolled-back\)" opacity""", page)
    assert len(boxes) >= 4, "two bins, in a wide and in a narrow picture"
    assert not any("h0v" in box for box in boxes), "a box without any width"
    assert "how far each configuration went back" in page


@pytest.mark.parametrize("odd", [[], "text", 7, None, {"nas": 3}, {"nas": {"packages": ["zfs"]}}])
def test_a_run_that_says_odd_things_of_itself_is_shown(tmp_path: Path, odd: object) -> None:
    run = write_run(tmp_path / "run", [])
    document = json.loads((run / "run.json").read_text())
    document |= dict.fromkeys(("images", "host", "accelerator", "versions"), odd)
    (run / "run.json").write_text(json.dumps(document))
    assert "<td>?</td>" in page_of(run)


def test_a_broken_guarantee_is_said_first(tmp_path: Path) -> None:
    [record] = make_records(1, cells=[SAFE], seed=1)
    bad = changed(record, verdict=Verdict.CORRUPTED, lost=2)
    page = page_of(write_run(tmp_path / "run", [bad]))
    assert "1 trial was</b> worse" in re.sub(r"\s+", " ", page) or "1 trial was worse" in page
    assert "worse than guaranteed" in page


def test_a_case_has_the_text_of_tools_explain_without_its_evidence(tmp_path: Path) -> None:
    [record] = make_records(1, cells=[SAFE], seed=1)
    text = "verdict: corrupted\n  block 4 holds <nothing>\n"
    bad = changed(record, verdict=Verdict.CORRUPTED, lost=2, explanation=text)
    page = page_of(write_run(tmp_path / "run", [bad]))
    assert '<pre class="explanation">verdict: corrupted\n  block 4 holds &lt;nothing&gt;' in page


def test_nothing_is_loaded_from_anywhere(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path / "run", quick(60)))
    loading = re.findall(r"""(?:\ssrc|<link|@import|url\()[^>]{0,40}""", page)
    assert loading == []
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_an_anchor_is_plain_for_any_name() -> None:
    assert anchor(SAFE.name) == SAFE.name
    assert re.fullmatch(r"[0-9a-f]{16}", anchor("a onclick=alert(1)"))
    assert anchor("a b") != anchor("a  b")


def test_the_figures_of_a_benchmark_are_on_the_page_of_its_run(tmp_path: Path) -> None:
    plain = quick(3)
    measured = changed(plain[0], verdict=Verdict.INTACT, figures={"gobonniego_iops": 812.4})
    assert "What the loads measured" not in page_of(write_run(tmp_path / "plain", plain))
    page = page_of(write_run(tmp_path / "measured", [measured, *plain[1:]]))
    assert "<td><code>gobonniego_iops</code></td><td>812</td>" in page


# A report of many records stays quick and small: its parts are counted, not its seconds.

CELLS = cells_of(Matrix.QUICK)
RECORDS_MAX = 30
"""The most records that a report may hold at once, beside those of its cases."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    run = write_run(tmp_path / "run", make_records(400, cells=CELLS, seed=3))
    gc.collect()
    gc.freeze()  # objects of other tests are no records, and each look would pass them
    with Store.open([run]) as opened:
        yield opened


def held() -> int:
    return sum(type(thing) is TrialRecord for thing in gc.get_objects())


@pytest.mark.parametrize("place", ["page", *EXPORTS])
def test_records_are_not_held(
    place: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, counts = held(), [0]

    def counted(raw: bytes) -> Any:
        counts.append(held() - before)
        return read_line(raw)

    monkeypatch.setattr("torture.report.reading.store.read_line", counted)
    if place == "page":
        render_page(store)
    else:
        EXPORTS[place].write(store, tmp_path)
    assert max(counts) <= (CASES_MAX if place == "page" else RECORDS_MAX)
    reads = len(counts) - 1
    assert reads <= CASES_MAX if place == "page" else reads in {0, store.trials}


def test_a_page_compares_a_fault_with_a_cell_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def counted(here: Any, there: Any, **more: Any) -> str:
        asked.append((here.name, there.name))
        return why_different_there(here, there, **more)

    monkeypatch.setattr("torture.report.figures.sensitivity.why_different_there", counted)
    render_page(store)
    asked.clear()
    render_page(store)
    assert not asked
    assert measured_sensitivity() is measured_sensitivity()


def test_a_page_does_not_wait_for_scipys_statistics() -> None:
    code = (
        "import sys, torture.report.page.render; from torture.facts.stats.comparison import one_sided;"
        "from torture.facts.stats.rates import rate_of; one_sided(rate_of(1, 9), rate_of(5, 9));"
        "sys.exit('scipy.stats' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, check=True)


# Every loss has a line, and the documented findings stand on the page.

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
    page = page_of(write_run(tmp_path / "run", records(9)))
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
    page = unescape(page_of(write_run(tmp_path / "run", [evil])))
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
    later = "| finding | [a](../findings.md#a-b-c) |\n| affected from | v8 |\n"
    (found,) = findings_in(section, [report, other, later])
    assert found.versions == "from: v1, by its source; to: v3"
    assert findings_in(section, [other])[0].versions == ""


def test_every_report_is_of_a_finding_that_the_page_has() -> None:
    reports = [file.name for file in REPORTS.glob("*.md") if file.name != "README.md"]
    reports.remove("truenas-file-extent.md")  # it is of the finding that SCST's report has
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


@pytest.mark.parametrize(
    "beside", ["nfs4-standard-noslog-files-nasonly", "nfs4-qcow2-standard-noslog-ext4-nasonly"]
)
def test_the_page_says_where_images_were_measured_through_libnfs_only(
    tmp_path: Path, beside: str
) -> None:
    cells = [Cell.parse(name) for name in ("nfs_image-standard-noslog-ext4-nasonly", beside)]
    page = page_of(write_run(tmp_path / "run", make_records(4, cells=cells, seed=1)))
    assert ("through libnfs only" in page) is ("qcow2" not in beside)
