"""`zdb -b`: whether every allocated block has a reference, and only one.

A scrub reads every block that the uberblock reaches. It cannot know of a lost block, or of one that
is used twice. Source: OpenZFS 2.3 `cmd/zdb/zdb.c`, `dump_block_stats`. It marks each block of the
space maps that it meets. A block that stays unmarked is leaked. A block that it cannot mark is
allocated twice, or free. The exit code alone says too little: leaked blocks leave it 0.
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
