"""`zpool status -p` as text: the form of versions without `-j`, read into the form of those with it.

Source: OpenZFS 2.1.11 to 2.4.4 `cmd/zpool/zpool_main.c`, `status_callback`. Each section begins with
its word and a colon, and its further lines with a tab: `print_scan_scrub_resilver_status`,
`print_rebuild_status_impl`, `print_err_scrub_status`, `print_removal_status`,
`print_checkpoint_status`, `print_raidz_expand_status`. Below `config:` a device is a line, indented
below its group (`print_status_config`). Other classes stand below their own word
(`print_class_vdevs`, `print_l2cache`, `print_spares`). The last line counts the errors: with it the
text is whole.

The names and words of the result are those of `status_callback_json` and its parts in 2.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.fsck import unreadable

_WORDS = "pool|state|status|action|see|scan|scrub|remove|expand|config|errors"
_SECTION = re.compile(rf"^(?=.{{6}}:) *({_WORDS}):(?: (.*))?$|^(checkpoint): (.*)$")
"""The colons stand below each other, but that of a checkpoint."""
_WARNING = re.compile(
    r"^    scan warning: (?:skipped|skipping) blocks that are only referenced by the checkpoint\.$"
)
_ALWAYS = ("pool", "state", "config", "errors")
_TABLE = re.compile(r"^NAME +STATE +READ +WRITE +CKSUM$")
_CLASSES = {
    "dedup\t": "dedup",
    "special\t": "special",
    "logs\t": "logs",
    "cache": "l2cache",
    "spares": "spares",
}
_DEVICE = re.compile(r"^((?:  )*)(\S+) +([A-Z]+) +(\d+) +(\d+) +(\d+)((?:  .+)?)$")
_SPARE = re.compile(r"^(  )(\S+) +([A-Z]+) *(?:  .+)?$")
_STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "SPLIT")
_POOL_STATES = (*_STATES, "SUSPENDED")
_GROUP = re.compile(r"^(mirror|raidz|draid|replacing|spare)[\d:a-z]*-\d+$")
_TRIMS = (
    (re.compile(r"\(untrimmed\)$"), "UNTRIMMED"),
    (re.compile(r"\(\d+% trimmed, started at .+\)$"), "ACTIVE"),
    (re.compile(r"\(\d+% trimmed, suspended, started at .+\)$"), "SUSPENDED"),
    (re.compile(r"\(\d+% trimmed, completed at .+\)$"), "COMPLETE"),
)
"""At the end of a device's line, with `-t` (`print_status_trim`)."""

_DATE = r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}"
_TOOK = r"(?:\d+ days )?\d\d:\d\d:\d\d"
_OF_VDEV = r"(?P<vdev> \(\S+\))?"
_ENDED = rf"\S+ in {_TOOK} with (?P<errors>\d+) errors on {_DATE}"
_SCANS = (
    (re.compile(rf"(?:thorough )?(?P<scrub>scrub) repaired {_ENDED}"), "FINISHED"),
    (re.compile(rf"resilvered{_OF_VDEV} {_ENDED}"), "FINISHED"),
    (
        re.compile(rf"(?:(?:thorough )?(?P<scrub>scrub)|resilver){_OF_VDEV} canceled on {_DATE}"),
        "CANCELED",
    ),
    (
        re.compile(
            rf"(?:(?:thorough )?(?P<scrub>scrub)|resilver){_OF_VDEV} (?:paused|in progress) since {_DATE}"
        ),
        "SCANNING",
    ),
)
_OF_REBUILD = {"FINISHED": "COMPLETE", "CANCELED": "CANCELED", "SCANNING": "ACTIVE"}
"""A sequential resilver has other words for its states, and the name of its vdev."""
_NEVER = "none requested"
_PARTS = {
    "remove": (
        "removal_stats",
        (
            (
                re.compile(rf"Removal of vdev \d+ copied \S+ in \d+h\d+m, completed on {_DATE}"),
                "FINISHED",
            ),
            (re.compile(rf"Removal of \S+ canceled on {_DATE}"), "CANCELED"),
            (re.compile(rf"Evacuation of \S+ in progress since {_DATE}"), "SCANNING"),
        ),
    ),
    "expand": (
        "raidz_expand_stats",
        (
            (re.compile(rf"expanded \S+ copied \S+ in {_TOOK}, on {_DATE}"), "FINISHED"),
            (re.compile(rf"expansion of \S+ in progress since {_DATE}"), "SCANNING"),
        ),
    ),
    "checkpoint": (
        "checkpoint_stats",
        (
            (re.compile(rf"created {_DATE}, consumes \S+"), "EXISTS"),
            (re.compile(r"discarding, \S+ remaining\."), "DISCARDING"),
        ),
    ),
}
"""The part of the status, and its states by the first line of its section."""
_NO_ERRORS = "No known data errors"
_SOME_ERRORS = re.compile(r"^(\d+) data errors, use '-v' for a list$")

Section = tuple[str, list[str]]
"""Its word, and its lines without their tab."""


def pool_in_text(output: ToolOutput) -> dict[str, Any]:
    """The one pool, as `zpool status -j` has it; raises `UnreadableError` for any other text."""
    every = list(_sections(output))
    sections = {word: lines for word, lines in every if word != "scan"}
    if len(sections) + sum(word == "scan" for word, _ in every) < len(every):
        raise unreadable(output, "a section stands there twice")
    if missing := [word for word in _ALWAYS if word not in sections]:
        raise unreadable(output, f"it lacks {', '.join(missing)}")
    if every[-1][0] != "errors":
        raise unreadable(output, "it does not end with its errors")
    state, name = sections["state"][0], sections["pool"][0]
    if state not in _POOL_STATES:
        raise unreadable(output, f"no state of a pool: {state!r}")
    devices = _devices(output, sections["config"])
    if [*devices["vdevs"]] != [name]:
        raise unreadable(output, f"the devices belong to another pool: {[*devices['vdevs']]}")
    scans = _scans(output, [lines[0] for word, lines in every if word == "scan"])
    return {
        "name": name,
        "state": state,
        "error_count": _errors(output, sections["errors"]),
        **({"scan_stats": scans} if scans else {}),
        **devices,
        **_parts(output, sections),
    }


def _sections(output: ToolOutput) -> Iterator[Section]:
    """The sections in their order."""
    lines: list[str] | None = None
    for line in output.stdout.split("\n"):
        if not line.replace("\t", "").isprintable():
            raise unreadable(output, f"no text: {line!r}")
        if found := _SECTION.match(line):
            lines = [found[2] or found[4] or ""]
            yield found[1] or found[3], lines
        elif line.startswith("\t") and lines is not None:
            lines.append(line.removeprefix("\t"))
        elif line and not _WARNING.match(line):
            raise unreadable(output, f"no line of a status: {line!r}")


def _devices(output: ToolOutput, config: Sequence[str]) -> dict[str, Any]:
    """The devices of each class, each below its group."""
    title, *table = config
    if title or not table or not _TABLE.match(table[0]):
        raise unreadable(output, "no table of devices")
    classes: dict[str, Any] = {"vdevs": {}}
    above: list[dict[str, Any]] = [classes["vdevs"]]
    """The groups above the next line, by their depth."""
    members: dict[str, Any]
    is_spare, count, least = False, 0, 0
    for line in table[1:]:
        if line in _CLASSES:
            is_spare, members = line == "spares", {}
            if classes.setdefault(_CLASSES[line], members) is not members:
                raise unreadable(output, f"twice: {line}")
            above, least = [{}, members], 1
            continue
        row = (_SPARE if is_spare else _DEVICE).match(line)
        depth = len(row[1]) // 2 if row else 0
        if row is None or not least <= depth < len(above) or row[2] in above[depth]:
            raise unreadable(output, "a line of its table is no device")
        device = _spare(row) if is_spare else _device(row)
        if not is_spare and device["state"] not in _STATES:
            raise unreadable(output, f"no state of a device: {device['state']!r}")
        above[depth][row[2]] = device
        above[depth + 1 :] = [device.setdefault("vdevs", {})]
        count += 1
    if count < 2:
        raise unreadable(output, "a pool without devices")
    return classes


def _device(row: re.Match[str]) -> dict[str, Any]:
    group = _GROUP.match(row[2])
    device = {
        "name": row[2],
        "vdev_type": group[1] if group else "disk" if row[1] else "root",
        "state": row[3],
        "read_errors": row[4],
        "write_errors": row[5],
        "checksum_errors": row[6],
    }
    trims = [state for pattern, state in _TRIMS if pattern.search(row[7])]
    return device | ({"trim_state": trims[0]} if trims else {})


def _spare(row: re.Match[str]) -> dict[str, Any]:
    return {"name": row[2], "vdev_type": "disk", "state": row[3]}


def _scans(output: ToolOutput, lines: Sequence[str]) -> dict[str, Any]:
    """The last scan, and sequential resilvers beside it."""
    stats: dict[str, Any] = {}
    rebuilds: dict[str, Any] = {}
    for line in lines:
        if line == _NEVER:
            continue
        found, state = _first_match(_SCANS, line)
        if found is None:
            raise unreadable(output, f"no scan that is known: {line!r}")
        errors = found.groupdict().get("errors") or "0"
        if vdev := found.groupdict().get("vdev"):
            rebuilds[vdev.strip(" ()")] = {"state": _OF_REBUILD[state], "errors": errors}
        elif stats:
            raise unreadable(output, f"another scan: {line!r}")
        else:
            function = "SCRUB" if found.groupdict().get("scrub") else "RESILVER"
            stats = {"function": function, "state": state, "errors": errors}
    return stats | ({"rebuild_stats": rebuilds} if rebuilds else {})


def _parts(output: ToolOutput, sections: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for word, (part, states) in _PARTS.items():
        if word in sections:
            line = sections[word][0]
            found, state = _first_match(states, line)
            if found is None:
                raise unreadable(output, f"no {word} that is known: {line!r}")
            parts[part] = {"state": state}
    return parts


def _first_match(
    patterns: Sequence[tuple[re.Pattern[str], str]], line: str
) -> tuple[re.Match[str] | None, str]:
    matches = ((pattern.fullmatch(line), state) for pattern, state in patterns)
    return next(((found, state) for found, state in matches if found), (None, ""))


def _errors(output: ToolOutput, lines: Sequence[str]) -> str:
    if list(lines) == [_NO_ERRORS]:
        return "0"
    found = _SOME_ERRORS.match(lines[0])
    if found is None or len(lines) > 1:
        raise unreadable(output, f"no count of errors: {lines[0]!r}")
    return found[1]
