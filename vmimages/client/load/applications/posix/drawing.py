"""Draws the next transaction from the present content of its writer's tree."""

from __future__ import annotations

from .. import LAZY_TRANSACTION, TRANSACTION, Transaction, TransactionPlanner
from .editing import EDITS, SECTORS_MAX, Edits, Entry, File

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

_FILES_MAX, _DIRECTORIES_MAX, _EMPTY_MAX, _DEPTH_MAX = 5, 4, 2, 3
_RETIRE_IN, _LAZY_IN, _SETTLE_IN, _REUSE_IN = 9, 3, 3, 2
_TARGETS = (12, 90)
"""A short symbolic link is kept in the inode; ext4 keeps a longer one in a block."""
_WEIGHTS = (
    ("create", 14), ("write", 8), ("direct", 5), ("dsync", 5), ("osync", 4), ("mmap", 6), ("sparse", 5),
    ("truncate", 9), ("punch", 6), ("zero", 5), ("xattr", 8), ("chmod", 5), ("utimens", 5),
    ("mkdir", 7), ("rmdir", 4), ("symlink", 5), ("link", 7), ("rename", 12), ("replace", 5),
    ("unlink", 7),
)  # fmt: skip
OPTIONAL = frozenset(
    {"mmap", "sparse", "punch", "zero", "xattr", "chmod", "utimens", "symlink", "link"}
)
"""Optional abilities of a filesystem: files over a network often lack some."""


class Drawing(TransactionPlanner):
    """One writer's tree, as it is once all drawn transactions are done."""

    def __init__(self, job: dict[str, Any], writer: int, supported: frozenset[str]) -> None:
        super().__init__(job, writer)
        self._writers: int = job["writers"]
        self._edits = Edits(self.dice)
        self._names_are_stable: bool = job.get("names_are_stable", False)
        self._made = 0
        self._weights = [
            (verb, weight) for verb, weight in _WEIGHTS if verb not in OPTIONAL - supported
        ]
        self._files: list[File] = []
        self._links: list[tuple[int, Entry]] = []
        self._directories: dict[int, Entry | None] = {writer: None}
        self._entries: dict[int, int] = {writer: 0}
        """How many names are in each directory."""
        self._kept_empty: set[int] = set()
        """Directories that stay empty: once all others are full, only these can be removed."""
        self._vacated: list[Entry] = []
        """Names that directories had. A filesystem's log has to keep them from a file of that name."""
        self._unsynced: list[list[object]] = []
        """The syncs that would settle earlier lazy transactions."""
        self._closing: list[int] = []
        """Files that are not written any more."""

    def draw(self) -> Transaction:
        """The next transaction."""
        if len(self._files) >= _FILES_MAX or (self._files and self._below(_RETIRE_IN) == 0):
            # its traces are never overwritten: a loss is visible long after
            self._closing.append(self._files.pop(self._below(len(self._files))).number)
        while True:
            verb = self._verb()
            if not self._files and verb not in _NEEDS_NO_FILE:
                continue
            if verb in EDITS:
                what = getattr(self._edits, verb)(self._file())
            else:
                what = getattr(self, f"_{verb}")()
            if what is not None:
                if self._closing:
                    what["closes"], self._closing = self._closing, []
                return self._said(what)

    def _said(self, what: dict[str, Any]) -> Transaction:
        if self._names_are_stable and what["do"] in NAMING:
            what["names_are_stable"] = True  # whatever other changes of it wait for a sync
        is_synced_itself = what.get("how") in ("dsync", "osync")
        if self._below(_LAZY_IN) or is_synced_itself:
            if self._unsynced and self._below(_SETTLE_IN) == 0:
                what["syncs"] = self._settling(what["syncs"] or [["fsync", what["whom"]]])
            return Transaction(kind=TRANSACTION, what=what)
        if what.get("how") == "mmap":
            what["how"] = "mmap-lazily"
            what["syncs"] = [["fsync", what["whom"]]]
        self._unsynced += [sync for sync in what["syncs"] if sync not in self._unsynced]
        what["syncs"] = what["syncs"][:-1] if self._below(3) == 0 else []
        is_durable = what["syncs"] or "names_are_stable" in what
        return Transaction(kind=TRANSACTION if is_durable else LAZY_TRANSACTION, what=what)

    def _settling(self, syncs: list[list[object]]) -> list[list[object]]:
        """These syncs, and those that make earlier lazy transactions durable.

        Never the latter alone, as it may have nothing left to do. The NAS is expected to store data
        between the start of an acknowledged transaction and its end. The order is: syncfs first.
        XFS's syncfs forces the log, which flushes no disk if there is nothing in it
        (`xfs_fs_sync_fs`); an fsync does. Over NFS syncfs is not called at all: Linux's client
        sends COMMITs for it and waits for none (fs/fs-writeback.c, `__writeback_single_inode`;
        fs/nfs/write.c, `nfs_io_completion_commit`).
        """
        sync: list[object] = self._unsynced.pop(self._below(len(self._unsynced)))
        is_there = self._is_there(sync[1])
        if self._names_are_stable:
            return [*syncs, sync] if is_there else syncs
        if self._below(3) == 0 or not is_there:
            self._unsynced.clear()
            return [["syncfs", self.writer], *syncs]
        return [*syncs, sync]

    def _is_there(self, whom: object) -> bool:
        """Whether it is there; files that are not written any more count, though closed."""
        return whom in self._directories or any(file.number == whom for file in self._files)

    def _below(self, bound: int) -> int:
        return self.dice.below(bound)

    def _verb(self) -> str:
        left = self._below(sum(weight for _, weight in self._weights))
        for verb, weight in self._weights:
            left -= weight
            if left < 0:
                return verb
        raise AssertionError("the dice rolled more than the weights' sum")

    def _number(self) -> int:
        self._made += 1
        return self.writer + self._made * self._writers

    def _file(self) -> File:
        return self._files[self._below(len(self._files))]

    def _directory(self) -> int:
        open_ones = [one for one in self._directories if one not in self._kept_empty]
        return open_ones[self._below(len(open_ones))]

    def _new_entry(self, number: int, letter: str) -> Entry:
        directory = self._directory()
        self._entries[directory] += 1
        return directory, f"{letter}{number}"

    def _vacated_entry(self) -> Entry | None:
        """The name that a directory had, for a file (fstests generic/784, 790); often None."""
        self._vacated = [at for at in self._vacated if at[0] in self._directories]
        if not self._vacated or self._below(_REUSE_IN):
            return None
        at = self._vacated.pop(self._below(len(self._vacated)))
        self._entries[at[0]] += 1
        return at

    def _depth(self, directory: int) -> int:
        above = self._directories[directory]
        return 0 if above is None else 1 + self._depth(above[0])

    def _create(self) -> dict[str, Any]:
        number = self._number()
        at = self._vacated_entry() or self._new_entry(number, "f")
        sectors = 1 + self._below(SECTORS_MAX // 2)
        self._files.append(File(number, at, sectors))
        return {
            "do": "create", "whom": number, "at": at, "runs": [[0, sectors]],
            "syncs": [["fsync", number], ["fsync", at[0]]],
        }  # fmt: skip

    def _mkdir(self) -> dict[str, Any] | None:
        is_kept_empty = len(self._directories) - len(self._kept_empty) > _DIRECTORIES_MAX
        if is_kept_empty and len(self._kept_empty) == _EMPTY_MAX:
            return None
        number = self._number()
        at = self._new_entry(number, "d")
        if self._depth(at[0]) >= _DEPTH_MAX:
            self._entries[at[0]] -= 1
            return None
        self._directories[number], self._entries[number] = at, 0
        if is_kept_empty:
            self._kept_empty.add(number)
        return {"do": "mkdir", "whom": number, "at": at, "syncs": [["fsync", at[0]]]}

    def _rmdir(self) -> dict[str, Any] | None:
        empty = [one for one, count in self._entries.items() if not count and one != self.writer]
        if not empty:
            return None
        number = empty[self._below(len(empty))]
        at = self._directories.pop(number)
        assert at is not None
        del self._entries[number]
        self._kept_empty.discard(number)
        self._entries[at[0]] -= 1
        self._vacated.append(at)
        return {"do": "rmdir", "whom": number, "at": at, "syncs": [["fsync", at[0]]]}

    def _symlink(self) -> dict[str, Any]:
        number = self._number()
        at = self._new_entry(number, "s")
        self._links.append((number, at))
        length = _TARGETS[self._below(len(_TARGETS))]
        target = f"to-{number}-".ljust(length, "x")
        return {
            "do": "symlink", "whom": number, "at": at, "target": target, "syncs": [["fsync", at[0]]],
        }  # fmt: skip

    def _link(self) -> dict[str, Any] | None:
        file = self._file()
        if len(file.names) > 2:
            return None
        at = self._new_entry(self._number(), "l")
        file.names.append(at)
        syncs: list[list[object]] = [["fsync", file.number], ["fsync", at[0]]]
        return {"do": "link", "whom": file.number, "at": at, "syncs": syncs}

    def _rename(self) -> dict[str, Any] | None:
        kinds = [kind for kind in ("file", "dir", "link") if getattr(self, f"_can_move_{kind}")()]
        kind = kinds[self._below(len(kinds))] if kinds else ""
        if kind == "file":
            file = self._file()
            place = self._below(len(file.names))
            was, number = file.names[place], file.number
            at = file.names[place] = self._new_entry(self._number(), "r")
        elif kind == "link":
            number, was = self._links.pop(self._below(len(self._links)))
            at = self._new_entry(self._number(), "s")
        elif kind == "dir":
            leaves = self._leaves()
            number = leaves[self._below(len(leaves))]
            old = self._directories.pop(number)
            assert old is not None
            was, at = old, self._new_entry(self._number(), "d")
            self._directories[number] = at
            self._vacated.append(was)
        else:
            return None
        self._entries[was[0]] -= 1
        return self._moved(number, was, at)

    def _leaves(self) -> list[int]:
        above = {at[0] for at in self._directories.values() if at is not None}
        return [one for one in self._directories if one not in above and one != self.writer]

    def _can_move_file(self) -> bool:
        return bool(self._files)

    def _can_move_link(self) -> bool:
        return bool(self._links)

    def _can_move_dir(self) -> bool:
        return bool(self._leaves())

    @staticmethod
    def _moved(number: int, was: Entry, at: Entry) -> dict[str, Any]:
        syncs = [["fsync", one] for one in dict.fromkeys((at[0], was[0]))]
        return {"do": "rename", "whom": number, "was": was, "at": at, "syncs": syncs}

    def _replace(self) -> dict[str, Any] | None:
        """Rename over another file: it removes that one name of one of the two."""
        if len(self._files) < 2:
            return None
        file, victim = self._file(), self._file()
        if file is victim:  # rename(2) does nothing where both are names of one file
            return None
        was = file.names.pop(self._below(len(file.names)))
        at = victim.names.pop(self._below(len(victim.names)))
        file.names.append(at)
        if not victim.names:
            self._files.remove(victim)
        self._entries[was[0]] -= 1
        what = self._moved(file.number, was, at) | {"instead_of": victim.number}
        if victim.names:
            what["syncs"].append(["fsync", victim.number])
        return what

    def _unlink(self) -> dict[str, Any]:
        file = self._file()
        at = file.names.pop(self._below(len(file.names)))
        self._entries[at[0]] -= 1
        syncs: list[list[object]] = [["fsync", at[0]]]
        if file.names:
            syncs.append(["fsync", file.number])
        else:
            self._files.remove(file)
        return {"do": "unlink", "whom": file.number, "at": at, "syncs": syncs}


NAMING = frozenset({"create", "mkdir", "rmdir", "symlink", "link", "rename", "unlink"})
_NEEDS_NO_FILE = frozenset({"create", "mkdir", "rmdir", "symlink", "rename"})
