"""`zpool import`, `zpool scrub -w`, and `zpool status`: JSON since OpenZFS 2.3, text before.

Sources: OpenZFS 2.3 `cmd/zpool/zpool_main.c` and `lib/libzfs/libzfs_pool.c`. A successful import
prints nothing (with -F: `Pool ... returned to its state as of ...`), so its proof is the exit code.
`scrub -w` prints nothing and returns 0 when the scrub ends, cancelled or not; the status says which.

`zdb -b`: whether every allocated block has a reference, and only one.

A scrub reads every block that the uberblock reaches. It cannot know of a lost block, or of one that
is used twice. Source: OpenZFS 2.3 `cmd/zdb/zdb.c`, `dump_block_stats`. It marks each block of the
space maps that it meets. A block that stays unmarked is leaked. A block that it cannot mark is
allocated twice, or free. The exit code alone says too little: leaked blocks leave it 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torture.facts.evidence.documents import strict_json
from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import (
    Attempt,
    exit_code_of,
    first_whole_line,
    has_crashed,
    lines_of,
    refuse_codes_beyond,
    unreadable,
)
from torture.oracles.verdict.pool_tools.status_text import pool_in_text

HEALTHY = "ONLINE"
CLASSES = ("vdevs", "dedup", "special", "logs")
"""The keys under which a status lists the pool's top-level parts (`status_callback_json`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolStatus:
    """The pool's state, errors in files or volumes, and errors that devices made.

    `scrubbed`: the last scan was a scrub, and it came to its end.
    """

    state: str
    data_errors: int
    device_errors: int
    unhealthy_devices: tuple[str, ...]
    scrubbed: bool

    @property
    def summary(self) -> str:
        """In a few words."""
        parts = [self.state]
        if self.data_errors:
            parts.append(f"{self.data_errors} data errors")
        if self.device_errors:
            parts.append(f"{self.device_errors} device errors")
        if self.unhealthy_devices:
            parts.append("not online: " + ", ".join(self.unhealthy_devices))
        return ", ".join(parts)


def pool_in(output: ToolOutput) -> dict[str, Any]:
    """The one pool in a status of either form, as `zpool status -j` has it; raises `UnreadableError`."""
    if exit_code_of(output) != 0:
        raise unreadable(output, "it failed")
    if "-j" in output.argv:
        return _pool_in_json(output)
    if "-p" in output.argv:
        return pool_in_text(output)
    raise unreadable(output, "only the output of -j or -p can be read")


def _pool_in_json(output: ToolOutput) -> dict[str, Any]:
    try:
        (pool,) = strict_json(output.stdout.encode())["pools"].values()
        return dict(pool)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable(output, f"no status of one pool: {error!r}") from error


def parse_status(output: ToolOutput) -> PoolStatus:
    """The pool's status; raises `UnreadableError` when the output does not show it."""
    pool = pool_in(output)
    try:
        devices = tuple(_devices_in(pool))
        scan = pool.get("scan_stats", {})
        return PoolStatus(
            state=str(pool["state"]),
            data_errors=max(_count(pool["error_count"]), _count(scan.get("errors", "0"))),
            device_errors=sum(_device_errors(device) for _, device in devices),
            unhealthy_devices=tuple(
                f"{name} {device['state']}"
                for name, device in devices
                if device["state"] != HEALTHY
            ),
            scrubbed=(scan.get("function"), scan.get("state")) == ("SCRUB", "FINISHED"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise unreadable(output, f"no status of one pool: {error!r}") from error


def _devices_in(pool: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every device and group that holds a part of the pool, by name.

    A cache holds copies alone, and a spare holds nothing until it is among the `vdevs`, too
    (zpoolconcepts(7)).
    """
    waiting = [pool["vdevs"], *(pool.get(kind, {}) for kind in CLASSES[1:])]
    while waiting:
        for name, device in waiting.pop().items():
            yield name, device
            waiting.append(device.get("vdevs", {}))


def _device_errors(device: dict[str, Any]) -> int:
    if device.get("vdevs"):  # a group repeats the errors of its devices
        return 0
    kinds = ("read_errors", "write_errors", "checksum_errors")
    return sum(_count(device[kind]) for kind in kinds if kind in device)


def _count(value: str | int) -> int:
    """A count as zpool prints it: whole below 1024, then `1.50K`, `2M`, ..."""
    text = str(value)
    scale: int = "KMGTPE".index(text[-1]) + 1 if text[-1:].isalpha() else 0
    number = text[:-1] if text[-1:].isalpha() else text
    return round(float(number) * float(1024**scale))


_CANNOT = "cannot import '"
_REASONS_OF_OURS = (
    # zpool_main.c: `zpool_do_import`, `import_pools`, `do_import`
    "a pool with that name",
    "no such pool",
    "more than one matching pool",
    "pool is imported on ",
    "pool was previously in use",
    # libzfs_pool.c: `zpool_import_props`
    "pool has the multihost property on",
    "the multihost claim could not be written",
    "I/O errors occurred while writing the multihost claim",
    "one or more devices is read only",
    "one or more devices are already in use",
    "new name of at least one dataset",
    # libzfs_util.c: `zfs_common_error`, `zpool_standard_error_fmt`, `libzfs_error_description`
    "already exists",
    "pool is busy",
    "pool is read-only",
    "pool export in progress",
    "out of memory",
    "out of space",
    "permission denied",
    "delegated administration is disabled",
    "bad address",
    "signal received",
    "the loaded zfs module does not support",
    "operation not supported by zfs kernel module",
    # strerror(3), of any other error
    "Cannot allocate memory",
    "Operation not permitted",
)
"""Refusals that say nothing about the cut's effect, by the functions that print them (OpenZFS 2.1.11
to 2.4.4). `no such pool available` is among them: its disks were not there, because a cut does not
wipe all four labels of a disk. An import on another host is, too: no data was judged. Every other
refusal is the pool's own, also in unknown words. This ZFS had the pool imported before the cut: even
an unsupported feature is the cut's effect."""
REASONS_OF_POOLS = (
    "one or more devices is currently unavailable",
    "I/O error",
    "Invalid exchange",
    "invalid vdev configuration",
    "insufficient replicas",
    "no valid replicas",
    "pool is unavailable",
    "pool I/O is currently suspended",
)
"""Reasons that are the pool's, as far as they were seen."""
_NO_POOL = ("no such pool available", "no such pool or dataset")
_REWOUND = "returned to its state as of"
_OF_A_CHECKPOINT = re.compile(
    r"warning: will not scrub state that belongs to the checkpoint of pool '[\w.-]+'"
)
"""No version scrubs data that only a checkpoint keeps (zpool-checkpoint(8))."""


def parse_import(output: ToolOutput) -> Attempt:
    """Whether an import succeeded; raises `UnreadableError` when the output does not show it."""
    code = exit_code_of(output)
    lines = lines_of(output)
    if has_crashed(code):
        return Attempt(is_done=False, reason=f"zpool itself gave up: {' '.join(lines[-1:])}")
    if code == 0:
        if any(_CANNOT in line for line in lines):
            raise unreadable(output, "it succeeded, yet prints that it cannot import")
        rewound = (line for line in lines if _REWOUND in line or "Discarded" in line)
        return Attempt(is_done=True, reason="; ".join(rewound))
    refuse_codes_beyond(output, (1,))
    refusal = first_whole_line(output.stderr, _CANNOT)
    reason = refusal.split("': ", 1)[-1] if refusal else ""
    if not reason or any(words in reason for words in _REASONS_OF_OURS):
        raise unreadable(output, f"no known reason of the pool's: {lines[:1]}")
    return Attempt(is_done=False, reason=reason)


def finds_no_pool(output: ToolOutput) -> bool:
    """Whether an import says that there is no pool; after a refusal of the pool's own it is one, too."""
    said = output.stderr + output.stdout
    return output.exit_code == 1 and any(words in said for words in _NO_POOL)


def refuse_unfinished_scrub(output: ToolOutput) -> None:
    """Raise `UnreadableError` unless `zpool scrub -w` ended without a word but that of a checkpoint."""
    printed = [line for line in lines_of(output) if not _OF_A_CHECKPOINT.fullmatch(line)]
    if exit_code_of(output) != 0 or printed:
        raise unreadable(output, f"the pool was not scrubbed to its end: {printed[:1]}")


_HEADING = re.compile(
    r"^Traversing all blocks to verify .*checksums and verify nothing leaked \.\.\.$"
)
_VOUCHES = "No leaks (block sum matches space maps exactly)"
_SUM_DIFFERS = re.compile(r"^block traversal size \d+ != alloc \d+ \(leaked -?\d+\)$")
_CLOSING = re.compile(r"^bp count:\s+\d+$")
_PROBLEM = re.compile(
    r"^(leaked space: vdev|block claim error|zdb_blkptr_cb: Got error|(BRT|DDT) leak: |"
    r"mismatch on |.*bytes leaked)"
)
_CANNOT_OPEN = "zdb: can't open "
_THE_POOLS = ("Input/output error", "Invalid exchange")
"""EIO and ECKSUM: reasons that are the pool's. Any other may be ours."""
_LEAKS, _ERRORS = 2, 3
_ROOM_OF_A_DEVICE = "VERIFY3U(vd->vdev_stat.vs_alloc, >=, -alloc_delta)"


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockCheck:
    """The findings of zdb: blocks leaked, used twice or unreadable, in its own lines.

    `gave_up`: one of its assertions failed. They are the kernel module's own, compiled into a
    program: over this pool the kernel may fail alike.

    `counts_what_is_missing`: zdb asserts that a device has the blocks in use that are being freed
    on it. For a missing device zdb counts nothing in use (`module/zfs/vdev.c`, `vdev_space_update`,
    from `metaslab_init`). It is an `ASSERT`, which no kernel module of a distribution has.
    """

    problems: tuple[str, ...] = ()
    gave_up: bool = False
    counts_what_is_missing: bool = False

    @property
    def is_sound(self) -> bool:
        """Whether it vouches for every block."""
        return not self.problems and not self.gave_up


def parse_zdb(output: ToolOutput) -> BlockCheck:
    """The findings of `zdb -b`; raises `UnreadableError` when the output does not show them."""
    code = exit_code_of(output)
    lines = lines_of(output)
    problems = tuple(line for line in lines if _PROBLEM.search(line) or _SUM_DIFFERS.match(line))
    if has_crashed(code):
        said = [line for line in lines if "ASSERT" in line or "VERIFY" in line or "failed" in line]
        return BlockCheck(
            problems=(*problems, *(said or lines)[-1:]),
            gave_up=True,
            counts_what_is_missing=any(line.startswith(_ROOM_OF_A_DEVICE) for line in lines),
        )
    refuse_codes_beyond(output, (0, 1, _LEAKS, _ERRORS))
    if code == 1:
        refusal = next((line for line in lines if line.startswith(_CANNOT_OPEN)), "")
        if not refusal.endswith(_THE_POOLS):
            raise unreadable(output, f"no known reason of the pool's: {lines[-1:]}")
        return BlockCheck(problems=(refusal,), gave_up=True)
    if not any(_HEADING.match(line) for line in lines):
        raise unreadable(output, "it did not look for leaks")
    vouches = _VOUCHES in lines
    if vouches == any(_SUM_DIFFERS.match(line) for line in lines):
        raise unreadable(output, "it does not print whether the sum of the blocks is right")
    if not any(_CLOSING.match(line) for line in lines):
        raise unreadable(output, "it lacks its count of blocks")
    if code in (_LEAKS, _ERRORS) and not problems:
        raise unreadable(output, "it fails, but shows no reason")
    return BlockCheck(problems=problems)
