"""Answers of ZFS's tools with `-j`, printed as versions without it print them.

As OpenZFS 2.1.11 has it in `cmd/zpool/zpool_main.c` (`status_callback`) and `cmd/zfs/zfs_main.c`
(`print_dataset`): a slow second writing of the format, apart from its reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torture.facts.evidence.folder import ToolOutput

DATE = "Sun Nov 22 10:10:10 2026"
_SCANS = {
    ("SCRUB", "FINISHED"): f"scrub repaired 0B in 00:00:01 with {{errors}} errors on {DATE}",
    ("SCRUB", "SCANNING"): f"scrub in progress since {DATE}\n\t1M scanned at 1M/s, 1M total",
    ("SCRUB", "CANCELED"): f"scrub canceled on {DATE}",
    ("RESILVER", "FINISHED"): f"resilvered 1M in 00:00:01 with {{errors}} errors on {DATE}",
    ("RESILVER", "SCANNING"): f"resilver in progress since {DATE}\n\t1M resilvered, 0.3% done",
}
_REBUILDS = {
    "ACTIVE": f"resilver ({{vdev}}) in progress since {DATE}\n\t1M resilvered, 0.3% done",
    "COMPLETE": f"resilvered ({{vdev}}) 1M in 00:00:01 with {{errors}} errors on {DATE}",
}
_PARTS = {
    (
        "removal_stats",
        "SCANNING",
    ): f"remove: Evacuation of spare0 in progress since {DATE}\n\t1M copied",
    (
        "removal_stats",
        "FINISHED",
    ): f"remove: Removal of vdev 1 copied 1M in 0h0m, completed on {DATE}"
    "\n\t936 memory used for removed device mappings",
    ("removal_stats", "CANCELED"): f"remove: Removal of spare0 canceled on {DATE}",
    ("checkpoint_stats", "EXISTS"): f"checkpoint: created {DATE}, consumes 81.5K",
    ("checkpoint_stats", "DISCARDING"): "checkpoint: discarding, 81.5K remaining.",
    (
        "raidz_expand_stats",
        "SCANNING",
    ): f"expand: expansion of raidz1-0-0 in progress since {DATE}\n\t1M",
    (
        "raidz_expand_stats",
        "FINISHED",
    ): f"expand: expanded raidz1-0-0 copied 1M in 00:00:01, on {DATE}",
}
_TRIMS = {
    "UNTRIMMED": "  (untrimmed)",
    "NONE": "  (untrimmed)",
    "ACTIVE": f"  (41% trimmed, started at {DATE})",
    "SUSPENDED": f"  (41% trimmed, suspended, started at {DATE})",
    "COMPLETE": f"  (100% trimmed, completed at {DATE})",
}
_CLASSES = {"dedup": "dedup\t", "special": "special\t", "logs": "logs\t", "l2cache": "cache"}


def in_text(output: ToolOutput) -> ToolOutput:
    """The same answer in text, and the question that gets it; programs other than ZFS's stay."""
    if "-j" not in output.argv:
        return output
    document = json.loads(output.stdout)
    match output.argv[:2]:
        case ("zpool", "status"):
            (pool,) = document["pools"].values()
            return _as("-p", output, status_in_text(pool, has_trim="-t" in output.argv))
        case ("zfs", "list"):
            rows = [
                [name, *(held["value"] for held in of["properties"].values())]
                for name, of in document["datasets"].items()
            ]
        case _:
            ((name, pool),) = document["pools"].items()
            rows = [[name, key, held["value"], "-"] for key, held in pool["properties"].items()]
    return _as("-H", output, "".join("\t".join(row) + "\n" for row in rows))


def _as(flag: str, output: ToolOutput, stdout: str) -> ToolOutput:
    argv = tuple(flag if word == "-j" else word for word in output.argv)
    return replace(output, argv=argv, stdout=stdout)


def status_in_text(pool: dict[str, Any], *, has_trim: bool = False) -> str:
    """`zpool status -p` of a pool in `zpool status -j`."""
    lines = [f"  pool: {pool['name']}", f" state: {pool['state']}"]
    scan = pool.get("scan_stats", {})
    if (kind := (scan.get("function"), scan.get("state"))) in _SCANS:
        lines.append(f"  scan: {_SCANS[kind]}".format(errors=scan["errors"]))
    for vdev, one in scan.get("rebuild_stats", {}).items():
        lines.append(f"  scan: {_REBUILDS[one['state']]}".format(vdev=vdev, errors=one["errors"]))
    for part in ("removal_stats", "checkpoint_stats", "raidz_expand_stats"):
        if line := _PARTS.get((part, pool.get(part, {}).get("state"))):
            lines.append(line)
    lines += ["config:", "", "\tNAME            STATE     READ WRITE CKSUM"]
    lines += _rows(pool["vdevs"], depth=0, has_trim=has_trim)
    for kind_of_vdev, heading in _CLASSES.items():
        if vdevs := pool.get(kind_of_vdev):
            lines += [f"\t{heading}", *_rows(vdevs, depth=1, has_trim=has_trim)]
    errors = int(pool["error_count"])
    said = f"{errors} data errors, use '-v' for a list" if errors else "No known data errors"
    return "\n".join([*lines, "", f"errors: {said}", ""])


def _rows(vdevs: dict[str, Any], *, depth: int, has_trim: bool) -> Iterator[str]:
    for name, vdev in vdevs.items():
        counts = [vdev.get(f"{kind}_errors", "0") for kind in ("read", "write", "checksum")]
        below = vdev.get("vdevs", {})
        trim = _TRIMS[vdev["trim_state"]] if has_trim and not below else ""
        yield (
            f"\t{'  ' * depth}{name:14}  {vdev['state']:8} "
            + " ".join(f"{count:>5}" for count in counts)
            + trim
        )
        yield from _rows(below, depth=depth + 1, has_trim=has_trim)
