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
"""Random blocks in place and no fsync: durable only by a later fsync of the same file."""

KEEPSAKES_PER_WRITER = 400
"""How many keepsakes a writer makes at most, unless its job says otherwise."""
_KEEP = "keep"
"""Drawn like a kind, carried out as `create`: a small file of its own, the keepsake.

The busy files are soon written over, and with them every trace of what a cut took away. A keepsake
is made, scribbled on once, synced once, and never touched again: a loss is still seen after a
client that lived has gone on writing.
"""
_RETIRE = "retire"
"""Carried out as `overwrite`: a scribbled keepsake's first block, and the fsync that covers all."""
_KEEPSAKE_BLOCKS_MIN, _KEEPSAKE_BLOCKS_MAX = 2, 4
_KEEPSAKES_WAITING_MAX = 16

LOUD_OPERATIONS, QUIET_OPERATIONS = 16, 48
"""Writers sync (loud) and only scribble (quiet) by turns, all at the same time.

Each fsync flushes the whole disk, so writes stay volatile only while nobody syncs. An operation
without a sync takes about an eighth of the time: a third of the load is quiet.
"""

PUSH = "push"
"""A scribble's `sync`: the kernel is told to write the blocks out, without a flush."""
NONE = "none"

_MASK = (1 << 64) - 1
_FILE_WEIGHTS = (
    (_KEEP, 22),
    (_RETIRE, 18),
    (OVERWRITE, 20),
    (DSYNC, 10),
    (SCRIBBLE, 8),
    (APPEND, 8),
    (REPLACE, 8),
    (UNLINK, 6),
)
_RAW_WEIGHTS = ((_KEEP, 25), (_RETIRE, 20), (OVERWRITE, 30), (DSYNC, 15), (SCRIBBLE, 10))
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
    """One step of a writer: what, on which file, which blocks, and how long the file is after.

    `is_last`: its file is never touched again.
    """

    __slots__ = ("blocks", "file", "is_last", "kind", "size_blocks", "sync")

    def __init__(
        self,
        *,
        kind: str,
        file: int,
        blocks: tuple[int, ...],
        size_blocks: int,
        sync: str,
        is_last: bool = False,
    ) -> None:
        self.kind = kind
        self.file = file
        self.blocks = blocks
        self.size_blocks = size_blocks
        self.sync = sync
        self.is_last = is_last


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

    def __init__(self, job: dict[str, Any], writer: int) -> None:
        per_writer = job["files_per_writer"]
        self._dice = Dice(job["seed"] ^ (writer * 0xD1B54A32D192ED03))
        self._files = busy_files(job)[writer * per_writer : (writer + 1) * per_writer]
        self._keepsakes = iter(keepsakes(job)[writer :: job["writers"]])
        self._made: list[tuple[int, int]] = []
        self._scribbled: list[tuple[int, int]] = []
        self._blocks_max = job["blocks_per_file_max"]
        self._raw = job["mode"] == "raw"
        self._weights = _RAW_WEIGHTS if self._raw else _FILE_WEIGHTS
        self._sizes: dict[int, int | None] = dict.fromkeys(self._files)
        self._drawn = 0

    @property
    def is_new_phase(self) -> bool:
        """Whether the last drawn operation is the first of a loud or quiet phase."""
        return (self._drawn - 1) % (LOUD_OPERATIONS + QUIET_OPERATIONS) in (0, LOUD_OPERATIONS)

    def draw(self) -> Operation:
        """The next operation, taken as done: after a failure the writer must not draw again."""
        is_quiet = self._drawn % (LOUD_OPERATIONS + QUIET_OPERATIONS) >= LOUD_OPERATIONS
        self._drawn += 1
        kind = SCRIBBLE if is_quiet else self._kind()
        sync = ("fsync", "fdatasync")[self._dice.below(2)]
        if is_quiet and self._made:
            return self._scribble_on_keepsake()
        if kind == _RETIRE and self._scribbled:
            file, size = self._scribbled.pop(0)
            return Operation(
                kind=OVERWRITE, file=file, blocks=(0,), size_blocks=size, sync=sync, is_last=True
            )
        if kind in (_KEEP, _RETIRE):
            return self._keep(sync) or self._on_busy_file(OVERWRITE, sync)
        return self._on_busy_file(kind, sync, is_quiet=is_quiet)

    def _keep(self, sync: str) -> Operation | None:
        if len(self._made) + len(self._scribbled) >= _KEEPSAKES_WAITING_MAX:
            return None
        file = next(self._keepsakes, None)
        if file is None:
            return None
        spread = _KEEPSAKE_BLOCKS_MAX - _KEEPSAKE_BLOCKS_MIN + 1
        size = min(self._blocks_max, _KEEPSAKE_BLOCKS_MIN + self._dice.below(spread))
        self._made.append((file, size))
        return Operation(
            kind=CREATE, file=file, blocks=tuple(range(size)), size_blocks=size, sync=sync
        )

    def _scribble_on_keepsake(self) -> Operation:
        file, size = self._made.pop(0)
        self._scribbled.append((file, size))
        blocks = tuple(range(1, size)) or (0,)
        return Operation(kind=SCRIBBLE, file=file, blocks=blocks, size_blocks=size, sync=PUSH)

    def _on_busy_file(self, kind: str, sync: str, *, is_quiet: bool = False) -> Operation:
        file = self._files[self._dice.below(len(self._files))]
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
        if kind == SCRIBBLE:  # a loud one may also stay in the client's memory
            sync = PUSH if is_quiet else (PUSH, NONE)[self._dice.below(2)]
        return self._taken(kind, file, self._places(size), size, sync)

    def _taken(
        self, kind: str, file: int, blocks: tuple[int, ...], size: int | None, sync: str
    ) -> Operation:
        self._sizes[file] = size
        return Operation(kind=kind, file=file, blocks=blocks, size_blocks=size or 0, sync=sync)

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
