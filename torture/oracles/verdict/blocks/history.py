"""From the ledger to the allowed contents of each file and block after a crash at each moment.

The rules, and their reasons:

- **Begun.** An operation whose `begin` is at place b has not touched anything at moments <= b. The
  client waits for the host's answer to `begin` before its first write.
- **Durable.** The effect of an acknowledged operation holds at all moments after its `done`, place
  d. fsync(2), fdatasync(2), O_DSYNC (open(2)) had returned before the client reported it. Between b
  and d each sector may be old or new, and so may a name. A disk guarantees no more than its sector.
- **fsync covers the file.** Blocks written before it and not synced (`scribble`) become durable
  with it; a raw device is one file for this. O_DSYNC covers only its own range, as in open(2).
- **Parts of sectors.** Files have no sectors, and their storage on the NAS may leave a part of one.
  If the cell's terms allow it, each cut may leave one sector of all half old and half new. This
  happens only between b and d (`halves.py`).
- **Parts of blocks.** Only the operations that write a sector change it. The others of its block
  stay as they were (a disk guarantees no more than its sector, and no less).
- **Directories.** A new name, a rename or a removal counts from the fsync of its directory, as in
  fsync(2). btrfs, ext4 and xfs give a new file's name sooner: this is allowed, not owed.
- **Names that may go back.** If the terms excuse names, no new name, rename or removal is ever
  durable. Each name may stand for any of its files, but the content of that file is owed.
- **Rename.** The new file is fsynced before it is renamed. So under its final name it is complete
  or not there. rename(2) over an old file never leaves no file.
- **Growth.** An append in flight may leave any size from old to new. It may leave zeros if the size
  was extended before the data came. Only the size explains blocks beyond the size on disk.
- **Failure.** A failed call is no acknowledgement and forbids nothing: in flight for ever.
- **A raw region** held anything before its first durable write, but no data of this trial's that
  belong elsewhere.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any

from torture.facts.evidence.documents import Meta, strictly
from torture.facts.evidence.ledger import BLOCK_SECTORS, Begin, Done, Failed, Ledger, OperationKind
from torture.oracles.verdict.guarantee import UnreadableError, read_whole
from torture.oracles.verdict.observations import Window, Windows, union

SECTORS = 8
"""The number of sectors in a block, as in the guest's `blocks.py`."""

Sector = int | Annotated[str, Meta(pattern=r"^(zero|garbage|partial|foreign|errno|half)(:|\Z)")]
"""A valid sector's operation, or `zero`, `garbage`, `partial`, `foreign:...`, `errno:<n>`.

Or `half:<n>:<m>`: it begins with operation n's data and ends with m's; 0 stands for zeros.
"""

GARBAGE = "garbage"
"""A sector that no single write left. Older read-backs use it for two halves, too."""
ABSENT = "nothing"
"""A sector inside the file, or the device, that the read-back lacks."""
ENDED = f"errno:{errno.ENODATA}"
"""The same, when the reader met the end of the device: no disk failed."""
_SECTOR_BYTES = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class FileSeen:
    """One name or region as found. With `errno` its opening failed (2: there is no file of this name).

    `blocks` holds the sectors of each block; the last block of a file may have fewer than eight.
    """

    file: int
    name: str
    listed: bool
    errno: int | None
    size_bytes: int
    blocks: tuple[tuple[Sector, ...], ...]

    def sectors_of(self, block: int, *, end_bytes: int | None = None) -> tuple[Sector, ...]:
        """The sectors of a block; `ABSENT` are those below `end_bytes` that were not read.

        By default the end is that of the file.
        """
        end = self.size_bytes if end_bytes is None else end_bytes
        whole = min(SECTORS, max(0, end // _SECTOR_BYTES - block * SECTORS))
        read = self.blocks[block] if block < len(self.blocks) else ()
        inside = [ABSENT if sector == "partial" else sector for sector in read[:whole]]
        return (*inside, *(ABSENT,) * (whole - len(inside)), *read[whole:])


@dataclass(frozen=True, kw_only=True, slots=True)
class BesideSeen:
    """A file from before the load, or a place of the bare device, that is not as it was."""

    name: str
    state: str
    """`missing`, `changed`, `garbage` or `errno:<n>`."""

    @property
    def in_words(self) -> str:
        """E.g. `file 2 missing`."""
        return f"{self.name} {self.state}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Readback:
    """Everything found; with `directory_errno` the listing of the directory itself failed.

    Of the first `looked` files, those that `files` lacks are not there (regions: all zeros).
    """

    mode: str
    trial: int
    looked: int
    files: tuple[FileSeen, ...]
    temporaries: tuple[FileSeen, ...]
    unexpected: tuple[str, ...]
    directory_errno: int | None
    device_bytes: int | None = None
    """The size of the bare device, if the read-back has it."""
    finds_halves: bool = False
    """Whether it says `half` for a sector in which two writes met; older ones say `garbage`."""
    beside: tuple[BesideSeen, ...] = ()
    """The data from before the load that are not as they were; older read-backs do not look."""


def parse_readback(text: str) -> Readback:
    """The read-back of a stored document; raises `UnreadableError` for a cut-off or garbled one."""
    return read_whole(text, _readback)


def _readback(raw: dict[str, Any]) -> Readback:
    seen = {of: [_file(entry) for entry in raw[of]] for of in ("files", "temporaries")}
    return strictly(Readback, {"directory_errno": None} | raw | seen)


def _file(raw: dict[str, Any]) -> dict[str, Any]:
    """The fields of `FileSeen`; a file that was not opened has no content."""
    if raw.get("errno") is not None:
        return raw | {"size_bytes": 0, "blocks": ()}
    blocks = [block if isinstance(block, list) else [block] * SECTORS for block in raw["blocks"]]
    return {"errno": None} | raw | {"size_bytes": raw["size"], "blocks": blocks}


WHOLE = range(BLOCK_SECTORS)
"""All sectors of a block."""

# One pass over the ledger builds these classes, and nothing changes them afterwards; so not frozen.


@dataclass(kw_only=True, slots=True)
class Step:
    """One change of one thing (a block's content, a file's size, a name's target).

    `durable` is the place of the `done` that made it so, `acknowledgement` the operation that said
    it. Of a block, `sectors` are the changed ones.
    """

    seq: int
    begin: int
    durable: int | None = None
    acknowledgement: int | None = None
    sectors: range = WHOLE


@dataclass(kw_only=True, slots=True)
class SizeStep(Step):
    """A change of a file's size."""

    size_blocks: int


@dataclass(kw_only=True, slots=True)
class Incarnation:
    """One file from its creation to its end; a name may have many, one after the other.

    `is_atomic`: it came by rename, so its first content is all there or not at all.
    """

    seq: int
    is_atomic: bool
    sizes: list[SizeStep] = field(default_factory=list)
    blocks: dict[int, list[Step]] = field(default_factory=dict)


@dataclass(kw_only=True, slots=True)
class Binding(Step):
    """From here on the name stands for this incarnation, or for none."""

    incarnation: Incarnation | None


@dataclass(kw_only=True, slots=True)
class Name:
    """One file number's history. In raw mode: one binding, with an incarnation that was always there."""

    bindings: list[Binding]
    by_seq: dict[int, Incarnation] = field(default_factory=dict)
    """The incarnation to which an operation wrote."""

    @property
    def current(self) -> Incarnation | None:
        """The name's incarnation at the ledger's end."""
        return self.bindings[-1].incarnation

    def acknowledgements_after(self, binding: int) -> Iterator[int]:
        """Acknowledged operations on the name's incarnations after this binding's place."""
        later = self.bindings[binding + 1 :]
        yield from acknowledged_by(later)
        for incarnation in (one.incarnation for one in later):
            if incarnation is not None:
                yield from acknowledgements_of(incarnation)


@dataclass(kw_only=True, slots=True)
class History:
    """All names; `end` is the moment after everything."""

    end: int
    is_raw: bool
    tears_sectors: bool
    """Whether two writes may meet in a sector: `torture.oracles.verdict.blocks.halves`."""
    takes_garbage: bool
    """Whether the read-back calls a sector of two writes garbage."""
    ignores_errors: bool
    """Whether an unreadable sector may hold anything."""
    trial: int
    names: dict[int, Name]
    acknowledged: dict[int, int]
    """Operations that were acknowledged as durable, with the place of their `done`."""


def acknowledgements_of(incarnation: Incarnation) -> Iterator[int]:
    """Acknowledged operations on one incarnation's size and content."""
    return acknowledged_by(chain(incarnation.sizes, *incarnation.blocks.values()))


def acknowledged_by(steps: Iterable[Step]) -> Iterator[int]:
    """The operations that acknowledged these steps."""
    return (step.acknowledgement for step in steps if step.acknowledgement is not None)


def window_of(steps: list[Step] | list[SizeStep], index: int, end: int) -> Window:
    """When a crash leaves exactly this step: begun, and nothing later durable."""
    durables = (step.durable for step in steps[index + 1 :] if step.durable is not None)
    return Window(steps[index].begin + 1, min(durables, default=end))


def windows_under_way(steps: list[Step], end: int) -> Windows:
    """When a crash may leave one of these half done: begun, and neither it nor anything later durable."""
    found: list[Window] = []
    last = end
    for step in reversed(steps):
        if step.durable is not None:
            last = min(last, step.durable)
        found.append(Window(step.begin + 1, last))
    return union(found)


def window_before(steps: list[Step], end: int) -> Window:
    """When a crash leaves the state before the first of these steps."""
    durables = (step.durable for step in steps if step.durable is not None)
    return Window(0, min(durables, default=end))


def build_history(
    ledger: Ledger,
    *,
    mode: str,
    trial: int,
    tears_sectors: bool = False,
    halves: int = 0,
    takes_garbage: bool = True,
    ignores_errors: bool = False,
    excuses_names: bool = False,
) -> History:
    """The history in a ledger; raises `UnreadableError` when the ledger contradicts itself.

    `halves`: the number of sectors in which two writes may have met. A cut leaves one at most: if
    there are more, none is excused.
    """
    builder = _Builder(is_raw=mode == "raw", excuses_names=excuses_names)
    for place, event in enumerate(ledger.events):
        match event:
            case Begin():
                builder.begin(event, place)
            case Done():
                builder.done(event.seq, place)
            case Failed():
                builder.failed(event.seq)
            case _:
                pass
    return History(
        end=len(ledger.events),
        is_raw=mode == "raw",
        tears_sectors=tears_sectors and halves <= max(1, ledger.cuts),
        takes_garbage=takes_garbage,
        ignores_errors=ignores_errors,
        trial=trial,
        names=builder.names,
        acknowledged=builder.acknowledged,
    )


@dataclass(kw_only=True, slots=True)
class _Open:
    """An operation that has begun: the steps its `done` makes durable."""

    event: Begin
    begin: int
    steps: list[Step]
    covers: int | None
    """The file whose earlier unsynced writes its fsync covers, by `id`; None: covers nothing."""


class _Builder:
    def __init__(self, *, is_raw: bool, excuses_names: bool) -> None:
        self._is_raw = is_raw
        self._excuses_names = excuses_names
        self.names: dict[int, Name] = {}
        self.acknowledged: dict[int, int] = {}
        self._open: dict[int, _Open] = {}
        self._last_seq = 0
        self._busy_writers: set[int] = set()
        self._unsynced: dict[int, list[tuple[int, Step]]] = {}
        """By file: writes that returned unsynced, with the place of their `done`."""

    def begin(self, event: Begin, place: int) -> None:
        if event.seq <= self._last_seq or event.writer in self._busy_writers:
            raise UnreadableError(f"the ledger lacks an event before operation {event.seq}")
        self._last_seq = event.seq
        self._busy_writers.add(event.writer)
        name = self.names.get(event.file)
        if name is None:
            name = self.names[event.file] = self._new_name()
        steps = self._steps(event, place, name)
        target = name.current
        covers: int | None = None
        if target is not None:
            name.by_seq[event.seq] = target
            if event.kind not in (OperationKind.DSYNC, OperationKind.SCRIBBLE):
                covers = self._cover_key(target)
        self._open[event.seq] = _Open(event=event, begin=place, steps=steps, covers=covers)

    def done(self, seq: int, place: int) -> None:
        operation = self._end(seq)
        if not operation.event.kind.is_durable:
            target = self.names[operation.event.file].by_seq[seq]
            waiting = self._unsynced.setdefault(self._cover_key(target), [])
            waiting.extend((place, step) for step in operation.steps)
            return
        self.acknowledged[seq] = place
        if operation.covers is not None:
            # Only writes that had returned before the fsync could begin are covered for certain.
            waiting = self._unsynced.pop(operation.covers, [])
            later = [(at, step) for at, step in waiting if at > operation.begin]
            operation.steps.extend(step for at, step in waiting if at < operation.begin)
            if later:
                self._unsynced[operation.covers] = later
        for step in operation.steps:
            if isinstance(step, Binding) and self._excuses_names:
                continue
            step.durable, step.acknowledgement = place, seq

    def failed(self, seq: int) -> None:
        self._busy_writers.add(self._end(seq).event.writer)  # it never begins anything again

    def _end(self, seq: int) -> _Open:
        operation = self._open.pop(seq, None)
        if operation is None:
            raise UnreadableError(f"the ledger ends operation {seq}, which had not begun")
        self._busy_writers.discard(operation.event.writer)
        return operation

    def _new_name(self) -> Name:
        always = Incarnation(seq=0, is_atomic=False) if self._is_raw else None
        return Name(bindings=[Binding(seq=0, begin=-1, incarnation=always)])

    def _cover_key(self, target: Incarnation) -> int:
        return 0 if self._is_raw else target.seq

    def _steps(self, event: Begin, place: int, name: Name) -> list[Step]:
        made: list[Step] = []
        if not self._is_raw and event.kind in _REBINDS:
            fresh: Incarnation | None = None
            if event.kind is not OperationKind.UNLINK:
                atomic = event.kind is OperationKind.REPLACE
                fresh = Incarnation(seq=event.seq, is_atomic=atomic)
            binding = Binding(seq=event.seq, begin=place, incarnation=fresh)
            name.bindings.append(binding)
            made.append(binding)
        target = name.current
        if target is None:
            if event.kind is not OperationKind.UNLINK:
                raise UnreadableError(f"operation {event.seq} is on a file that is not there")
            return made
        if not self._is_raw and event.kind in _RESIZES:
            size = SizeStep(seq=event.seq, begin=place, size_blocks=event.size_blocks)
            target.sizes.append(size)
            made.append(size)
        for block in event.blocks:
            step = Step(seq=event.seq, begin=place, sectors=event.sectors)
            target.blocks.setdefault(block, []).append(step)
            made.append(step)
        return made


_REBINDS = (OperationKind.CREATE, OperationKind.REPLACE, OperationKind.UNLINK)
_RESIZES = (OperationKind.CREATE, OperationKind.REPLACE, OperationKind.APPEND)
