"""The versions of one thing of a model filesystem, oldest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Entry = tuple[int, str]
HALF = "garbage"


@dataclass(eq=False)
class Version:
    """`pair`: of a name that was renamed away, the new name's entry and version."""

    value: Any
    pair: tuple[Entry, Version] | None = None
    slack_of: tuple[Version, ...] = ()
    is_settled: bool = False
    name: Version | None = None

    @property
    def slack(self) -> int:
        """By how much a number of links may be off: not at all once all the names are settled."""
        return 0 if all(name.is_settled for name in self.slack_of) else len(self.slack_of)


@dataclass
class Thing:
    versions: list[Version]

    def settle(self, version: Version) -> None:
        if version in self.versions:
            del self.versions[: self.versions.index(version)]

    @property
    def may_be_half_written(self) -> bool:
        """Whether a write is under way; what is zeroed is zeroed whole."""
        return any(version.value != "zero" for version in self.versions[1:])


def halves_in(trees: list[dict[str, Any]]) -> set[tuple[int, int]]:
    """The half sectors of all files: inode and place. A file may have several names."""
    found: set[tuple[int, int]] = set()
    waiting = list(trees)
    while waiting:
        seen = waiting.pop()
        waiting += seen.get("entries", {}).values()
        for first, count, holder in seen.get("runs", ()):
            if holder == HALF:
                found |= {(seen["inode"], place) for place in range(first, first + count)}
    return found
