"""The reports of ZFS's own tools on a pool; here `zpool status`: JSON since OpenZFS 2.3, text before."""

from __future__ import annotations

from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import exit_code_of, unreadable
from torture.oracles.verdict.pool_tools.status_json import PoolStatus, read_json
from torture.oracles.verdict.pool_tools.status_text import read_text

__all__ = ["PoolStatus", "parse_status"]


def parse_status(output: ToolOutput) -> PoolStatus:
    """The pool's status; raises `UnreadableError` when the output does not show it."""
    if exit_code_of(output) != 0:
        raise unreadable(output, "it failed")
    if "-j" in output.argv:
        return read_json(output)
    if "-p" in output.argv:
        return read_text(output)
    raise unreadable(output, "only the output of -j or -p can be read")
