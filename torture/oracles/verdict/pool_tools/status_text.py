"""`zpool status -p` as text: the form of versions without `-j`.

Source: OpenZFS 2.1 `cmd/zpool/zpool_main.c`, `status_callback`, `print_status_config`,
`print_scan_scrub_resilver_status`. Each section begins with its word and a colon. Its further lines
begin with a tab. Below `config:` a device is a line, indented below its group. Logs and special
devices stand below their own word. The last line counts the errors: with it the text is whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import unreadable
from torture.oracles.verdict.pool_tools.status_json import HEALTHY, PoolStatus

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


def read_text(output: ToolOutput) -> PoolStatus:
    """The status of one pool; raises `UnreadableError` for a cut-off or unknown text."""
    sections = _sections(output)
    state = sections["state"][0]
    if state not in _POOL_STATES:
        raise unreadable(output, f"no state of a pool: {state!r}")
    devices = _devices(output, sections["config"])
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


def _devices(output: ToolOutput, config: Sequence[str]) -> tuple[_Device, ...]:
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
