"""The answer of `zdb -b` for a pool, on recorded outputs: whole, cut off, garbled; its verdict.

Kernels' logs about filesystems, disks and dead threads: recorded ones, and single lines.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from suites.selftest.unit.good_evidence import evidence, recording, tool
from torture.facts.evidence.cut_document import GONE, DiskAtCut
from torture.facts.evidence.folder import Step, ToolOutput
from torture.oracles.verdict.guarantee import UnreadableError, Verdict
from torture.oracles.verdict.mount import KernelLog, read_kernel_log, read_nas_log
from torture.oracles.verdict.pool_tools.zpool import BlockCheck, parse_zdb
from torture.oracles.verdict.pool_verdict import judge_pool
from torture.records.scoring.judge import judge

SOUND = tool(Step.POOL_BLOCKS, "zdb/sound")
_VOUCHED = "\tNo leaks (block sum matches space maps exactly)\n"


def _said(*lines: str, exit_code: int, vouches: bool = False) -> ToolOutput:
    """The sound one with other lines in front of, or instead of, its word that nothing is leaked."""
    said = "".join(f"{line}\n" for line in lines) + (_VOUCHED if vouches else "")
    return replace(SOUND, stdout=SOUND.stdout.replace(_VOUCHED, said), exit_code=exit_code)


LEAKED = _said(
    "leaked space: vdev 0, offset 0x1a00, size 512",
    "block traversal size 8839168 != alloc 8839680 (leaked 512)",
    exit_code=0,
)
CLAIMED_TWICE = _said(
    "block claim error 2: DVA[0]=<0:4000:200> [L0 DMU dnode] fletcher4 uncompressed LE",
    "",
    "Error counts:",
    "",
    "\terrno  count",
    "\t    2  1",
    "block traversal size 8840192 != alloc 8839680 (leaked -512)",
    exit_code=3,
)
"""As OpenZFS 2.3.9 `cmd/zdb/zdb.c` prints them; no pool here has shown either."""
UNREADABLE_BLOCK = tool(Step.POOL_BLOCKS, "zdb/blocks-spoiled")


@pytest.mark.parametrize("case", ["sound", "sound-short-of-a-leg", "sound-2.1"])
def test_a_sound_pool_is_understood(case: str) -> None:
    assert parse_zdb(tool(Step.POOL_BLOCKS, f"zdb/{case}")) == BlockCheck()


@pytest.mark.parametrize(
    ("output", "first"),
    [
        (LEAKED, "leaked space: vdev 0"),
        (CLAIMED_TWICE, "block claim error 2"),
        (UNREADABLE_BLOCK, "zdb_blkptr_cb: Got error 52"),
        (_said("block traversal size 5 != alloc 7 (leaked 2)", exit_code=0), "block traversal"),
        (_said("BRT leak: vdev 0, offset 0x0, refcount 1", exit_code=2, vouches=True), "BRT leak"),
    ],
)
def test_leaked_doubled_and_unreadable_blocks_are_a_problem(output: ToolOutput, first: str) -> None:
    found = parse_zdb(output)
    assert not found.is_sound
    assert not found.gave_up
    assert found.problems[0].startswith(first)


@pytest.mark.parametrize(
    "output",
    [
        replace(SOUND, exit_code=134, stdout="", stderr="ASSERT at zdb.c:1:f()\nverify failed\n"),
        replace(SOUND, exit_code=139, stdout="", stderr=""),
        replace(
            SOUND, exit_code=1, stdout="", stderr="zdb: can't open 'tank': Input/output error\n"
        ),
        replace(SOUND, exit_code=1, stdout="", stderr="zdb: can't open 'tank': Invalid exchange\n"),
    ],
)
def test_a_pool_over_which_zdb_gives_up_is_not_sound(output: ToolOutput) -> None:
    found = parse_zdb(output)
    assert found.gave_up
    assert not found.is_sound


@pytest.mark.parametrize("gone", [False, True])
def test_it_counts_nothing_in_use_on_a_device_that_the_trial_took_away(gone: bool) -> None:
    """A trial of ours without its log device; the same words of a device that is there are a finding."""
    output = tool(Step.POOL_BLOCKS, "zdb/gives-up-without-log")
    assert parse_zdb(output).counts_what_is_missing
    assert not parse_zdb(tool(Step.POOL_BLOCKS, "zdb/cannot-open")).counts_what_is_missing
    disk = DiskAtCut(policy=GONE if gone else "flushed")

    def verdict(said: ToolOutput) -> Verdict | None:
        seen = evidence(said)
        return judge_pool(
            replace(seen, cut=structs.replace(seen.cut, disks={"slog0": disk}))
        ).verdict

    assert verdict(output) is (Verdict.INTACT if gone else Verdict.CORRUPTED)
    assert verdict(LEAKED) is Verdict.CORRUPTED


@pytest.mark.parametrize(
    "output",
    [
        replace(SOUND, exit_code=None),
        replace(SOUND, exit_code=137),
        replace(SOUND, exit_code=2),
        replace(SOUND, exit_code=3),
        replace(SOUND, exit_code=127, stdout="", stderr="sh: zdb: not found\n"),
        replace(SOUND, exit_code=1, stdout="", stderr="zdb: can't open 'tank': No such file\n"),
        replace(SOUND, stdout=""),
        replace(SOUND, stdout=SOUND.stdout[: SOUND.stdout.index("\tbp count")]),
        tool(Step.POOL_BLOCKS, "zdb/no-such-pool"),
        replace(SOUND, stdout=SOUND.stdout.replace(" and verify nothing leaked", "")),
        _said(exit_code=0),
    ],
)
def test_output_that_proves_nothing_is_unreadable(output: ToolOutput) -> None:
    with pytest.raises(UnreadableError):
        parse_zdb(output)


@pytest.mark.parametrize("output", [SOUND, LEAKED, CLAIMED_TWICE, UNREADABLE_BLOCK])
def test_a_damaged_output_never_turns_its_meaning(output: ToolOutput) -> None:
    whole = parse_zdb(output).is_sound
    for end in range(len(output.stdout)):
        try:
            said = parse_zdb(replace(output, stdout=output.stdout[:end])).is_sound
        except UnreadableError:
            continue
        assert said == whole


@given(at=st.integers(0, len(LEAKED.stdout) - 1), junk=st.text(min_size=1, max_size=8))
def test_a_garbled_leak_is_never_sound(at: int, junk: str) -> None:
    text = LEAKED.stdout[:at] + "\x00" + junk + LEAKED.stdout[at + 1 + len(junk) :]
    try:
        found = parse_zdb(replace(LEAKED, stdout=text))
    except UnreadableError:
        return
    assert not found.is_sound


def test_a_leak_breaks_the_pool_even_after_a_clean_scrub() -> None:
    finding = judge_pool(evidence(LEAKED))
    assert finding.verdict is Verdict.CORRUPTED
    assert finding.reasons[0] == "pool-blocks: leaked space: vdev 0, offset 0x1a00, size 512"
    assert judge_pool(evidence(SOUND)).verdict is Verdict.INTACT
    assert judge(evidence(LEAKED)).verdict is Verdict.CORRUPTED


def test_a_pool_that_was_never_idle_was_not_checked() -> None:
    stirred = replace(LEAKED, step=Step.POOL_BLOCKS_ASTIR)
    (why,) = judge_pool(evidence(stirred)).unknown
    assert "never idle" in why
    assert judge_pool(evidence(stirred, SOUND)).verdict is Verdict.INTACT


def test_blocks_that_could_not_be_counted_make_a_trial_inconclusive() -> None:
    garbled = replace(SOUND, stdout=SOUND.stdout[:100])
    judgement = judge(evidence(garbled))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "pool-blocks" in judgement.reasons[0]


def test_the_kernels_log_tells_of_replays_and_complaints() -> None:
    replayed = read_kernel_log(recording("kernel/log-replayed"))
    assert replayed.journal_replayed
    assert replayed.complaints == ()
    failed = read_kernel_log(recording("kernel/csum-failed"))
    assert not failed.journal_replayed
    assert any("csum failed root 5" in complaint for complaint in failed.complaints)
    assert not replayed.disk_failed
    assert not failed.disk_failed


def kernel_log(*lines: str) -> KernelLog:
    return read_kernel_log(replace(recording("kernel/csum-failed"), stdout="\n".join(lines)))


_REQUEST = "dev {}, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2"


@pytest.mark.parametrize(
    ("line", "has_failed"),
    [
        *((f"I/O error, {_REQUEST.format(name)}", True)
          for name in ("vda", "vdb", "vda1", "sda", "sda2", "nvme0n1", "nvme0n1p2", "nvme0c1n1", "dm-0")),
        *((f"{status} error, {_REQUEST.format('sda')}", True)
          for status in ("timeout", "critical space allocation", "recoverable transport",
                         "critical target", "reservation conflict", "critical medium",
                         "protection", "device offline", "blk_update_request: I/O")),
        *((f"{status} error, {_REQUEST.format('sda')}", False)
          for status in ("operation not supported", "nonblocking retry")),
        ("critical target error, dev sda, sector 123 op 0x3:(DISCARD) flags 0x0 phys_seg 1", False),
        ("blk_update_request: I/O error, dev sda, sector 2056 flags 0", True),
        ("I/O error, dev loop0, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1", False),
        ("Buffer I/O error on dev vdb, logical block 97, async page read", True),
        ("sd 2:0:0:0: Device offlined - not ready after error recovery", True),
        ("sd 2:0:0:0: rejecting I/O to offline device", True),
        ("sd 2:0:0:0: rejecting I/O to dead device", True),
        (" session1: session recovery timed out after 120 secs", True),
        (" connection1:0: detected conn error (1021)", False),
        ("block nvme0n1: no available path - failing I/O", True),
        ("block nvme0n1: no usable path - requeuing I/O", False),
        ("nvme nvme0: Removing controller (16770)...", False),
        ("BTRFS error (device sda): bad tree block start, mirror 1 want 50413568 have 0", False),
    ],
)  # fmt: skip
def test_a_failed_request_is_distinguished_from_the_disks_content(
    line: str, has_failed: bool
) -> None:
    assert kernel_log(f"[   12.3] {line}").disk_failed is has_failed


def test_a_path_of_several_is_no_disk() -> None:
    lost = (
        f"recoverable transport error, {_REQUEST.format('sda')}",
        "session1: session recovery timed out after 2 secs",
        "device-mapper: multipath: 254:0: Failing path 8:0.",
    )
    assert not kernel_log(*lost).disk_failed
    assert kernel_log(*lost, f"I/O error, {_REQUEST.format('dm-0')}").disk_failed


def test_a_disk_that_fails_after_the_last_unmount_is_told_apart() -> None:
    assert read_kernel_log(recording("kernel/disk-offlined")).disk_failed
    unused = recording("kernel/path-gone-after-unmount")
    log = read_kernel_log(unused)
    assert (log.disk_failed, log.disk_failed_later) == (False, True)
    mounted = "[  240.0] EXT4-fs (nvme1n1): mounted filesystem r/w\n"
    again = read_kernel_log(replace(unused, stdout=unused.stdout + mounted))
    assert (again.disk_failed, again.disk_failed_later) == (True, False)


@pytest.mark.parametrize(
    ("line", "is_dead"),
    [
        *((f"{fault}: {code} [#1] PREEMPT SMP NOPTI", True)
          for fault, code in (
              ("Oops: general protection fault, probably for non-canonical address 0x1a00bb", "0000"),
              ("general protection fault, probably for non-canonical address 0x1a00bb", "0000"),
              ("Oops", "0002"), ("invalid opcode", "0000"), ("divide error", "0000"),
              ("Internal error: Oops - BUG", "00000000f2000800"))),
        ("kernel BUG at lib/list_debug.c:59!", True),
        ("BUG: kernel NULL pointer dereference, address: 0000000000000008", True),
        ("BUG: unable to handle page fault for address: ffffa0dd40000000", True),
        ("BUG: IRQ stack guard page was hit at 00000000ca4f1c3d", True),
        ("Unable to handle kernel paging request at virtual address dead000000000108", True),
        ("Kernel panic - not syncing: Fatal exception", True),
        ("watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [kworker/0:1:9]", False),
        ("BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 33s!", False),
        ("BUG: scheduling while atomic: txg_sync/812/0x00000002", False),
        ("INFO: task txg_sync:812 blocked for more than 120 seconds.", False),
        ("WARNING: CPU: 0 PID: 1 at fs/inode.c:333 drop_nlink+0x2e/0x40", False),
    ],
)  # fmt: skip
def test_a_thread_of_the_nas_that_died_of_a_fault_is_seen(line: str, is_dead: bool) -> None:
    said = read_nas_log([f"[   12.3] {line}"]).panics
    assert bool(said) is is_dead
    assert all(words in line for words in said)


def test_a_bad_copy_is_known_by_the_filesystems_own_line() -> None:
    bad = "BTRFS warning (device vdb): csum failed root 5 ino 257 off 0"
    assert kernel_log(f"[1.0] {bad}", "[2.0] XFS (vdb): csum failed").bad_copies == (bad,)


def test_each_complaint_of_a_kernel_log_is_a_line_of_its_own_and_said_once() -> None:
    lines = ("EXT4-fs error (device vdb): one", "sound", "EXT4-fs error (device vdb): two")
    assert kernel_log(*lines, lines[0]).complaints == (lines[0], lines[2])


@pytest.mark.parametrize(
    "line",
    [
        "BTRFS critical (device vdb): unable to find logical 1",
        "BTRFS info (device vdb state E): forced readonly",
        "EXT4-fs warning (device vdb): checksum invalid",
        "EXT4-fs (vdb): Remounting filesystem read-only",
        "XFS (vdb): Metadata corruption detected",
        "I/O error, dev vdb, sector 1",
        "Aborting journal on device vdb-8.",
        "parent transid verify failed on 1 wanted 2 found 3",
        "JBD2: recovery error 5",
    ],
)
def test_a_complaint_of_any_kind_is_found_alone(line: str) -> None:
    (said,) = kernel_log("[1.0] sound", f"[2.0] {line}").complaints
    assert said in line
