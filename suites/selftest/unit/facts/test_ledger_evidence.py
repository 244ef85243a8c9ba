"""Evidence: what a trial's folder holds is read back as it was stored, whole or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.errors import HarnessError
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import (
    CUT,
    LEDGER,
    READBACK,
    SPEC,
    TOOLS,
    Step,
    ToolOutput,
    append_line,
    append_tool,
    load_evidence,
    write_document,
)
from torture.facts.evidence.ledger import cut_mark


def tool(step: Step, exit_code: int | None = 0) -> ToolOutput:
    return ToolOutput(
        step=step,
        vm="nas",
        name="zpool",
        argv=("zpool", "import"),
        exit_code=exit_code,
        stdout="out\n\x00\u2026",
        stderr="",
        duration_ms=12,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_document(tmp_path, SPEC, {"cell": "a-b", "seed": 3})
    return tmp_path


def test_stored_evidence_is_read_back(folder: Path) -> None:
    write_document(folder, CUT, {"t_ms": 5.0})
    write_document(folder, READBACK, "verbatim {")
    append_line(folder / LEDGER, cut_mark(5.0))
    outputs = (tool(Step.POOL_IMPORT), tool(Step.FS_CHECK, None), tool(Step.POOL_IMPORT, 1))
    for output in outputs:
        append_tool(folder, output)
    evidence = load_evidence(folder)
    assert evidence.spec == {"cell": "a-b", "seed": 3}
    assert evidence.cut == CutDocument(t_ms=5.0)
    assert evidence.ledger.cut_ms == 5.0
    assert evidence.tools == outputs
    assert evidence.readbacks == {READBACK: "verbatim {"}
    assert evidence.output(Step.POOL_IMPORT) == outputs[2]
    assert evidence.output(Step.FS_REPAIR) is None
    assert not list(folder.glob("*.partial"))


def test_missing_or_garbled_evidence_is_left_empty(folder: Path) -> None:
    (folder / CUT).write_bytes(b"\xff{")
    (folder / READBACK).write_bytes(b"caf\xff")
    append_tool(folder, tool(Step.POOL_IMPORT))
    with (folder / TOOLS).open("ab") as file:
        file.write(b'{"step": "fs-check", "exit_code": 0}\n[]\n{"step": "fs-mo')
    evidence = load_evidence(folder)
    assert evidence.cut == CutDocument()
    assert evidence.ledger.events == ()
    assert evidence.readbacks[READBACK] == "caf\\xff"
    assert len(evidence.tools) == 1
    assert evidence.garbled_tools == 3


def test_a_folder_without_a_trial_is_the_machinerys_fault(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="spec"):
        load_evidence(tmp_path)
    (tmp_path / SPEC).write_text("{")
    with pytest.raises(HarnessError, match="spec"):
        load_evidence(tmp_path)
