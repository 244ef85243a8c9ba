"""The verdict of a hypervisor's image, on outputs of QEMU 10.0.13 and on truncated and garbled ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.folder import Evidence, Step, ToolOutput
from torture.facts.evidence.ledger import parse_ledger
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.image_verdict import judge_image

CLEAN: dict[str, Any] = {
    "image-end-offset": 1376256,
    "total-clusters": 256,
    "check-errors": 0,
    "allocated-clusters": 16,
    "filename": "a.qcow2",
    "format": "qcow2",
}
LEAKED = CLEAN | {"leaks": 1}
CORRUPT = CLEAN | {"corruptions": 4}
RAW = {
    "children": [{"name": "file", "info": {"format": "file", "filename": "a.raw"}}],
    "virtual-size": 1376256,
    "filename": "a.raw",
    "format": "raw",
    "dirty-flag": False,
}
GONE = (
    "qemu-nbd: Failed to blk_new_open 'driver=qcow2,file.filename=/run/store/disk.qcow2': "
    "Could not open '/run/store/disk.qcow2': No such file or directory\n"
)
NO_QCOW2 = (
    "qemu-storage-daemon: --blockdev node-name=disk,driver=qcow2: Image is not in qcow2 format\n"
)
LOCKED = (
    "qemu-nbd: Failed to blk_new_open 'driver=raw': Failed to get \"write\" lock\n"
    "Is another process using the image [/run/store/disk.raw]?\n"
)
UNLOOKED = "qemu-img: Could not open 'disk.qcow2': Image is not in qcow2 format\n"


def seen(step: Step, code: int | None, stdout: str = "", stderr: str = "") -> ToolOutput:
    return ToolOutput(
        step=step,
        vm="checker",
        name="sh",
        argv=("sh", "-c", "look"),
        exit_code=code,
        stdout=stdout,
        stderr=stderr,
        duration_ms=1,
    )


def of(*tools: ToolOutput) -> Evidence:
    return Evidence(spec={}, cut=CutDocument(), ledger=parse_ledger(b""), tools=tools, readbacks={})


def looked(content: object, code: int = 0) -> ToolOutput:
    return seen(Step.IMAGE_CHECK, code, json.dumps(content, indent=4))


OPENED = seen(Step.IMAGE_OPEN, 0)


@pytest.mark.parametrize(
    ("tools", "verdict", "said"),
    [
        ((looked(CLEAN), OPENED), Verdict.INTACT, ""),
        ((looked(RAW), OPENED), Verdict.INTACT, ""),
        ((looked(LEAKED, 3), OPENED), Verdict.INTACT, "1 leaked clusters"),
        ((looked(CORRUPT, 2), OPENED), Verdict.REPAIRED, "image has errors"),
        (
            (seen(Step.IMAGE_CHECK, 1, "", UNLOOKED), seen(Step.IMAGE_OPEN, 1, "", GONE)),
            Verdict.UNREPAIRABLE,
            "image does not open",
        ),
        (
            (seen(Step.IMAGE_CHECK, 1, "", UNLOOKED), seen(Step.IMAGE_OPEN, 1, "", NO_QCOW2)),
            Verdict.UNREPAIRABLE,
            "image does not open",
        ),
    ],
)
def test_an_image_has_the_verdict_of_qemus_words(
    tools: tuple[ToolOutput, ...], verdict: Verdict, said: str
) -> None:
    found = judge_image(of(*tools))
    assert (found.verdict, found.summary, found.unknown) == (verdict, said, ())


@pytest.mark.parametrize(
    "tools",
    [
        (looked(CLEAN),),
        (OPENED,),
        (looked(CLEAN), seen(Step.IMAGE_OPEN, None)),
        (looked(CLEAN), seen(Step.IMAGE_OPEN, 1, "", LOCKED)),
        (looked(CLEAN), seen(Step.IMAGE_OPEN, 1, "", "modprobe: FATAL: Module nbd not found.\n")),
        (looked(CLEAN), seen(Step.IMAGE_OPEN, 1, "", GONE.rstrip("\n"))),
        (looked(CORRUPT, 0), OPENED),
        (looked(CLEAN, 2), OPENED),
        (looked(CLEAN | {"leaks": "many"}, 3), OPENED),
        (looked([], 0), OPENED),
        (seen(Step.IMAGE_CHECK, 1, "", UNLOOKED), OPENED),
        (seen(Step.IMAGE_CHECK, 137), OPENED),
    ],
)
def test_output_that_proves_nothing_leaves_a_doubt_and_no_clean_bill(
    tools: tuple[ToolOutput, ...],
) -> None:
    found = judge_image(of(*tools))
    assert found.verdict is None
    assert found.unknown


def test_errors_count_though_the_image_cannot_be_opened_for_a_lock() -> None:
    found = judge_image(of(looked(CORRUPT, 2), seen(Step.IMAGE_OPEN, 1, "", LOCKED)))
    assert found.verdict is Verdict.REPAIRED
    assert found.unknown


@given(cut=st.integers(0, len(json.dumps(CLEAN, indent=4)) - 1))
def test_a_truncated_check_is_no_clean_bill(cut: int) -> None:
    text = json.dumps(CLEAN, indent=4)[:cut]
    found = judge_image(of(seen(Step.IMAGE_CHECK, 0, text), OPENED))
    assert found.verdict is None
