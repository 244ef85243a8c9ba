"""The things that each sync of a filesystem makes durable: the weakest documented promise.

The load is `vmimages/client/load/applications/posix`. Its changes are divided into things that a
crash leaves old or new, each on its own. A thing is a name in a directory, a sector, or a file's
size, mode, modification time, number of links or attribute. A sync's return makes some of them
durable, if they were changed before its call:

- **fsync of a file**: its content, its size and all else in the inode, extended attributes too.
  fsync(2): "all modified in-core data", and "the metadata information associated with the file (see
  inode(7))". fstests demand this of Linux's filesystems after a loss of power: punched holes
  (generic/059), removed attributes (generic/066), lengths (generic/534).
- **fdatasync**: content, and the size, which reading needs. fdatasync(2): "a change to the file
  size (st_size, as made by say ftruncate(2)), would require a metadata flush"; a change of times
  does not.
- **O_DSYNC, O_SYNC, msync with MS_SYNC**: the data of that very call, and the size that it made.
  open(2): "as though each write(2) was followed by a call to fdatasync(2)". Linux syncs the range
  only (`generic_write_sync`; `mm/msync.c`), so earlier writes may be missing. O_DIRECT by itself
  makes nothing durable: an fdatasync follows it.
- **fsync of a directory**: its names, and symbolic links with their targets (generic/348, 690).
  fsync(2): "Calling fsync() does not necessarily ensure that the entry in the directory containing
  the file has also reached disk. For that an explicit fsync() on a file descriptor for the
  directory is also needed." So no file's sync makes its name durable. Nor does a directory's sync
  make its own name durable. ext4, xfs and btrfs promise more than that.
- **syncfs**: everything. syncfs(2), sync(2). Over NFS it is not, and is not called
  (`posix/drawing.py`).
- **Names over NFS**: durable with the call that makes, moves or removes them, without a sync. A
  server may not answer CREATE, REMOVE, RENAME and their kin before their effect is stable. RFC
  1813, section 1.1: "modified data to stable storage before returning"; Linux fs/nfsd/vfs.c,
  `commit_metadata`. OpenZFS lacked that once (issue 969: a file was gone whose CREATE had been
  answered). The ledger says where this rule holds. The content of a new file still waits for the
  file's sync. An exclusively created file has no mode at first, and a SETATTR sets it. RFC 1813,
  section 3.3.8, EXCLUSIVE; Linux fs/nfs/nfs3proc.c, `nfs3_proc_create`.
- **The number of links** belongs to the inode and to a name. It is durable once the file and the
  name's directory were both synced (generic/065).

The oracle expects no order among things that are not durable yet, although all three filesystems
keep one. But it expects a renamed thing under its old name, its new name, or both, whenever the
crash comes. rename(2) has "a window in which both oldpath and newpath refer to the file being
renamed". It has none in which neither does. "Broken rename atomicity", with files in neither place,
was taken for a bug and mended. Mohan et al., "Finding Crash-Consistency Bugs with Bounded Black-Box
Crash Testing", OSDI '18. Nor is a name that is renamed over ever gone. rename(2): "there is no
point at which another process attempting to access newpath will find it missing".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from torture.facts.evidence.documents import strictly
from torture.oracles.verdict.blocks.history import GARBAGE
from torture.oracles.verdict.guarantee import read_whole


class Thing(StrEnum):
    """A thing that is old or new on its own. All are of a file, but a name is of its directory."""

    NAME = "name"
    SIZE = "size"
    SECTOR = "sector"
    MODE = "mode"
    MTIME = "mtime"
    XATTR = "xattr"
    LINKS = "links"


Key = tuple[Thing, int, int | str]
"""The kind, its owner by number, and the name, sector or attribute; 0 if the owner has only one."""

_OF_FSYNC = frozenset(Thing)
_OF_FDATASYNC = frozenset({Thing.SIZE, Thing.SECTOR})
_SYNCS_ITSELF = frozenset({"dsync", "osync", "mmap"})


def names_are_stable(what: dict[str, Any]) -> bool:
    """Whether a transaction's names are durable when their calls return."""
    return what.get("names_are_stable", False) is True


def is_durable_by_itself(key: Key, what: dict[str, Any]) -> bool:
    """Whether the call that makes a change of this thing is durable when it returns."""
    if key[0] is Thing.NAME or (key[0] is Thing.MODE and what["do"] == "create"):
        return names_are_stable(what)
    return key[0] in _OF_FDATASYNC and what["do"] == "write" and what["how"] in _SYNCS_ITSELF


def is_covered(key: Key, call: str, whom: int) -> bool:
    """Whether this sync makes a change of this thing durable."""
    thing, of, _ = key
    match call:
        case "syncfs":
            return True
        case "fsync":
            return of == whom and thing in _OF_FSYNC
        case "fdatasync":
            return of == whom and thing in _OF_FDATASYNC
        case _:
            return False


def sectors_of(what: dict[str, Any]) -> Iterator[int]:
    """The sectors that a transaction writes or zeroes."""
    for first, count in what.get("runs", [what["run"]] if "run" in what else []):
        yield from range(first, first + count)


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
