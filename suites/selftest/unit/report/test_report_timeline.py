"""The page's view of one cut: its stages, the last acknowledgements, the tools' output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.unit.made_records import trial_record
from torture.facts.evidence.cut_document import Confirmation, CutDocument
from torture.facts.evidence.folder import LEDGER, SPEC, Step, ToolOutput, append_tool
from torture.facts.evidence.ledger import cut_mark
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord
from torture.report.page.timeline import timeline_of
from torture.report.page.tool_words import words_of


def record(**fields: Any) -> TrialRecord:
    data = {"verdict": Verdict.ROLLED_BACK, "guarantee": "rolls back"}
    timings = {"load": 3000, "check": 1000}
    return trial_record(trial="t", cell="c", timings=timings, **(data | fields))


def begin(seq: int, op: str = "append") -> bytes:
    return _line(event="begin", seq=seq, writer=0, op=op, file=0, blocks=[0], size=1, t_ms=100)


def done(seq: int, t_ms: float) -> bytes:
    return _line(event="done", seq=seq, t_ms=t_ms)


def _line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    lines = [begin(1), begin(2), begin(3, "scribble"), begin(4), done(1, 1000), done(2, 1900),
             done(3, 1950), cut_mark(2000.0), done(4, 2500)]  # fmt: skip
    (tmp_path / LEDGER).write_bytes(b"".join(lines))
    (tmp_path / SPEC).write_text('{"cell": "c"}')
    return tmp_path


def test_acknowledgements_stand_before_the_cut_and_name_losses(evidence: Path) -> None:
    line = timeline_of(record(rollback_ms=500.0), evidence)
    assert [
        (acknowledgement.before_cut_ms, acknowledgement.is_gone)
        for acknowledgement in line.acknowledged
    ] == [
        (1000.0, False),
        (100.0, True),
    ]
    assert line.load_ms == 1000.0
    assert [(stage.name, stage.share) for stage in line.stages] == [("load", 0.75), ("check", 0.25)]


def test_a_confirmed_finding_shows_only_events_before_its_cut(evidence: Path) -> None:
    cut = CutDocument(confirmed=Confirmation(event=70, marks=5, t_ms=1200.0))
    line = timeline_of(record(cut=cut), evidence)
    assert [point.before_cut_ms for point in line.acknowledged] == [200.0]


def test_without_a_rollback_nothing_is_called_gone(evidence: Path) -> None:
    line = timeline_of(record(verdict=Verdict.CORRUPTED), evidence)
    assert [acknowledgement.is_gone for acknowledgement in line.acknowledged] == [False, False]


@pytest.mark.parametrize("ledger", [None, b"", b"\xff{", begin(1) + done(1, 5)])
def test_a_ledger_that_is_not_there_or_has_no_cut_shows_nothing(
    ledger: bytes | None, tmp_path: Path
) -> None:
    if ledger is not None:
        (tmp_path / LEDGER).write_bytes(ledger)
    assert timeline_of(record(), tmp_path).acknowledged == ()
    assert timeline_of(record(), None).acknowledged == ()


def output_of(step: Step, text: str, *, exit_code: int | None) -> ToolOutput:
    return ToolOutput(
        step=step, vm="nas", name="tool", argv=("tool", "-x"), exit_code=exit_code, stdout=text,
        stderr="", duration_ms=1,
    )  # fmt: skip


def test_tools_that_complained_or_checked_are_shown(evidence: Path) -> None:
    for output in (
        output_of(Step.POOL_IMPORT, "cannot import", exit_code=1),
        output_of(Step.POOL_IMPORT_M, "", exit_code=0),
        output_of(Step.FS_CHECK, "x" * 5000 + "the end", exit_code=0),
        output_of(Step.FS_REPAIR, "hangs", exit_code=None),
        output_of(
            Step.CHECK_DMESG, "BTRFS error (device vdb): bad\nusb error\nBTRFS info: fine", exit_code=0
        ),
    ):  # fmt: skip
        append_tool(evidence, output)
    words = words_of(evidence)
    assert [tool.exit_code for tool in words] == [1, 0, None, 0]
    assert words[1].text.endswith("the end")
    assert len(words[1].text) < 2000
    assert words[3].text == "BTRFS error (device vdb): bad"


def test_a_folder_that_is_no_trial_has_no_excerpts(tmp_path: Path) -> None:
    assert words_of(tmp_path / "gone") == ()
