"""What each sync of a filesystem makes durable: the weakest of what is documented.

The load is `vmimages/client/load/applications/posix`. What is changed is parted into things that a crash
leaves old or new, each on its own: a name in a directory, a file's size, mode, modification time,
number of links, each attribute, each sector. A sync's return makes some of them durable, which had
been changed before it was called:

- **fsync of a file**: its content, its size and all else that the inode has, extended attributes too.
  fsync(2): "all modified in-core data", and "the metadata information associated with the file (see
  inode(7))". fstests hold Linux's filesystems to it after a loss of power: punched holes (generic/059),
  attributes that were removed (generic/066), lengths (generic/534).
- **fdatasync**: content, and what reading it needs: the size. fdatasync(2): "a change to the file size
  (st_size, as made by say ftruncate(2)), would require a metadata flush"; a change of times does not.
- **O_DSYNC, O_SYNC, msync with MS_SYNC**: what was written by that very call, and the size that it made.
  open(2): "as though each write(2) was followed by a call to fdatasync(2)". Linux syncs the range only
  (`generic_write_sync`; `mm/msync.c`), so nothing is expected of what was written before. O_DIRECT by
  itself makes nothing durable: an fdatasync follows it.
- **fsync of a directory**: the names in it, and symbolic links with their targets (generic/348, 690).
  fsync(2): "Calling fsync() does not necessarily ensure that the entry in the directory containing the
  file has also reached disk. For that an explicit fsync() on a file descriptor for the directory is
  also needed." So no file's sync makes its name durable, nor a directory's sync its own name, although
  ext4, xfs and btrfs go further than that.
- **syncfs**: everything. syncfs(2), sync(2). Over NFS it is not, and is not called (`posix/drawing.py`).
- **Names over NFS**: with the call that makes, moves or removes them, and nobody has to ask. CREATE,
  REMOVE, RENAME and their kin may not be answered before what they did is stable (RFC 1813, section 1.1:
  "modified data to stable storage before returning"; Linux fs/nfsd/vfs.c, `commit_metadata`). OpenZFS
  lacked that once (issue 969: a file was gone whose CREATE had been answered). The ledger says where it
  is so; what is written into a new file still waits for the file's sync. A file that has to be new comes
  without a mode there, and a SETATTR sets it (RFC 1813, section 3.3.8, EXCLUSIVE; Linux
  fs/nfs/nfs3proc.c, `nfs3_proc_create`).
- **The number of links** is the inode's, and of a name: durable once the file and the name's directory
  were both synced (generic/065).

No order is expected among what is not durable yet, although all three filesystems keep one. But one
thing is: what is renamed is found by its old name or by its new one, or by both, whenever the crash
comes. rename(2) has "a window in which both oldpath and newpath refer to the file being renamed" and none
in which neither does; and "broken rename atomicity", files in neither place, was taken for a bug and
mended (Mohan et al., "Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing", OSDI
'18). Nor is a name that is renamed over ever gone: rename(2), "there is no point at which another
process attempting to access newpath will find it missing".
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any


class Thing(StrEnum):
    """What is old or new on its own. All are of one file, but a name, which is of its directory."""

    NAME = "name"
    SIZE = "size"
    SECTOR = "sector"
    MODE = "mode"
    MTIME = "mtime"
    XATTR = "xattr"
    LINKS = "links"


Key = tuple[Thing, int, int | str]
"""Of whom it is, by number, and which: a name, a sector, an attribute; 0 where there is but one."""

_OF_FSYNC = frozenset(Thing)
_OF_FDATASYNC = frozenset({Thing.SIZE, Thing.SECTOR})
_SYNCS_ITSELF = frozenset({"dsync", "osync", "mmap"})


def names_are_stable(what: dict[str, Any]) -> bool:
    """Whether a transaction's names are durable when their calls return."""
    return what.get("names_are_stable", False) is True


def is_durable_by_itself(key: Key, what: dict[str, Any]) -> bool:
    """Whether the call that makes such a change is durable when it returns."""
    if key[0] is Thing.NAME or (key[0] is Thing.MODE and what["do"] == "create"):
        return names_are_stable(what)
    return key[0] in _OF_FDATASYNC and what["do"] == "write" and what["how"] in _SYNCS_ITSELF


def is_covered(key: Key, call: str, whom: int) -> bool:
    """Whether this sync makes such a change durable."""
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
    """The sectors that a transaction writes or has zeroed."""
    for first, count in what.get("runs", [what["run"]] if "run" in what else []):
        yield from range(first, first + count)
