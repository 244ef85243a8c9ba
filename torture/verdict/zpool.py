"""`zpool import`, `zpool scrub -w` (text), `zpool status -j` (JSON): the pool is back, and whole.

Sources: OpenZFS 2.3 `cmd/zpool/zpool_main.c` and `lib/libzfs/libzfs_pool.c`. A successful import
prints nothing (with -F: `Pool ... returned to its state as of ...`), so its proof is the exit code.
`scrub -w` prints nothing and returns 0 when the scrub ends, cancelled or not; the status says which.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torture.evidence.folder import ToolOutput
from torture.verdict.fsck import (
    exit_code_of,
    first_whole_line,
    has_crashed,
    lines_of,
    refuse_codes_beyond,
    unreadable,
)

_CANNOT = "cannot import '"
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
"""Reasons that are the pool's. Others are ours: `no such pool available` among them, because a cut
does not wipe all four labels of a disk, so its disks were not there."""
_NO_POOL = ("no such pool available", "no such pool or dataset")
_REWOUND = "returned to its state as of"
_HEALTHY = "ONLINE"


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportResult:
    """One attempt. `reason` is what it printed when refused, or what it gave up when it rewound."""

    imported: bool
    reason: str = ""


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


def parse_import(output: ToolOutput) -> ImportResult:
    """Whether an import succeeded; raises `UnreadableError` when that cannot be told."""
    code = exit_code_of(output)
    lines = lines_of(output)
    if has_crashed(code):
        return ImportResult(imported=False, reason=f"zpool itself gave up: {' '.join(lines[-1:])}")
    if code == 0:
        if any(_CANNOT in line for line in lines):
            raise unreadable(output, "it succeeded, yet says that it cannot import")
        rewound = (line for line in lines if _REWOUND in line or "Discarded" in line)
        return ImportResult(imported=True, reason="; ".join(rewound))
    refuse_codes_beyond(output, (1,))
    refusal = first_whole_line(output.stderr, _CANNOT)
    reason = refusal.split("': ", 1)[-1] if refusal else ""
    if not reason.startswith(REASONS_OF_POOLS):
        raise unreadable(output, f"no reason that is the pool's: {lines[:1]}")
    return ImportResult(imported=False, reason=reason)


def finds_no_pool(output: ToolOutput) -> bool:
    """Whether an import says that there is no pool; after a refusal of the pool's own that is one too."""
    said = output.stderr + output.stdout
    return output.exit_code == 1 and any(words in said for words in _NO_POOL)


def refuse_unfinished_scrub(output: ToolOutput) -> None:
    """Raise `UnreadableError` unless `zpool scrub -w` ended without a word."""
    printed = lines_of(output)
    if exit_code_of(output) != 0 or printed:
        raise unreadable(output, f"the pool was not scrubbed to its end: {printed[:1]}")


def parse_status(output: ToolOutput) -> PoolStatus:
    """The pool's status from `zpool status -j`; raises `UnreadableError` when it cannot be told."""
    if exit_code_of(output) != 0:
        raise unreadable(output, "it failed")
    if "-j" not in output.argv:
        raise unreadable(output, "only what -j prints is read")
    try:
        (pool,) = json.loads(output.stdout)["pools"].values()
        devices = tuple(_devices(pool))
        return PoolStatus(
            state=str(pool["state"]),
            data_errors=max(_count(pool["error_count"]), _scan_errors(pool)),
            device_errors=sum(_device_errors(device) for _, device in devices),
            unhealthy_devices=tuple(
                f"{name} {device['state']}"
                for name, device in devices
                if device["state"] != _HEALTHY
            ),
            scrubbed=_is_scrubbed(pool.get("scan_stats", {})),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable(output, f"no status of one pool: {error!r}") from error


def _devices(pool: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every device and group of the pool, by name; `logs` stand beside `vdevs`."""
    waiting = [pool["vdevs"], pool.get("logs", {}), pool.get("special", {})]
    while waiting:
        for name, device in waiting.pop().items():
            yield name, device
            waiting.append(device.get("vdevs", {}))


def _device_errors(device: dict[str, Any]) -> int:
    if device.get("vdevs"):  # a group repeats the errors of what is in it
        return 0
    kinds = ("read_errors", "write_errors", "checksum_errors")
    return sum(_count(device[kind]) for kind in kinds if kind in device)


def _is_scrubbed(scan: dict[str, Any]) -> bool:
    return scan.get("function") == "SCRUB" and scan.get("state") == "FINISHED"


def _scan_errors(pool: dict[str, Any]) -> int:
    return _count(pool.get("scan_stats", {}).get("errors", "0"))


def _count(value: str | int) -> int:
    """A count as zpool prints it: whole below 1024, then `1.50K`, `2M`, ..."""
    text = str(value)
    scale: int = "KMGTPE".index(text[-1]) + 1 if text[-1:].isalpha() else 0
    number = text[:-1] if text[-1:].isalpha() else text
    return round(float(number) * float(1024**scale))
