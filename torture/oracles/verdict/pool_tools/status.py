"""`zpool status`: JSON since OpenZFS 2.3, text before. Source: OpenZFS `cmd/zpool/zpool_main.c`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import exit_code_of, unreadable

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


def _read_json(output: ToolOutput) -> PoolStatus:
    """The status of one pool; raises `UnreadableError` when the output does not show it."""
    try:
        (pool,) = json.loads(output.stdout)["pools"].values()
        devices = tuple(_devices_in_json(pool))
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
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable(output, f"no status of one pool: {error!r}") from error


def _devices_in_json(pool: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
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


def _count(value: str | int) -> int:
    """A count as zpool prints it: whole below 1024, then `1.50K`, `2M`, ..."""
    text = str(value)
    scale: int = "KMGTPE".index(text[-1]) + 1 if text[-1:].isalpha() else 0
    number = text[:-1] if text[-1:].isalpha() else text
    return round(float(number) * float(1024**scale))


# `zpool status -p` as text: the form of versions without `-j`.
#
# Source: OpenZFS 2.1 `cmd/zpool/zpool_main.c`, `status_callback`, `print_status_config`,
# `print_scan_scrub_resilver_status`. Each section begins with its word and a colon. Its further
# lines begin with a tab. Below `config:` a device is a line, indented below its group. Logs and
# special devices stand below their own word. The last line counts the errors: with it the text
# is whole.

_SECTION = re.compile(r"^(?=.{6}:) *(pool|state|status|action|see|scan|config|errors):(?: (.*))?$")
"""The colons stand below each other."""
_ALWAYS = ("pool", "state", "config", "errors")
_TABLE = re.compile(r"^NAME +STATE +READ +WRITE +CKSUM$")
_CLASS = re.compile(r"^(dedup|special|logs)\t$")
_DEVICE = re.compile(r"^((?:  )*)(\S+) +([A-Z]+) +(\d+) +(\d+) +(\d+)(?:  .+)?$")
_STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "SPLIT")
_POOL_STATES = (*_STATES, "SUSPENDED")

_DATE = r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}"
_ENDED = re.compile(
    r"^(scrub repaired|resilvered) \S+ in (?:\d+ days )?\d\d:\d\d:\d\d with (\d+) errors"
    rf" on {_DATE}$"
)
_NOT_ENDED = re.compile(
    rf"^(?:scrub|resilver) (?:canceled on|paused since|in progress since) {_DATE}$"
)
_NEVER = "none requested"
_NO_ERRORS = "No known data errors"
_SOME_ERRORS = re.compile(r"^(\d+) data errors, use '-v' for a list$")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Device:
    """One device or group of the pool, the pool itself being the first."""

    name: str
    state: str
    errors: int
    """Errors of reading, writing and checksums."""
    is_group: bool
    """Whether it contains other devices; it repeats their errors."""


def _read_text(output: ToolOutput) -> PoolStatus:
    """The status of one pool; raises `UnreadableError` for a cut-off or unknown text."""
    sections = _sections(output)
    state = sections["state"][0]
    if state not in _POOL_STATES:
        raise unreadable(output, f"no state of a pool: {state!r}")
    devices = _devices_in_text(output, sections["config"])
    if devices[0].name != sections["pool"][0]:
        raise unreadable(output, f"the devices belong to another pool, {devices[0].name!r}")
    scan, scan_errors = _scan(output, sections.get("scan", [_NEVER])[0])
    return PoolStatus(
        state=state,
        data_errors=max(_data_errors(output, sections["errors"]), scan_errors),
        device_errors=sum(device.errors for device in devices if not device.is_group),
        unhealthy_devices=tuple(
            f"{device.name} {device.state}" for device in devices if device.state != HEALTHY
        ),
        scrubbed=scan == "scrub repaired",
    )


def _sections(output: ToolOutput) -> dict[str, list[str]]:
    """Each section's lines by its word; further lines lose their tab."""
    sections: dict[str, list[str]] = {}
    word = ""
    for line in output.stdout.split("\n"):
        found = _SECTION.match(line)
        if not line.replace("\t", "").isprintable():
            raise unreadable(output, f"no text: {line!r}")
        if found and found[1] not in sections:
            word = found[1]
            sections[word] = [found[2] or ""]
        elif line.startswith("\t") and word:
            sections[word].append(line.removeprefix("\t"))
        elif line:
            raise unreadable(output, f"no line of a status: {line!r}")
    if missing := [name for name in _ALWAYS if name not in sections]:
        raise unreadable(output, f"it lacks {', '.join(missing)}")
    if word != "errors":
        raise unreadable(output, "it does not end with its errors")
    return sections


def _devices_in_text(output: ToolOutput, config: Sequence[str]) -> tuple[_Device, ...]:
    title, *table = config
    if title or not table or not _TABLE.match(table[0]):
        raise unreadable(output, "no table of devices")
    rows = [_DEVICE.match(line) for line in table[1:] if not _CLASS.match(line)]
    devices: list[_Device] = []
    for row, below in zip(rows, [*rows[1:], None], strict=True):
        if row is None or row[3] not in _STATES:
            raise unreadable(output, "a line of its table is no device")
        devices.append(
            _Device(
                name=row[2],
                state=row[3],
                errors=sum(int(count) for count in row.group(4, 5, 6)),
                is_group=below is not None and len(below[1]) > len(row[1]),
            )
        )
    if len(devices) < 2:
        raise unreadable(output, "a pool without devices")
    return tuple(devices)


def _scan(output: ToolOutput, line: str) -> tuple[str, int]:
    """The scan that ended, if one did, and the errors that it met."""
    if ended := _ENDED.match(line):
        return ended[1], int(ended[2])
    if line == _NEVER or _NOT_ENDED.match(line):
        return "", 0
    raise unreadable(output, f"no scan that is known: {line!r}")


def _data_errors(output: ToolOutput, lines: Sequence[str]) -> int:
    if list(lines) == [_NO_ERRORS]:
        return 0
    found = _SOME_ERRORS.match(lines[0])
    if found is None or len(lines) > 1:
        raise unreadable(output, f"no count of errors: {lines[0]!r}")
    return int(found[1])


def parse_status(output: ToolOutput) -> PoolStatus:
    """The pool's status; raises `UnreadableError` when the output does not show it."""
    if exit_code_of(output) != 0:
        raise unreadable(output, "it failed")
    if "-j" in output.argv:
        return _read_json(output)
    if "-p" in output.argv:
        return _read_text(output)
    raise unreadable(output, "only the output of -j or -p can be read")
