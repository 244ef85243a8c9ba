"""The page's story of one cut: the view of the VM's user, in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.unit.good_evidence import tool
from suites.selftest.unit.made_records import trial_record
from torture.facts.evidence.folder import CUT, LEDGER, SPEC, Step, ToolOutput, append_tool
from torture.facts.evidence.ledger import cut_mark
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord
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
