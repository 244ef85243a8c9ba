"""What the load does next: operations drawn from the seed, the same on every Python."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

OVERWRITE = "overwrite"
"""Random blocks in place, then fsync or fdatasync."""
DSYNC = "dsync"
"""Random blocks in place through a descriptor opened with O_DSYNC."""
APPEND = "append"
"""New blocks at the end, then fsync or fdatasync."""
REPLACE = "replace"
"""A new temporary file, fsync, rename over the old one, fsync of the directory."""
CREATE = "create"
"""A new file, fsync, fsync of the directory. On a bare device: the region's first content."""
UNLINK = "unlink"
"""The file's removal, fsync of the directory."""
SCRIBBLE = "scribble"
"""Random blocks in place and no fsync: promised only by a later fsync of the same file."""

KEEPSAKES_PER_WRITER = 400
"""How many keepsakes a writer makes at most, unless its job says otherwise."""
_KEEP = "keep"
"""Drawn like a kind, carried out as `create`: a small file of its own, never touched again.

The other files are soon written over, and with them every trace of what a cut took away. Keepsakes
stay: a loss before the cut is still seen after a client that lived has gone on writing.
"""
_KEEPSAKE_BLOCKS_MAX = 3

_MASK = (1 << 64) - 1
_FILE_WEIGHTS = (
    (_KEEP, 30),
    (OVERWRITE, 26),
    (DSYNC, 12),
    (SCRIBBLE, 12),
    (APPEND, 9),
    (REPLACE, 7),
    (UNLINK, 4),
)
_RAW_WEIGHTS = ((_KEEP, 30), (OVERWRITE, 35), (DSYNC, 18), (SCRIBBLE, 17))
_BLOCKS_AT_ONCE_MAX = 4


class Dice:
    """SplitMix64 (Steele, Lea, Flood 2014): small, fast to import, and never changes."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def roll(self) -> int:
        """A number of 64 bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return mixed ^ (mixed >> 31)

    def below(self, bound: int) -> int:
        """A number in `range(bound)`."""
        return self.roll() % bound


class Operation:
    """One step of a writer: what, on which file, which blocks, and how long the file is after."""

    __slots__ = ("blocks", "file", "kind", "size_blocks", "sync")

    def __init__(
        self, *, kind: str, file: int, blocks: tuple[int, ...], size_blocks: int, sync: str
    ) -> None:
        self.kind = kind
        self.file = file
        self.blocks = blocks
        self.size_blocks = size_blocks
        self.sync = sync


def _operation(
    kind: str, file: int, blocks: tuple[int, ...], size_blocks: int, sync: str
) -> Operation:
    return Operation(kind=kind, file=file, blocks=blocks, size_blocks=size_blocks, sync=sync)


def busy_files(job: dict[str, Any]) -> range:
    """The files that all writers of a job write over and over; the keepsakes' numbers follow."""
    return range(job["writers"] * job["files_per_writer"])


def keepsakes(job: dict[str, Any]) -> range:
    """The files of a job that are made once; each writer takes every `writers`-th."""
    first = busy_files(job).stop
    each = job.get("keepsakes_per_writer", KEEPSAKES_PER_WRITER)
    return range(first, first + job["writers"] * each)


class Planner:
    """Draws one writer's operations; keeps how long each of its files is (None: no such file)."""

    __slots__ = ("_blocks_max", "_dice", "_files", "_keepsakes", "_raw", "_sizes", "_weights")

    def __init__(self, job: dict[str, Any], writer: int) -> None:
        per_writer = job["files_per_writer"]
        self._dice = Dice(job["seed"] ^ (writer * 0xD1B54A32D192ED03))
        self._files = busy_files(job)[writer * per_writer : (writer + 1) * per_writer]
        self._keepsakes = iter(keepsakes(job)[writer :: job["writers"]])
        self._blocks_max = job["blocks_per_file_max"]
        self._raw = job["mode"] == "raw"
        self._weights = _RAW_WEIGHTS if self._raw else _FILE_WEIGHTS
        self._sizes: dict[int, int | None] = dict.fromkeys(self._files)

    def draw(self) -> Operation:
        """The next operation, taken as done: after a failure the writer must not draw again."""
        kind = self._kind()
        sync = ("fsync", "fdatasync")[self._dice.below(2)]
        if kind == _KEEP:
            keepsake = next(self._keepsakes, None)
            if keepsake is not None:
                size = 1 + self._dice.below(min(_KEEPSAKE_BLOCKS_MAX, self._blocks_max))
                return _operation(CREATE, keepsake, tuple(range(size)), size, sync)
            kind = OVERWRITE
        file = self._files[self._dice.below(len(self._files))]
        return self._on_busy_file(kind, file, sync)

    def _on_busy_file(self, kind: str, file: int, sync: str) -> Operation:
        size = self._sizes[file]
        if size is None:
            size = self._blocks_max if self._raw else self._new_size()
            return self._taken(CREATE, file, tuple(range(size)), size, sync)
        if kind == APPEND and size < self._blocks_max:
            more = 1 + self._dice.below(min(_BLOCKS_AT_ONCE_MAX, self._blocks_max - size))
            return self._taken(kind, file, tuple(range(size, size + more)), size + more, sync)
        if kind == REPLACE:
            size = self._new_size()
            return self._taken(kind, file, tuple(range(size)), size, sync)
        if kind == UNLINK:
            return self._taken(kind, file, (), None, sync)
        if kind == APPEND:  # the file is as long as it may be
            kind = OVERWRITE
        return self._taken(kind, file, self._places(size), size, sync)

    def _taken(
        self, kind: str, file: int, blocks: tuple[int, ...], size: int | None, sync: str
    ) -> Operation:
        self._sizes[file] = size
        return _operation(kind, file, blocks, size or 0, sync)

    def _kind(self) -> str:
        left = self._dice.below(sum(weight for _, weight in self._weights))
        for kind, weight in self._weights:
            left -= weight
            if left < 0:
                return kind
        raise AssertionError("the dice rolled more than the weights' sum")

    def _new_size(self) -> int:
        return 1 + self._dice.below(max(1, self._blocks_max // 2))

    def _places(self, size: int) -> tuple[int, ...]:
        count = 1 + self._dice.below(min(_BLOCKS_AT_ONCE_MAX, size))
        return tuple(sorted({self._dice.below(size) for _ in range(count)}))
