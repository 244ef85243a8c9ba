"""JUnit's XML: valid by the schemas that CI systems use, with a suite and a test a cell."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report.test_report_exports import HOSTILE, RECORDS, hostile_records
from suites.selftest.unit.report_records import write_run
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord
from torture.report.exports import EXPORTS
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.reading.store import Store
from torture.report.reading.text import shell_word

CHILDREN = {
    "testsuites": r"(testsuite )*",
    "testsuite": r"properties (testcase )*system-out system-err ",
    "properties": r"(property )*",
    "property": "",
    "testcase": r"((skipped|error|failure) )?",
    "error": "",
    "failure": "",
    "system-out": "",
    "system-err": "",
}
"""The elements that both schemas allow in each element, in this order."""
ATTRIBUTES = {
    "testsuites": {},
    "testsuite": {
        "name": ".+", "tests": r"\d+", "failures": r"\d+", "errors": r"\d+", "skipped": r"\d+",
        "time": r"\d+\.\d+", "timestamp": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "hostname": ".+",
        "package": ".+", "id": r"\d+",
    },
    "properties": {},
    "property": {"name": ".+", "value": ".*"},
    "testcase": {"name": ".+", "classname": ".+", "time": r"\d+\.\d+"},
    "error": {"type": ".+", "message": ".*"},
    "failure": {"type": ".+", "message": ".*"},
    "system-out": {},
    "system-err": {},
}  # fmt: skip
"""All attributes that a schema requires and both allow, as patterns of their values."""


def breaches(element: ElementTree.Element) -> Iterator[str]:
    """How an element and all below it fail the schemas of Jenkins and of Ant."""
    content = "".join(f"{child.tag} " for child in element)
    if not re.fullmatch(CHILDREN.get(element.tag, "(?!)"), content):
        yield f"{element.tag} holds {content}"
    patterns = ATTRIBUTES.get(element.tag, {})
    if patterns.keys() != element.attrib.keys():
        yield f"{element.tag} has {sorted(element.attrib)}"
    for name, pattern in patterns.items():
        if not re.fullmatch(pattern, element.attrib.get(name, "")):
            yield f"{element.tag}'s {name} is {element.attrib.get(name)!r}"
    for child in element:
        yield from breaches(child)


def junit_of(folder: Path, records: Sequence[TrialRecord], begun: str = "") -> ElementTree.Element:
    run = write_run(folder / "a run", records, begun=begun)
    with Store.open([run]) as store:
        (path,) = EXPORTS["junit"].write(store, folder)
    return ElementTree.parse(path).getroot()


def broken(trial: str = f"{RECORDS[0].cell}.9999-{7:016x}") -> TrialRecord:
    return changed(
        RECORDS[0], verdict=Verdict.CORRUPTED, lost=3, rollback_ms=None, trial=trial,
        reasons=("f00001 is\nnot there",),
    )  # fmt: skip


def figures_of(folder: Path, records: Sequence[TrialRecord]) -> dict[str, CellFigures]:
    with Store.open([write_run(folder / "figures", records)]) as store:
        return {figures.cell: figures for figures in cell_figures(store.tallies())}


@pytest.mark.parametrize("begun", ["2026-11-21T09:10:24+0000", "yesterday", ""])
@pytest.mark.parametrize(
    "records",
    [
        (),
        RECORDS,
        (*RECORDS, broken()),
        [changed(RECORDS[0], verdict=Verdict.INCONCLUSIVE)],
        hostile_records(),
    ],
    ids=["none", "usual", "broken", "inconclusive", "hostile"],
)
def test_it_is_valid(records: Sequence[TrialRecord], begun: str, tmp_path: Path) -> None:
    root = junit_of(tmp_path, records, begun)
    assert not list(breaches(root))
    suites = list(root)
    assert [suite.attrib["id"] for suite in suites] == [str(place) for place in range(len(suites))]


def test_the_check_refuses_an_invalid_file() -> None:
    text = "<testsuites name='x'><testsuite><testcase><properties/></testcase></testsuite></testsuites>"
    found = list(breaches(ElementTree.fromstring(text)))
    assert "testsuites has ['name']" in found
    assert "testcase holds properties " in found


def test_it_has_a_test_a_cell(tmp_path: Path) -> None:
    silent = changed(RECORDS[0], cell="silent", verdict=Verdict.INCONCLUSIVE, trial="silent")
    records = [*RECORDS, broken(), silent]
    root = junit_of(tmp_path, records)
    whole, *suites = root
    assert whole.attrib["tests"] == "0"
    own = figures_of(tmp_path, records)
    assert [suite.attrib["name"] for suite in suites] == sorted(own)
    for suite in suites:
        (test,) = suite.iter("testcase")
        figures = own[suite.attrib["name"]]
        assert test.attrib["name"] == figures.cell
        assert int(suite.attrib["tests"]) == 1
        assert int(suite.attrib["failures"]) == len(list(suite.iter("failure"))) == figures.broken
        is_silent = figures.cell == "silent"
        assert int(suite.attrib["errors"]) == len(list(suite.iter("error"))) == is_silent
        found = {each.attrib["name"]: each.attrib["value"] for each in suite.iter("property")}
        assert int(found["trials"]) == figures.trials
        for name in ("harm", "loss", "corruption"):
            rate = getattr(figures, name)
            assert int(found[f"{name}_events"]) == rate.events
            assert float(found[f"{name}_high"]) == pytest.approx(rate.high, rel=1e-5)
        spent_ms = sum(sum(r.timings.values()) for r in records if r.cell == figures.cell)
        assert float(test.attrib["time"]) == pytest.approx(spent_ms / 1000)


@pytest.mark.parametrize("trial", [broken().trial, "it's $(touch x)  \t\x1b\u202e\\"])
def test_a_failure_has_the_command_that_repeats_the_trial(trial: str, tmp_path: Path) -> None:
    root = junit_of(tmp_path, [*RECORDS, broken(trial)])
    (failure,) = root.iter("failure")
    assert failure.attrib["message"].startswith("1 of ")
    first, again = (failure.text or "").splitlines()
    assert first.endswith(": corrupted: f00001 is not there")
    command = again.removeprefix("  again: ")
    words = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True, cwd=tmp_path
    ).stdout.decode()
    place = tmp_path / "a run" / "trials" / trial
    assert words == f"tools/replay\0--live\0{place}\0"
    assert not (tmp_path / "x").exists()


@given(st.text(st.characters(exclude_characters="\0")) | st.sampled_from(HOSTILE))
def test_a_word_for_the_shell_is_on_one_line(text: str) -> None:
    word = shell_word(text)
    assert len(word.splitlines()) == 1
    if "$'" not in word:
        assert shlex.split(word) == [text]


def test_texts_stay_texts(tmp_path: Path) -> None:
    root = junit_of(tmp_path, hostile_records())
    assert len(list(root.iter("failure"))) == len(HOSTILE)
    assert "<script>alert(1)</script>" in {test.get("name") for test in root.iter("testcase")}
