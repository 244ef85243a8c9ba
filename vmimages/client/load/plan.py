"""The load's next operations, drawn from the seed, the same on every Python."""

from __future__ import annotations

from .blocks import SECTORS

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
"""The most keepsakes that a writer makes, unless its job sets another number."""
_KEEP = "keep"
"""Drawn like a kind, carried out as `create`: a small file of its own, the keepsake.

The busy files are soon overwritten, and with them every trace of a loss. A keepsake is made,
scribbled on once, synced once, and never touched again; its last block is not even scribbled on. So
a loss is still visible after a client that lived has gone on writing.
"""
_RETIRE = "retire"
"""Carried out as `overwrite`: a scribbled keepsake's first block, and the fsync that covers all."""
_KEEPSAKE_BLOCKS_MIN, _KEEPSAKE_BLOCKS_MAX = 3, 5
_ROW_BLOCKS_MAX = 3
"""A table is a keepsake too, as long as a file may be and made in one write. A transaction fills
rows of it, a few blocks each. Each row is written once more, and never again."""
_BUSY_BLOCKS_MAX = 6
_KEEPSAKES_WAITING_MAX = 16

LOUD_OPERATIONS, QUIET_OPERATIONS, PATIENT_OPERATIONS = 10, 16, 16
"""Writers sync (loud), only scribble (quiet), and sync late (patient) by turns, all at the same
time.

Each fsync flushes the whole disk, so writes stay volatile only while no writer syncs. An operation
without a sync takes about an eighth of the time.
"""
TRANSACTION_OPERATIONS = 4
"""In a patient phase: rows that are written out, each after a short while, and one sync for them
all.

So do databases: PostgreSQL has its pages written out early (`checkpoint_flush_after`) and syncs at
the checkpoint's end, InnoDB writes with O_DIRECT and syncs later. This kind of client trusts a disk
that forgets completed writes, and then gets the report that all is durable.
"""
THINK_MS_MIN, THINK_MS_MAX = 40, 320
"""How long a late sync waits after its writes."""
_ROW_THINK_MS_MIN, _ROW_THINK_MS_MAX = 20, 80
_PART_IN = 4
"""One in so many overwrites is of a part of one block: 512 to 2048 bytes."""
_PART_SECTORS_MAX = 4
_LOUD_LATE_IN = 6
"""One in so many operations of a loud phase syncs late, too."""

PUSH = "push"
"""A scribble's `sync`: asks the kernel to write the blocks out, without a flush."""
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
_CYCLE = LOUD_OPERATIONS + QUIET_OPERATIONS + PATIENT_OPERATIONS
_LATE_KINDS = (OVERWRITE, CREATE, APPEND)


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
    """One step of a writer: its kind, file and blocks, and the file's length afterwards.

    `is_last`: its file is never touched again. `think_ms`: the wait between its writes and its
    sync, while they are on their way to the disk. `is_direct`: written past the page cache
    (O_DIRECT). `sectors`: only this part of each block is written, as (first, count).
    """

    __slots__ = (
        "blocks",
        "file",
        "is_direct",
        "is_last",
        "kind",
        "sectors",
        "size_blocks",
        "sync",
        "think_ms",
    )

    def __init__(
        self,
        *,
        kind: str,
        file: int,
        blocks: tuple[int, ...],
        size_blocks: int,
        sync: str,
        is_last: bool = False,
        think_ms: int = 0,
        is_direct: bool = False,
        sectors: tuple[int, int] | None = None,
    ) -> None:
        self.kind = kind
        self.file = file
        self.blocks = blocks
        self.size_blocks = size_blocks
        self.sync = sync
        self.is_last = is_last
        self.think_ms = think_ms
        self.is_direct = is_direct
        self.sectors = sectors

    @property
    def is_durable(self) -> bool:
        """Whether its end is an acknowledgement."""
        return self.kind != SCRIBBLE

    def announced(self) -> dict[str, object]:
        """Its announcement to the host."""
        return {
            "op": self.kind,
            "file": self.file,
            "blocks": self.blocks,
            "size": self.size_blocks,
            "sync": self.sync,
            "think_ms": self.think_ms,
            "direct": self.is_direct,
            "sectors": self.sectors,
        }


def busy_files(job: dict[str, Any]) -> range:
    """The files that all writers of a job write over and over; the keepsakes' numbers follow."""
    return range(job["writers"] * job["files_per_writer"])


def keepsakes(job: dict[str, Any]) -> range:
    """The files of a job that are made once; each writer takes every `writers`-th."""
    first = busy_files(job).stop
    each = job.get("keepsakes_per_writer", KEEPSAKES_PER_WRITER)
    return range(first, first + job["writers"] * each)


class Planner:
    """Draws one writer's operations; tracks the length of each of its files (None: no such file)."""

    def __init__(self, job: dict[str, Any], writer: int) -> None:
        per_writer = job["files_per_writer"]
        self._dice = Dice(job["seed"] ^ (writer * 0xD1B54A32D192ED03))
        self._files = busy_files(job)[writer * per_writer : (writer + 1) * per_writer]
        self._keepsakes = iter(keepsakes(job)[writer :: job["writers"]])
        self._made: list[tuple[int, int]] = []
        self._scribbled: list[tuple[int, int]] = []
        self._rows: list[tuple[int, int]] = []
        self._blocks_max = job["blocks_per_file_max"]
        self._raw = job["mode"] == "raw"
        self._weights = _RAW_WEIGHTS if self._raw else _FILE_WEIGHTS
        self._sizes: dict[int, int | None] = dict.fromkeys(self._files)
        self._drawn = 0

    @property
    def is_new_phase(self) -> bool:
        """Whether the last drawn operation is the first of a phase."""
        return (self._drawn - 1) % _CYCLE in (
            0,
            LOUD_OPERATIONS,
            LOUD_OPERATIONS + QUIET_OPERATIONS,
        )

    def draw(self) -> Operation:
        """The next operation, taken as done: after a failure the writer must not draw again."""
        place = self._drawn % _CYCLE
        self._drawn += 1
        if place >= LOUD_OPERATIONS + QUIET_OPERATIONS:
            is_commit = (place + 1 - _CYCLE) % TRANSACTION_OPERATIONS == 0
            return self._row(is_commit=is_commit) or self._late(
                self._on_busy_file(OVERWRITE, self._sync())
            )
        if place >= LOUD_OPERATIONS:
            return self._quiet(self._sync())
        operation = self._loud(self._kind(), self._sync())
        return self._late(operation) if self._dice.below(_LOUD_LATE_IN) == 0 else operation

    def _late(self, operation: Operation) -> Operation:
        if operation.kind in _LATE_KINDS:
            operation.think_ms = self._think_ms(THINK_MS_MIN, THINK_MS_MAX)
            operation.is_direct |= self._dice.below(2) == 0
        return operation

    def _think_ms(self, least: int, most: int) -> int:
        return least + self._dice.below(most - least + 1)

    def _row(self, *, is_commit: bool) -> Operation | None:
        """The next rows of a table, or a new table; None when there are no more keepsakes."""
        if not self._rows:
            file = next(self._keepsakes, None)
            if file is None:
                return None
            self._rows = [(file, block) for block in range(self._blocks_max)]
            blocks = tuple(range(self._blocks_max))
            made = self._operation_on(CREATE, file, blocks, self._blocks_max)
            made.is_direct = self._dice.below(2) == 0
            return made
        count = 1 + self._dice.below(_ROW_BLOCKS_MAX)
        taken, self._rows = self._rows[:count], self._rows[count:]
        file, blocks = taken[0][0], tuple(block for _, block in taken)
        if is_commit or not self._rows:
            commit = self._operation_on(OVERWRITE, file, blocks, self._blocks_max)
            commit.is_last = not self._rows
            return self._late(commit)
        row = self._operation_on(SCRIBBLE, file, blocks, self._blocks_max)
        row.sync = PUSH
        row.think_ms = self._think_ms(_ROW_THINK_MS_MIN, _ROW_THINK_MS_MAX)
        row.is_direct = self._dice.below(2) == 0
        return row

    @staticmethod
    def _operation_on(kind: str, file: int, blocks: tuple[int, ...], size: int) -> Operation:
        # fdatasync then only has to write blocks in place: one flush, and none of a journal
        return Operation(kind=kind, file=file, blocks=blocks, size_blocks=size, sync="fdatasync")

    def _sync(self) -> str:
        return ("fsync", "fdatasync")[self._dice.below(2)]

    def _quiet(self, sync: str) -> Operation:
        if self._made:
            return self._scribble_on_keepsake()
        return self._on_busy_file(SCRIBBLE, sync, is_quiet=True)

    def _loud(self, kind: str, sync: str) -> Operation:
        if kind == _RETIRE and self._scribbled:
            file, size = self._scribbled.pop(0)
            last = Operation(
                kind=OVERWRITE, file=file, blocks=(0,), size_blocks=size, sync=sync, is_last=True
            )
            return self._maybe_part(last)
        if kind in (_KEEP, _RETIRE):
            return self._keep(sync) or self._on_busy_file(OVERWRITE, sync)
        return self._on_busy_file(kind, sync)

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
        blocks = tuple(range(1, size - 1)) or (0,)
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
        if kind == APPEND:  # the file has its full length
            kind = OVERWRITE
        if kind == SCRIBBLE:  # a loud one may also stay in the client's memory
            sync = PUSH if is_quiet else (PUSH, NONE)[self._dice.below(2)]
        return self._maybe_part(self._taken(kind, file, self._places(size), size, sync))

    def _maybe_part(self, operation: Operation) -> Operation:
        if self._dice.below(_PART_IN) == 0:
            count = 1 + self._dice.below(_PART_SECTORS_MAX)
            operation.sectors = (self._dice.below(SECTORS - count + 1), count)
            operation.blocks = operation.blocks[:1]
            operation.is_direct = operation.kind != DSYNC and self._dice.below(2) == 0
        return operation

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
        return 1 + self._dice.below(max(1, min(_BUSY_BLOCKS_MAX, self._blocks_max // 2)))

    def _places(self, size: int) -> tuple[int, ...]:
        count = 1 + self._dice.below(min(_BLOCKS_AT_ONCE_MAX, size))
        return tuple(sorted({self._dice.below(size) for _ in range(count)}))
