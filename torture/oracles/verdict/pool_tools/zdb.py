"""`zdb -b`: whether every allocated block is one that something refers to, and refers to once.

A scrub reads what can be reached from the uberblock; what was lost on the way, or is used twice, it
cannot know of. Source: OpenZFS 2.3 `cmd/zdb/zdb.c`, `dump_block_stats`, which marks each block of the
space maps that it comes by. What stays unmarked is leaked; what it cannot mark is allocated twice, or
free. The exit code alone says too little: leaked blocks leave it 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import (
    exit_code_of,
    has_crashed,
    lines_of,
    refuse_codes_beyond,
    unreadable,
)

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
    """What zdb found: blocks leaked, used twice or unreadable, in its own lines.

    `gave_up`: one of its assertions failed. They are the kernel module's own, compiled into a program:
    over such a pool the kernel may fail alike.

    `counts_what_is_missing`: the assertion is that a device has in use what is being freed on it. Of a
    device that is not there zdb counts nothing in use (`module/zfs/vdev.c`, `vdev_space_update`, from
    `metaslab_init`; an `ASSERT`, which no kernel module of a distribution has).
    """

    problems: tuple[str, ...] = ()
    gave_up: bool = False
    counts_what_is_missing: bool = False

    @property
    def is_sound(self) -> bool:
        """Whether it vouches for every block."""
        return not self.problems and not self.gave_up


def parse_zdb(output: ToolOutput) -> BlockCheck:
    """What `zdb -b` found; raises `UnreadableError` when that cannot be told."""
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
            raise unreadable(output, f"no reason that is the pool's: {lines[-1:]}")
        return BlockCheck(problems=(refusal,), gave_up=True)
    if not any(_HEADING.match(line) for line in lines):
        raise unreadable(output, "it did not look for leaks")
    vouches = _VOUCHES in lines
    if vouches == any(_SUM_DIFFERS.match(line) for line in lines):
        raise unreadable(output, "it does not say whether the blocks' sum is right")
    if not any(_CLOSING.match(line) for line in lines):
        raise unreadable(output, "it lacks its count of blocks")
    if code in (_LEAKS, _ERRORS) and not problems:
        raise unreadable(output, "it fails, but shows no reason")
    return BlockCheck(problems=problems)
