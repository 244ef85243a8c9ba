"""`mount` and the kernel's log: whether the filesystem mounted, and its journal was replayed.

Exit codes of mount(8): 0 success, 1 usage or permissions, 2 system error, 4 internal, 8 interrupt,
16 mtab, 32 mount failure, 64 some succeeded. Success prints nothing: its proof is the code alone.

A kernel's words for the death of one of its threads, or of itself.

The words are those of Linux 6.1 to 6.12. `__die_header` (`arch/x86/kernel/dumpstack.c`) ends each
fault with its error code and a number, `: 0000 [#1]`. Before 6.11 many lack `Oops: `. The others are of
`show_fault_oops` (`arch/x86/mm/fault.c`), `lib/bug.c`, `kernel/panic.c` and `arch/arm64/mm/fault.c`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import (
    Attempt,
    exit_code_of,
    first_whole_line,
    lines_of,
    refuse_codes_beyond,
    unreadable,
)

KERNEL_DEATH = re.compile(
    r"Kernel panic|kernel BUG at \S+:\d+!|"
    r"BUG: (?:kernel NULL pointer|unable to handle|\S+ stack guard page)|"
    r"Unable to handle kernel |Oops: |[A-Za-z][^\[\]\n]*: [0-9a-f]{4,16} \[#\d+\]"
)
"""It has no lockup that a watchdog reports (`kernel/watchdog.c`, `kernel/workqueue.c`). The guest of a
host that stood still for 20 s reports it, too, and goes on. Nor has it a `BUG: ` after which the
thread goes on, e.g. `scheduling while atomic` (`kernel/sched/core.c`)."""


_MOUNT_FAILURE = 32
_THE_FILESYSTEMS = (
    "wrong fs type, bad option, bad superblock",
    "can't read superblock",
    "cannot mount; probably corrupted filesystem",
    "mount failed: ",
    "mount(2) system call failed: ",
    "fsconfig system call failed: ",
    "fsconfig() failed: ",
)
"""Reasons that are the filesystem's (util-linux `libmount/src/hook_mount*.c`, old and new)."""
_REPLAYED = re.compile(
    r"EXT4-fs \(\S+\): recovery complete|XFS \(\S+\): Ending recovery|"
    r"BTRFS.*: start tree-log replay"
)
_DISK = r"(?:vd[a-z]+|sd[a-z]+|nvme\d+(?:c\d+)?n\d+|dm-\d+)(?:p?\d+)?"
"""A guest's own root (vda), the disk that QEMU attaches (vdb), and those of open-iscsi, NVMe/TCP and
device mapper."""
_REQUEST_FAILED = (
    r"(?<!operation not supported)(?<!nonblocking retry)(?<!dm internal retry)"
    rf" error, dev {_DISK}, sector \d+\b(?! op 0x\w+:\((?:DISCARD|SECURE_ERASE|WRITE_ZEROES)\))|"
    rf"Buffer I/O error on dev(?:ice)? {_DISK},"
)
"""Linux `block/blk-mq.c`, `blk_print_req_error`: a request failed with one of the names in
`block/blk-core.c`, `blk_errors`: `I/O`, `timeout`, `critical medium` and so on. Three of them are no
failure, and a disk may refuse to discard. `fs/buffer.c`, `buffer_io_error`."""
_PATH_FAILED = (
    r"Device offlined - not ready after error recovery|"
    r"rejecting I/O to (?:offline device|dead device|device being removed)|"
    r"session\d+: session recovery timed out after \d+ secs"
)
"""Linux `drivers/scsi/scsi_error.c`, `scsi_eh_offline_sdevs`; `drivers/scsi/scsi_lib.c`,
`scsi_device_state_check`; `drivers/scsi/scsi_transport_iscsi.c`, `session_recovery_timedout`. A lost
connection alone (`detected conn error`) is made again, and its requests wait."""
_NO_PATH = r"nvme\d+n\d+: no available path - failing I/O"
"""Linux `drivers/nvme/host/multipath.c`, `nvme_ns_head_submit_bio`. The end of one controller is none:
another may be a path, too."""
_DISK_FAILED = re.compile(f"{_REQUEST_FAILED}|{_PATH_FAILED}|{_NO_PATH}")
"""A wrong checksum in btrfs gives EIO, too, but no line of this kind."""
_ONE_OF_SEVERAL = re.compile(r"device-mapper: multipath: \S+ Failing path")
_ALL_PATHS_FAILED = re.compile(rf"(?:{_REQUEST_FAILED.replace(_DISK, r'dm-[0-9]+')})|{_NO_PATH}")
"""Linux `drivers/md/dm-mpath.c`, `fail_path`: the request goes on over another path. Only the disk of
device mapper then says that the disk failed."""
_IN_USE = rf"EXT4-fs \({_DISK}\): mounted|XFS \({_DISK}\): Mounting|BTRFS info .*: first mount of"
_OUT_OF_USE = (
    rf"EXT4-fs \({_DISK}\): unmounting|XFS \({_DISK}\): Unmounting|BTRFS info .*: last unmount of"
)
_OF_USE = re.compile(rf"(?P<begin>{_IN_USE})|(?P<end>{_OUT_OF_USE}).*")
"""Linux `fs/ext4/super.c`, `fs/xfs/xfs_mount.c` and `xfs_super.c`, `fs/btrfs/super.c`."""
_COMPLAINT = re.compile(
    r"(BTRFS (error|critical|warning)|EXT4-fs (error|warning)|XFS \(\S+\): .*(corrupt|error)|"
    r"I/O error|Aborting journal|forced readonly|Remounting filesystem read-only|"
    r"parent transid verify failed|JBD2: .*error).*",
    re.IGNORECASE,
)
_COMPLAINT_WORDS = (
    "error",
    "critical",
    "warning",
    "corrupt",
    "abort",
    "readonly",
    "read-only",
    "failed",
)

_BAD_COPY = re.compile(
    r"BTRFS (error|warning|info).*(csum failed|checksum verify failed|checksum error|bad tree block|"
    r"parent transid verify failed|corrupt leaf|corrupt node|read error corrected|fixed up error).*",
    re.IGNORECASE,
)
"""Linux `fs/btrfs`: `disk-io.c`, `bio.c`, `scrub.c`. A copy was bad; there may have been a good one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelLog:
    """A client's kernel messages about its filesystem and disk.

    `disk_failed`: the disk failed a request, whatever the filesystem made of it.
    `disk_failed_later`: it did after the filesystem's last unmount, so only a checker could meet it.
    `bad_copies`: the messages about bad copies, from a filesystem that keeps checksums.
    """

    journal_replayed: bool
    disk_failed: bool
    disk_failed_later: bool
    complaints: tuple[str, ...]
    bad_copies: tuple[str, ...] = ()


def parse_mount(output: ToolOutput) -> Attempt:
    """Whether a mount succeeded; raises `UnreadableError` when the output does not show it."""
    code = exit_code_of(output)
    lines = lines_of(output)
    if code == 0:
        if any("write-protected" in line or "failed" in line for line in lines):
            raise unreadable(output, f"it succeeded, yet prints {lines[0]!r}")
        return Attempt(is_done=True)
    refuse_codes_beyond(output, (_MOUNT_FAILURE,))
    refusal = first_whole_line(output.stderr, "mount: ")
    if refusal is None or not any(reason in refusal for reason in _THE_FILESYSTEMS):
        raise unreadable(output, f"no known reason of the filesystem's: {lines[:1]}")
    return Attempt(is_done=False, reason=refusal.split(": ", 2)[-1])


@lru_cache(maxsize=8)  # each layer's judgement reads them all
def read_kernel_log(output: ToolOutput) -> KernelLog:
    """The lines of a `dmesg` about filesystems and the disk, as far as it goes; never raises."""
    text = "\n".join(lines_of(output))
    pattern = _ALL_PATHS_FAILED if _ONE_OF_SEVERAL.search(text) else _DISK_FAILED
    uses = list(_OF_USE.finditer(text))
    last_used = uses[-1].end() if uses and uses[-1]["end"] else len(text)
    return KernelLog(
        journal_replayed=bool(_REPLAYED.search(output.stdout)),
        disk_failed=pattern.search(text, 0, last_used) is not None,
        disk_failed_later=pattern.search(text, last_used) is not None,
        complaints=_found(_COMPLAINT, text, words=_COMPLAINT_WORDS),
        bad_copies=_found(_BAD_COPY, text, words=("btrfs",)),
    )


_PANIC = re.compile(
    r"(VERIFY\w*\(.*\) failed|PANIC at \S+:\d+:|SPLError: .*PANIC|PANIC: |"
    r"Pool '.*' has encountered an uncorrectable I/O failure and has been suspended|"
    rf"{KERNEL_DEATH.pattern}).*"
)
"""OpenZFS `include/os/linux/spl/sys/debug.h` and `module/os/linux/spl/spl-err.c` (`vcmn_err` has
`PANIC: `, for `zfs_panic_recover` too): the thread that prints it stops for ever. And
`module/zfs/zio.c`, `zio_suspend`: every thread that waits for the pool stops, too. A thread that died
of a fault of the kernel leaves its locks held."""
_PANIC_WORDS = (
    *("verify", "panic", "has encountered an uncorrectable i/o failure"),
    *("oops", "bug", "[#", "unable to handle kernel"),
)
_REPLAY = re.compile(
    r"(ZFS replay transaction error \d+|ZFS read log block error \d+|"
    r"zil_parse: lr_t (overrun|has an invalid reclen)|can't open objset (for )?\d+, error \d+).*"
)
"""OpenZFS `module/zfs/zil.c`: something acknowledged was not replayed. A record could not be
replayed (`zil_replay_error`). Or a claimed block was unreadable or holds no record (`zil_parse`).
The log's end is a block that is not there, and has no message. Or the log of a dataset could not be
claimed at all (`zil_claim`) or checked (`zil_check_log_chain`)."""
_REPLAY_WORDS = ("zfs re", "zil_parse: lr_t", "can't open objset")


@dataclass(frozen=True, kw_only=True, slots=True)
class NasLog:
    """Lines in which ZFS or its kernel gave up, and those in which it could not replay its intent log."""

    panics: tuple[str, ...] = ()
    replay_errors: tuple[str, ...] = ()


def read_nas_log(lines: list[str]) -> NasLog:
    """These lines among those of a NAS's `dmesg`, as far as it goes; never raises."""
    text = "\n".join(lines)
    return NasLog(
        panics=_found(_PANIC, text, words=_PANIC_WORDS),
        replay_errors=_found(_REPLAY, text, words=_REPLAY_WORDS),
    )


def _found(pattern: re.Pattern[str], text: str, *, words: tuple[str, ...]) -> tuple[str, ...]:
    """The matches in a text, one a line. A line with one has one of the words, in some case."""
    # a search for a word is a hundred times as quick as one for the pattern
    lines = zip(text.split("\n"), text.lower().split("\n"), strict=True)
    likely = (line for line, lowered in lines if any(word in lowered for word in words))
    return tuple(dict.fromkeys(found[0] for line in likely if (found := pattern.search(line))))
