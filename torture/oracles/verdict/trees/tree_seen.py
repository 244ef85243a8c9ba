"""The writers' trees as `vmimages/client/load/applications/posix/looking.py` found them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torture.facts.evidence.documents import strictly
from torture.oracles.verdict.blocks.readback import GARBAGE
from torture.oracles.verdict.verdicts import read_whole

Holder = int | str
"""The writer of a sector, by operation; or `zero`, or another content."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundFile:
    """A file; `runs` are [first sector, count, holder] of all whole sectors."""

    inode: int
    links: int
    mode: int
    mtime_ns: int
    size_bytes: int
    xattrs: Mapping[str, str]
    runs: tuple[tuple[int, int, Holder], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundDirectory:
    """A directory and its entries, by name."""

    entries: Mapping[str, FoundEntry]


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundLink:
    """A symbolic link."""

    target: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Unusable:
    """A thing that is unreadable, or of a kind that was never made; `why` in words."""

    why: str


FoundEntry = FoundFile | FoundDirectory | FoundLink | Unusable


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundTrees:
    """One tree of each writer, in their order."""

    trial: int
    mode: str
    trees: tuple[FoundEntry, ...]

    @property
    def garbage(self) -> int:
        """The number of sectors of no single write in all files; a file may have several names."""
        return len({sector for tree in self.trees for sector in _garbage_in(tree)})


def parse_trees(text: str) -> FoundTrees:
    """A read-back; raises `UnreadableError` for a cut-off or garbled one."""

    def read(raw: dict[str, Any]) -> FoundTrees:
        trees = tuple(map(_entry, raw["trees"]))
        return FoundTrees(trial=int(raw["trial"]), mode=str(raw["mode"]), trees=trees)

    return read_whole(text, read)


def _entry(raw: dict[str, Any]) -> FoundEntry:
    if "errno" in raw:
        return Unusable(why=f"errno {int(raw['errno'])}")
    match raw["type"]:
        case "dir":
            entries = raw["entries"].items()
            return FoundDirectory(entries={str(name): _entry(entry) for name, entry in entries})
        case "symlink":
            return FoundLink(target=str(raw["target"]))
        case "file":
            return strictly(FoundFile, {"size_bytes": raw["size"]} | raw)
        case other:
            return Unusable(why=f"of type {str(other)!r}, mode {int(raw['mode']):o}")


def _garbage_in(entry: FoundEntry) -> Iterator[tuple[int, int]]:
    """The inode and place of each."""
    match entry:
        case FoundDirectory(entries=entries):
            for below in entries.values():
                yield from _garbage_in(below)
        case FoundFile(inode=inode, runs=runs):
            for first, count, holder in runs:
                if holder == GARBAGE:
                    yield from ((inode, place) for place in range(first, first + count))
        case _:
            pass
