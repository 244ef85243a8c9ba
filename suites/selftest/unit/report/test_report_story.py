"""The page's view of one trial: its story, the stages of its cut, the tools' output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.unit.good_evidence import tool
from suites.selftest.unit.made_records import trial_record
from torture.facts.evidence.cut_document import Confirmation, CutDocument
from torture.facts.evidence.folder import CUT, LEDGER, SPEC, Step, ToolOutput, append_tool
from torture.facts.evidence.ledger import cut_mark
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import TrialRecord
from torture.report.page.evidence_excerpts import timeline_of, words_of
from torture.report.page.story import story_of

KERNEL_IS_BEHIND_MS = 13_000
"""The guest's clock began so much later than the trial's."""
DMESG = """\
[    1.000000] sd 0:0:0:0: [sda] Write cache: enabled, a failing line of its boot
[    3.100000]  connection1:0: detected conn error (1020)
[    3.150000] EXT4-fs (sda): all is well
[   11.000000] EXT4-fs error (device sda): ext4_find_entry:1455: <script>alert(1)</script>
"""


def record(**fields: Any) -> TrialRecord:
    data = {
        "verdict": Verdict.CORRUPTED,
        "guarantee": "may lose data",
        "lost": 1,
        "acknowledged": 3,
    }
    return trial_record(trial="t", cell="c", **(data | fields))


def _line(t_ms: float, **fields: object) -> bytes:
    """As the host keeps it: it comes some milliseconds after it was sent."""
    guest_ms = round(t_ms) - KERNEL_IS_BEHIND_MS - (0 if t_ms == 15_000 else 7)
    return json.dumps(fields | {"t_ms": t_ms, "guest_ms": guest_ms}).encode() + b"\n"


def _begin(seq: int, t_ms: float) -> bytes:
    return _line(
        t_ms, event="begin", seq=seq, writer=seq, op="append", file=seq, blocks=[0], size=1
    )


LEDGER_LINES = [
    _line(15_000, event="hello", seq=0, trial=1, mode="files"),
    _begin(1, 15_100),
    _begin(2, 15_200),
    _line(15_300, event="done", seq=1),
    cut_mark(16_000),
    _line(24_500, event="failed", seq=2, errno=5, call="fsync"),
    _begin(3, 24_600),
    _line(24_900, event="done", seq=3),
]


def _output(step: Step, **changes: Any) -> ToolOutput:
    return tool(step, "mount/mounted", **changes)


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    (tmp_path / SPEC).write_text('{"cell": "c"}')
    (tmp_path / LEDGER).write_bytes(b"".join(LEDGER_LINES))
    cut = {"t_ms": 16_000.0, "published_ms": 22_000.0, "second": {"t_ms": 26_000.0}}
    (tmp_path / CUT).write_text(json.dumps(cut))
    for output in (
        _output(Step.CLIENT_DMESG, stdout=DMESG),
        _output(Step.POOL_IMPORT, argv=("zpool", "import"), exit_code=1, stderr="no such device"),
        _output(Step.POOL_IMPORT_M, exit_code=0),
        _output(Step.FS_MOUNT, exit_code=32, stderr="mount: can't read superblock"),
        _output(Step.FS_CHECK),
        _output(Step.FS_REPAIR, argv=("e2fsck", "-y"), exit_code=1, stdout="Fix? yes\n"),
        _output(Step.CHECK_DMESG, stdout="[ 5.1] BTRFS error (device vdb): parent transid\n"),
    ):
        append_tool(tmp_path, output)
    return tmp_path


def test_all_incidents_are_in_order_on_one_clock(evidence: Path) -> None:
    incidents = story_of(record(), evidence)
    assert [(one.after_cut_ms, one.who) for one in incidents] == [
        (0.0, "NAS"),
        (100.0, "client's kernel"),
        (6_000.0, "NAS"),
        (8_000.0, "client's kernel"),
        (8_500.0, "application"),
        (8_900.0, "application"),
        (10_000.0, "NAS"),
        (None, "NAS"),
        (None, "fresh client"),
        (None, "fresh client"),
        (None, "fresh client's kernel"),
        (None, "user"),
    ]
    words = [one.text for one in incidents]
    assert words[0].endswith("it had acknowledged 1 durable operations to the client")
    assert words[4] == "fsync fails: Input/output error (operation 2)"
    assert words[7] == "zpool import: returned 1: no such device"
    assert words[8] == "mounts it: returned 32: mount: can't read superblock"
    assert words[9] == "repairs it: returned 1: Fix? yes"
    assert words[10] == "BTRFS error (device vdb): parent transid"
    assert words[11] == "1 of 3 acknowledged operations are lost"


def test_a_message_repeated_a_hundred_times_is_shown_a_few_times(evidence: Path) -> None:
    lines = "".join(f"[    {3 + at / 100:.6f}] nvme0: failed {at}\n" for at in range(100))
    append_tool(evidence, _output(Step.CLIENT_DMESG, stdout=lines))
    incidents = [one.text for one in story_of(record(), evidence) if one.who == "client's kernel"]
    assert incidents == [*(f"nvme0: failed {at}" for at in range(8)), "and 92 messages more"]


def test_without_a_clock_of_the_guest_its_kernel_is_not_dated(evidence: Path) -> None:
    (evidence / LEDGER).write_bytes(cut_mark(16_000) + b"no json\n" + b'{"t_ms": "x"}\n')
    incidents = story_of(record(), evidence)
    assert incidents
    assert not [one for one in incidents if one.who == "client's kernel"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"t_ms": NaN, "guest_ms": 1}',
        b'{"t_ms": 1' + b"0" * 400 + b', "guest_ms": 1}',
        b'{"t_ms": 1e999, "guest_ms": 1e999}',
        b"[" * 100_000,
    ],
)
def test_an_unreadable_line_does_not_spoil_the_story(evidence: Path, line: bytes) -> None:
    before = story_of(record(), evidence)
    (evidence / LEDGER).write_bytes(line + b"\n" + b"".join(LEDGER_LINES))
    assert story_of(record(), evidence) == before


def test_an_unknown_error_is_shown_by_its_number(evidence: Path) -> None:
    lines = b"".join(LEDGER_LINES).replace(b'"errno": 5', b'"errno": 5' + b"0" * 30)
    (evidence / LEDGER).write_bytes(lines)
    words = [one.text for one in story_of(record(), evidence)]
    assert f"fsync fails: errno 5{'0' * 30} (operation 2)" in words


@pytest.mark.parametrize("name", [SPEC, LEDGER, CUT])
def test_a_folder_without_a_cut_has_no_story(evidence: Path, name: str) -> None:
    (evidence / name).unlink()
    assert story_of(record(), evidence) == ()


def test_a_verdict_of_repaired_says_so_at_the_end(evidence: Path) -> None:
    incidents = story_of(record(verdict=Verdict.REPAIRED, lost=0), evidence)
    assert incidents[-1].text == "all data is back after a repair"


def test_a_vm_that_does_not_boot_says_so_before_and_after_the_rescue(evidence: Path) -> None:
    console = "torture: fsck of /dev/vdb\nfsck.ext4: Bad magic number in super-block\n"
    for step, exit_code in ((Step.BOOT, 1), (Step.BOOT_AFTER_REPAIR, 0)):
        append_tool(evidence, _output(step, exit_code=exit_code, stdout=console))
    incidents = [(one.who, one.text) for one in story_of(record(), evidence)]
    said = "returned 1: torture: fsck of /dev/vdb / fsck.ext4: Bad magic number in super-block"
    assert [text for who, text in incidents if who == "VM"] == [f"is booted from it: {said}"]
    append_tool(evidence, _output(Step.BOOT_AFTER_REPAIR, exit_code=1, stdout=console))
    incidents = [(one.who, one.text) for one in story_of(record(), evidence)]
    assert incidents[-3][0] == "VM"
    assert incidents[-3][1].startswith("is booted from it once more: returned 1")


# The page's view of one cut: its stages, the last acknowledgements, the tools' output.


def cut_record(**fields: Any) -> TrialRecord:
    data = {"verdict": Verdict.ROLLED_BACK, "guarantee": "rolls back"}
    timings = {"load": 3000, "check": 1000}
    return trial_record(trial="t", cell="c", timings=timings, **(data | fields))


def begin(seq: int, op: str = "append") -> bytes:
    return _ledger_line(
        event="begin", seq=seq, writer=0, op=op, file=0, blocks=[0], size=1, t_ms=100
    )


def done(seq: int, t_ms: float) -> bytes:
    return _ledger_line(event="done", seq=seq, t_ms=t_ms)


def _ledger_line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


@pytest.fixture
def cut_evidence(tmp_path: Path) -> Path:
    lines = [begin(1), begin(2), begin(3, "scribble"), begin(4), done(1, 1000), done(2, 1900),
             done(3, 1950), cut_mark(2000.0), done(4, 2500)]  # fmt: skip
    (tmp_path / LEDGER).write_bytes(b"".join(lines))
    (tmp_path / SPEC).write_text('{"cell": "c"}')
    return tmp_path


def test_acknowledgements_stand_before_the_cut_and_name_losses(cut_evidence: Path) -> None:
    line = timeline_of(cut_record(rollback_ms=500.0), cut_evidence)
    assert [
        (acknowledgement.before_cut_ms, acknowledgement.is_gone)
        for acknowledgement in line.acknowledged
    ] == [
        (1000.0, False),
        (100.0, True),
    ]
    assert line.load_ms == 1000.0
    assert [(stage.name, stage.share) for stage in line.stages] == [("load", 0.75), ("check", 0.25)]


def test_a_confirmed_finding_shows_only_events_before_its_cut(cut_evidence: Path) -> None:
    cut = CutDocument(confirmed=Confirmation(event=70, marks=5, t_ms=1200.0))
    line = timeline_of(cut_record(cut=cut), cut_evidence)
    assert [point.before_cut_ms for point in line.acknowledged] == [200.0]


def test_without_a_rollback_nothing_is_called_gone(cut_evidence: Path) -> None:
    line = timeline_of(cut_record(verdict=Verdict.CORRUPTED), cut_evidence)
    assert [acknowledgement.is_gone for acknowledgement in line.acknowledged] == [False, False]


@pytest.mark.parametrize("ledger", [None, b"", b"\xff{", begin(1) + done(1, 5)])
def test_a_ledger_that_is_not_there_or_has_no_cut_shows_nothing(
    ledger: bytes | None, tmp_path: Path
) -> None:
    if ledger is not None:
        (tmp_path / LEDGER).write_bytes(ledger)
    assert timeline_of(cut_record(), tmp_path).acknowledged == ()
    assert timeline_of(cut_record(), None).acknowledged == ()


def output_of(step: Step, text: str, *, exit_code: int | None) -> ToolOutput:
    return ToolOutput(
        step=step, vm="nas", name="tool", argv=("tool", "-x"), exit_code=exit_code, stdout=text,
        stderr="", duration_ms=1,
    )  # fmt: skip


def test_tools_that_complained_or_checked_are_shown(cut_evidence: Path) -> None:
    for output in (
        output_of(Step.POOL_IMPORT, "cannot import", exit_code=1),
        output_of(Step.POOL_IMPORT_M, "", exit_code=0),
        output_of(Step.FS_CHECK, "x" * 5000 + "the end", exit_code=0),
        output_of(Step.FS_REPAIR, "hangs", exit_code=None),
        output_of(
            Step.CHECK_DMESG, "BTRFS error (device vdb): bad\nusb error\nBTRFS info: fine", exit_code=0
        ),
    ):  # fmt: skip
        append_tool(cut_evidence, output)
    words = words_of(cut_evidence)
    assert [tool.exit_code for tool in words] == [1, 0, None, 0]
    assert words[1].text.endswith("the end")
    assert len(words[1].text) < 2000
    assert words[3].text == "BTRFS error (device vdb): bad"


def test_a_folder_that_is_no_trial_has_no_excerpts(tmp_path: Path) -> None:
    assert words_of(tmp_path / "gone") == ()
