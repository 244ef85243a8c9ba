"""The versions of one thing of a model filesystem, oldest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Entry = tuple[int, str]


@dataclass(eq=False)
class Version:
    """`pair`: of a name that was renamed away, the new name's entry and version."""

    value: Any
    pair: tuple[Entry, Version] | None = None
    slack_of: tuple[Version, ...] = ()
    is_settled: bool = False
    name: Version | None = None


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
