"""Reading the log of nbdkit's log filter (nbdkit-log-filter(1)): what the disks were asked (pure).

A request is logged twice, at its submission (the line ends with dots) and at its completion (the
verb begins with dots), with an id that is unique within its connection. A line that was cut off by
the shelf's end is skipped: then the request it was for counts as in flight.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_LINE = re.compile(
    r"^(?P<time>\S+ \S+) connection=(?P<connection>\d+) (?P<verb>\.{0,3}[A-Z][a-z]+)"
    r"(?: id=(?P<id>\d+))?(?P<rest>.*)$"
)
_EXPORT = re.compile(r"export=(?:\"(?P<quoted>[^\"]*)\"|(?P<plain>\S+))")
_WRITES = frozenset({"Write", "Zero", "Trim"})


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskActivity:
    """What one disk was asked until the log's end.

    `unflushed` counts writes completed after the last flush that covers them was submitted,
    `in_flight` writes submitted and not completed, `disconnects` orderly goodbyes, `errors` requests
    that the shelf itself failed, for want of space, say.
    """

    writes: int = 0
    flushes: int = 0
    unflushed: int = 0
    in_flight: int = 0
    disconnects: int = 0
    errors: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ShelfActivity:
    """What the shelf was asked until its log's end, by disk."""

    disks: dict[str, DiskActivity]

    @property
    def flushes(self) -> int:
        """Flushes submitted, on all disks."""
        return sum(disk.flushes for disk in self.disks.values())

    @property
    def in_flight(self) -> int:
        """Writes submitted and not completed, on all disks."""
        return sum(disk.in_flight for disk in self.disks.values())

    @property
    def errors(self) -> int:
        """Requests that the shelf failed, on all disks."""
        return sum(disk.errors for disk in self.disks.values())


def has_unflushed_write(tail: str) -> bool:
    """Whether a log ends with a write that no completed flush follows. `tail` may begin mid-line."""
    for line in reversed(tail.splitlines()):
        match = _LINE.match(line)
        if match is None:
            continue
        if match["verb"] == "...Flush":
            return False
        if match["verb"].lstrip(".") in _WRITES:
            return True
    return False


def activity_of(log: str) -> ShelfActivity:
    """Count a log's requests by disk; unreadable lines are skipped."""
    export_of: dict[str, str] = {}
    pending: dict[tuple[str, str], str] = {}
    completed: Counter[str] = Counter()
    completed_at_submission: dict[tuple[str, str], int] = {}
    flushed: Counter[str] = Counter()
    seen: dict[str, Counter[str]] = {}
    for line in log[: log.rfind("\n") + 1].splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        connection, verb, request = match["connection"], match["verb"], match["id"] or ""
        if verb == "Connect" and (export := _EXPORT.search(match["rest"])):
            name = export["quoted"] or export["plain"] or ""
            export_of[connection] = name
            seen.setdefault(name, Counter())
            continue
        disk = export_of.get(connection)
        if disk is None:
            continue
        key = (connection, request)
        if verb == "Disconnect":
            seen[disk]["Disconnect"] += 1
        elif not verb.startswith("."):
            pending[key] = "FUA" if " fua=1" in match["rest"] else verb
            seen[disk][verb] += 1
            if verb == "Flush":
                completed_at_submission[key] = completed[disk]
        else:
            kind = pending.pop(key, "")
            seen[disk]["errors"] += " return=-1" in match["rest"]
            if verb[3:] in _WRITES and kind != "FUA":
                completed[disk] += 1
            elif verb[3:] == "Flush" and " return=0" in match["rest"]:
                flushed[disk] = max(flushed[disk], completed_at_submission.pop(key, 0))
    in_flight = Counter(
        export_of[connection]
        for (connection, _), verb in pending.items()
        if verb in _WRITES or verb == "FUA"
    )
    return ShelfActivity(
        disks={
            disk: DiskActivity(
                writes=sum(counts[verb] for verb in _WRITES),
                flushes=counts["Flush"],
                unflushed=completed[disk] - flushed[disk],
                in_flight=in_flight[disk],
                disconnects=counts["Disconnect"],
                errors=counts["errors"],
            )
            for disk, counts in seen.items()
        }
    )
