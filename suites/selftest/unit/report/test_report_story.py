"""The page's view of one trial: its story, the stages of its cut, the tools' output.

The sensitivity of cuts: the stored table, and the shares of runs that it predicts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from suites.selftest.unit.good_evidence import tool
from suites.selftest.unit.made_records import trial_record
from suites.selftest.unit.report_records import intact_records, make_records, page_of, write_run
from torture.choices.experiments import FAULTS
from torture.choices.matrix.cells import TRANSPORT, Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import Confirmation, CutDocument
from torture.facts.evidence.folder import CUT, LEDGER, SPEC, Step, ToolOutput, append_tool
from torture.facts.evidence.ledger import cut_mark
from torture.facts.stats.rates import rate_of
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import TrialRecord
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.sensitivity import MeasuredFault, Sensitivity, measured_sensitivity
from torture.report.page.evidence_excerpts import timeline_of, words_of
from torture.report.page.story import story_of
from torture.report.reading.store import Store
from torture.trials.plan.draw import moved

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


def _begin(seq: int, t_ms: float = 100, op: str = "append") -> bytes:
    return _line(t_ms, event="begin", seq=seq, writer=seq, op=op, file=seq, blocks=[0], size=1)


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


@pytest.mark.parametrize(
    ("axes", "who", "says"),
    [
        ({"event": "panic"}, "NAS", "panics"),
        ({"event": "reboot"}, "NAS", "is switched off in order"),
        ({"event": "", "fate": "clientonly"}, "client", "loses power"),
        ({}, "NAS", "loses power"),
    ],
)
def test_the_story_begins_with_the_event(
    evidence: Path, axes: dict[str, str], who: str, says: str
) -> None:
    first = story_of(structs.replace(record(), axes=record().axes | axes), evidence)[0]
    assert first.who == who
    assert first.text.startswith(says)


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
    assert words[0].endswith("1 durable operations were acknowledged to the client")
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
    data = {"verdict": Verdict.ROLLED_BACK, "timings": {"load": 3000, "check": 1000}}
    return record(**(data | fields))


def done(seq: int, t_ms: float) -> bytes:
    return _line(t_ms, event="done", seq=seq)


@pytest.fixture
def cut_evidence(tmp_path: Path) -> Path:
    lines = [_begin(1), _begin(2), _begin(3, op="scribble"), _begin(4), done(1, 1000), done(2, 1900),
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


@pytest.mark.parametrize("ledger", [None, b"", b"\xff{", _begin(1) + done(1, 5)])
def test_a_ledger_that_is_not_there_or_has_no_cut_shows_nothing(
    ledger: bytes | None, tmp_path: Path
) -> None:
    if ledger is not None:
        (tmp_path / LEDGER).write_bytes(ledger)
    assert timeline_of(cut_record(), tmp_path).acknowledged == ()
    assert timeline_of(cut_record(), None).acknowledged == ()


def test_tools_that_complained_or_checked_are_shown(cut_evidence: Path) -> None:
    log = "BTRFS error (device vdb): bad\nusb error\nBTRFS info: fine"
    for output in (
        _output(Step.POOL_IMPORT, stdout="cannot import", exit_code=1),
        _output(Step.POOL_IMPORT_M, stdout="", exit_code=0),
        _output(Step.FS_CHECK, stdout="x" * 5000 + "the end", exit_code=0),
        _output(Step.FS_REPAIR, stdout="hangs", exit_code=None),
        _output(Step.CHECK_DMESG, stdout=log, exit_code=0),
    ):
        append_tool(cut_evidence, output)
    words = words_of(cut_evidence)
    assert [tool.exit_code for tool in words] == [1, 0, None, 0]
    assert words[1].text.endswith("the end")
    assert len(words[1].text) < 2000
    assert words[3].text == "BTRFS error (device vdb): bad"


def test_a_folder_that_is_no_trial_has_no_excerpts(tmp_path: Path) -> None:
    assert words_of(tmp_path / "gone") == ()


HEADING = "What these cuts would have detected"


def fault(detected: int, cuts: int) -> MeasuredFault:
    return MeasuredFault(name="f", words="w", cell="c", detected=detected, cuts=cuts)


def test_the_kept_table_is_of_the_faults_that_there_are() -> None:
    kept = measured_sensitivity()
    assert {measured.words for measured in kept.faults} == {each.words for each in FAULTS.values()}
    assert {measured.cell for measured in kept.faults} == {each.cell for each in FAULTS.values()}
    assert all(0 <= measured.detected <= measured.cuts for measured in kept.faults)
    of_faults = {each.words: (each.bound_to, dict(each.amounts_to)) for each in FAULTS.values()}
    assert of_faults == {
        measured.words: (frozenset(measured.bound_to), measured.amounts_to)
        for measured in kept.faults
    }
    assert kept.versions["OpenZFS"]


def test_faults_on_other_transports_are_possible_there() -> None:
    kept = measured_sensitivity()
    by_words = {each.words: each for each in FAULTS.values()}
    assert kept.on_transports
    for measured in kept.on_transports:
        fault, there = by_words[measured.words], Cell.parse(measured.cell)
        here = Cell.parse(fault.cell).axes
        assert there.axes[TRANSPORT.field] != here[TRANSPORT.field]
        other = {axis: name for axis, name in there.axes.items() if name and name != here[axis]}
        assert moved(fault, other).cell == measured.cell
        assert 0 <= measured.detected <= measured.cuts


def figures_of(tmp_path: Path, *names: str) -> tuple[CellFigures, ...]:
    """Of ten sound cuts of each of these cells."""
    for number, name in enumerate(names):
        write_run(tmp_path / name, intact_records(10, cells=[Cell.parse(name)], seed=number))
    with Store.open([tmp_path / name for name in names]) as store:
        return cell_figures(store.tallies())


def test_a_run_shows_the_measurements_on_its_own_transports(tmp_path: Path) -> None:
    own = replace(fault(4, 4), cell="iscsi-always-noslog-ext4-bothdie")
    rare = replace(own, words="x")
    there = replace(own, cell="nfs4-always-noslog-files-bothdie", detected=1)
    elsewhere = replace(own, cell="nfs3-always-noslog-files-bothdie", detected=2)
    kept = Sensitivity(versions={}, faults=(own, rare), on_transports=(elsewhere, there))
    cells = figures_of(tmp_path, "nfs4-standard-noslog-files-bothdie")
    assert kept.of(cells) == (own, there, rare)


def test_a_run_sees_a_fault_as_often_as_its_lower_bound_says() -> None:
    low = rate_of(3, 4).low
    assert fault(3, 4).share_of_runs(1) == pytest.approx(low)
    assert fault(3, 4).share_of_runs(10) == pytest.approx(1 - (1 - low) ** 10)
    assert fault(0, 4).share_of_runs(1000) == 0.0
    assert fault(3, 4).share_of_runs(0) == 0.0


def test_the_printed_table_promises_no_more() -> None:
    assert fault(0, 4).in_words(1000) == "at least 0 %"
    assert fault(4, 4).in_words(100) == "more than 99.99 %"
    for cuts in range(1, 60):
        words = fault(2, 4).in_words(cuts)
        percent = float(words.removesuffix(" %").split()[-1])
        assert percent / 100 <= fault(2, 4).share_of_runs(cuts)


def cuts_alike(tmp_path: Path, *names: str) -> dict[str, int]:
    """By fault, how many of ten cuts of each cell it was measured on the like of."""
    cells = figures_of(tmp_path, *names)
    return {each.words: each.cuts_like(cells) for each in measured_sensitivity().faults}


def test_a_rate_measured_over_iscsi_does_not_apply_to_another_transport(tmp_path: Path) -> None:
    alike = cuts_alike(tmp_path, "nfs4-standard-noslog-files-bothdie")
    assert set(alike.values()) == {0}
    assert {each.in_words(0) for each in measured_sensitivity().faults} == {
        "not measured in such cells"
    }


def test_a_filesystem_s_fault_is_looked_for_in_its_own_cuts(tmp_path: Path) -> None:
    alike = cuts_alike(
        tmp_path,
        "iscsi-always-noslog-btrfs-bothdie",
        "iscsi-always-noslog-ext4-bothdie",
        "iscsi-always-noslog-xfs-bothdie",
        "nfs4-standard-noslog-files-bothdie",
    )
    assert alike["LIO's backstore is write back"] == 30
    assert alike["ext4 without barriers"] == 10
    assert alike["the second copy of btrfs's metadata is lost"] == 10
    assert alike["the root's superblocks are wiped"] == 0


def test_a_fault_is_looked_for_where_it_is_one(tmp_path: Path) -> None:
    """That sync=always is silently standard harms a VM that lives on, and none that dies, too."""
    alike = cuts_alike(
        tmp_path, "iscsi-always-noslog-ext4-bothdie", "iscsi-always-noslog-ext4-nasonly"
    )
    assert alike["sync=always is silently standard"] == 10
    assert alike["no transaction group is committed"] == 0, (
        "where theory promises more than it takes"
    )
    assert alike["a disk drops one flush in 20"] == 20


def test_the_page_counts_only_trials_that_are_alike(tmp_path: Path) -> None:
    made = make_records(40, cells=[Cell.parse("nfs4-standard-noslog-files-nasonly")], seed=3)
    page = page_of(write_run(tmp_path / "run", made))
    assert HEADING in page
    assert page.count("<td>not measured in such cells</td>") == len(measured_sensitivity().faults)
    measured = measured_sensitivity().of(
        figures_of(tmp_path / "of", "nfs4-standard-noslog-files-nasonly")
    )
    on_files = re.compile("nfs4-.*-files-[a-z]+$")  # a takeover is no loss of power
    cells = Counter(fault.cell for fault in measured if on_files.match(fault.cell))
    assert cells.total() == page.count("<td>more than 99.99 %</td>") > 1
    assert {cell: page.count(f"<code>{cell}</code>") for cell in cells} == cells


def test_the_page_shows_the_sensitivity_if_a_cell_is_called_safe(tmp_path: Path) -> None:
    made = make_records(40, cells=cells_of(Matrix.QUICK), seed=3)
    page = page_of(write_run(tmp_path / "run", made))
    assert HEADING in page
    assert "a disk drops one flush in 20" in page
    lossy = Cell.parse("iscsi-disabled-noslog-btrfs-nasonly")
    made = make_records(9, cells=[lossy], seed=3)
    assert HEADING not in page_of(write_run(tmp_path / "lossy", made))
