"""`zpool status`: JSON since OpenZFS 2.3, text before. Source: OpenZFS `cmd/zpool/zpool_main.c`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torture.facts.evidence.folder import ToolOutput
from torture.facts.evidence.strict_json import strict_json
from torture.oracles.verdict.fsck import exit_code_of, unreadable
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
