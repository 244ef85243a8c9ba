"""The ledger: the client's intentions, acts and acknowledgements, in the order the host received them.

The guest sends JSON lines (`vmimages/client/load/channel.py`). The host stamps each with its own
clock (`stamp`) and stores it. Only then does the host answer (`reply_to`). An event's place in the
ledger is its moment. An operation whose `done` is at place p was durable before p. An operation
whose `begin` is at place p had not begun before p.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from torture.facts.evidence.documents import json_object, strictly

PORT_NAME = "torture.ledger"
"""Name of the virtio-serial port through which a client's acknowledgements leave it."""

BLOCK_MAGIC = b"PWRCUT\x01\n"
"""Every sector that the load writes begins with it. Trial, file, operation, block and sector follow
(`vmimages/client/load/blocks.py`)."""
BLOCK_SECTORS = 8
"""The number of sectors in a block."""
BLOCK_HEADER = "<8sQQQII"
"""All five of them, in the format of Python's `struct`."""
SECTOR_BYTES = 512
"""The size of a sector. Its last four bytes are a CRC-32 of all before them, little-endian."""


class OperationKind(StrEnum):
    """The effect of an operation; the words of the guest's `plan.py`."""

    OVERWRITE = "overwrite"
    DSYNC = "dsync"
    APPEND = "append"
    REPLACE = "replace"
    CREATE = "create"
    UNLINK = "unlink"
    SCRIBBLE = "scribble"
    TRANSACTION = "transaction"
    """A transaction of an application, which names `what` it is; durable when it returns."""
    LAZY_TRANSACTION = "lazy-transaction"
    """Whole or not at all. The next durable one makes it durable, as with an asynchronous commit."""

    @property
    def is_durable(self) -> bool:
        """Whether `done` is an acknowledgement; a scribble's is only the return of an unsynced write."""
        return self not in (OperationKind.SCRIBBLE, OperationKind.LAZY_TRANSACTION)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hello:
    """The load phase has begun."""

    t_ms: float
    trial: int
    mode: str
    writers: int = 0
    """The number of writers that work at once; 0 where an older ledger lacks it."""
    device_bytes: int | None = None
    """The size of the load's bare device; None for files, and for older ledgers."""
    before: int = 0
    """The number of files that were made before the load; older loads made none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Begin:
    """An operation may have begun from here on; `size_blocks` is the file's length after it.

    `sectors`: the sectors of each block that it writes. A transaction has no file of ours, no
    blocks and no size. Its `what` is its description.
    """

    t_ms: float
    seq: int
    writer: int
    kind: OperationKind
    file: int
    blocks: tuple[int, ...]
    size_blocks: int
    sectors: range = range(BLOCK_SECTORS)
    what: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def promises_its_content(self) -> bool:
        """Whether its acknowledgement covers its data.

        A name that needs no sync is durable by itself. Its content waits for a sync of the file, or
        of all.
        """
        if not self.what.get("names_are_stable"):
            return self.kind.is_durable
        own = self.what.get("whom")
        return any(call == "syncfs" or whom == own for call, whom in self.what.get("syncs", ()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """The operation's durable call returned.

    `work_ms`: its time in the guest, without any wait for its turn, for the host, or on purpose.
    `sync_ms`: the part of that in each fsync, fdatasync and write through O_DSYNC. Ledgers of older
    loads have neither: None and empty. `line` is its place in the file, from 1; 0 where it is
    unknown.
    """

    t_ms: float
    seq: int
    work_ms: float | None = None
    sync_ms: tuple[float, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """A call of the operation failed; its writer has stopped, and the operation is in flight for ever."""

    t_ms: float
    seq: int
    errno: int
    call: str


@dataclass(frozen=True, kw_only=True, slots=True)
class End:
    """The load ended by itself; `stuck` are writers that hang in the kernel."""

    t_ms: float
    stuck: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """The host's own mark: the NAS lost power."""

    t_ms: float


Event = Hello | Begin | Done | Failed | End | Cut


@dataclass(frozen=True, kw_only=True, slots=True)
class Ledger:
    """The events in order; `garbled` counts unreadable lines, except a cut-off end.

    A last line that was cut off had no answer, so the client did not go on. `received`: the number of
    the guest's whole lines in the file; None for a ledger without a file.
    """

    events: tuple[Event, ...]
    garbled: int = 0
    received: int | None = field(default=None, compare=False)

    @property
    def device_bytes(self) -> int | None:
        """The size of the bare device before the load, if the ledger has it."""
        sizes = (event.device_bytes for event in self.events if isinstance(event, Hello))
        return next((size for size in sizes if size is not None), None)

    @property
    def writers(self) -> int:
        """The number of writers, by the load; 0 where an older ledger lacks it."""
        return max((event.writers for event in self.events if isinstance(event, Hello)), default=0)

    @property
    def cuts(self) -> int:
        """How often the host marked that the NAS lost power."""
        return sum(isinstance(event, Cut) for event in self.events)

    @property
    def is_ended(self) -> bool:
        """Whether the load has reported its end."""
        return any(isinstance(event, End) for event in self.events)

    @property
    def acknowledged(self) -> int:
        """How many durable operations were acknowledged."""
        durable = {e.seq for e in self.events if isinstance(e, Begin) and e.kind.is_durable}
        return sum(isinstance(e, Done) and e.seq in durable for e in self.events)

    @property
    def cut_ms(self) -> float | None:
        """When the NAS lost power, if the host marked it."""
        return next((event.t_ms for event in self.events if isinstance(event, Cut)), None)


def stamp(line: bytes, t_ms: float) -> bytes:
    """A guest's line as the host stores it, with `t_ms` (milliseconds since the trial started).

    A line that is no JSON object is kept as text under `garbled`: nothing is hidden.
    """
    event = json_object(line)
    if event is None:
        event = {"event": "garbled", "garbled": line.decode(errors="backslashreplace")}
    return _dump(event | {"t_ms": round(t_ms, 3)})


def cut_mark(t_ms: float) -> bytes:
    """The line that the host puts into the ledger when the NAS loses power."""
    return _dump({"event": "cut", "t_ms": round(t_ms, 3)})


def received_lines(data: bytes) -> list[bytes]:
    """The lines of a stored ledger that came from the guest, in order."""
    lines = data.splitlines(keepends=True)
    return [line for line in lines if not line.startswith(_CUT_MARK)]


def cut_after(data: bytes, *, lines: int, t_ms: float) -> bytes:
    """The part of a stored ledger that a cut leaves, at this time and after that many guest's lines."""
    return b"".join(received_lines(data)[:lines]) + cut_mark(t_ms)


def reply_to(line: bytes) -> bytes | None:
    """The host's answer once it has stored a line; None when the guest awaits no answer."""
    event = json_object(line)
    if event is None or event.get("event") not in ("hello", "begin", "done"):
        return None
    return f"{event.get('seq', 0)}\n".encode()


_CUT_MARK = b'{"event":"cut"'

STOP = b"stop\n"
"""The host's message that ends the load: writers finish their operation, then the guest exits."""


def parse_line(line: bytes, number: int = 0) -> tuple[Event, ...]:
    """The events of one stored line (a `done` may carry the next `begin`); none for a blank line.

    `number`: its place in the file. Raises `ValueError` when the line is garbled.
    """
    if not line.strip():
        return ()
    raw = json_object(line)
    if raw is None:
        raise ValueError("no JSON object")
    try:
        return tuple(_events(raw, number))
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"an event lacks a field: {error!r}") from error


def parse_ledger(data: bytes) -> Ledger:
    """The ledger of a stored file; garbled lines are counted, never guessed at."""
    *lines, _cut_off = data.split(b"\n")
    events: list[Event] = []
    garbled = 0
    for number, line in enumerate(lines, start=1):
        try:
            events.extend(parse_line(line, number))
        except ValueError:
            garbled += 1
    return Ledger(
        events=tuple(events),
        garbled=garbled,
        received=sum(not line.startswith(_CUT_MARK) for line in lines),
    )


_PLAIN: dict[str, type[Hello | Failed | End | Cut]] = {
    "hello": Hello,
    "failed": Failed,
    "end": End,
    "cut": Cut,
}
"""The events whose fields are those of their lines."""


def _events(raw: dict[str, Any], number: int) -> Iterator[Event]:
    if (plain := _PLAIN.get(raw["event"])) is not None:
        yield strictly(plain, raw)
    elif raw["event"] == "begin":
        yield _begin(raw, raw["t_ms"])
    elif raw["event"] == "done":
        sync_ms = raw.get("sync_ms") or ()
        yield strictly(Done, raw | {"sync_ms": sync_ms, "line": number})
        if raw.get("next") is not None:
            yield _begin(raw["next"], raw["t_ms"])
    else:
        raise ValueError(f"unknown event: {raw['event']!r}")


def _begin(raw: dict[str, Any], t_ms: float) -> Begin:
    first, count = raw.get("sectors") or (0, BLOCK_SECTORS)
    return Begin(
        t_ms=float(t_ms),
        seq=int(raw["seq"]),
        writer=int(raw["writer"]),
        kind=OperationKind(raw["op"]),
        file=int(raw["file"]),
        blocks=tuple(int(block) for block in raw["blocks"]),
        size_blocks=int(raw["size"]),
        sectors=range(int(first), int(first) + int(count)),
        what=dict(raw.get("what") or {}),
    )


def _dump(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"
