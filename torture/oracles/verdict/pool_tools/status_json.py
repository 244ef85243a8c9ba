"""`zpool status -j`, and a pool's state for both forms. Source: OpenZFS 2.3 `cmd/zpool/zpool_main.c`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import unreadable

HEALTHY = "ONLINE"


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


def read_json(output: ToolOutput) -> PoolStatus:
    """The status of one pool; raises `UnreadableError` when the output does not show it."""
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
                if device["state"] != HEALTHY
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
    if device.get("vdevs"):  # a group repeats the errors of its devices
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
