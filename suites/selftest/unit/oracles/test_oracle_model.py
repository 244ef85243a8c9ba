"""The oracle against a slow, obvious reference that replays the ledger up to every moment.

The reference keeps, for each name, the list of what a crash may leave there; the oracle computes
intervals instead. Both must agree on every observation: those a simulated crash leaves, and those
that are damaged afterwards.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from suites.selftest.unit.good_evidence import BLOCK_BYTES, begun, readback_of
from torture.facts.evidence.ledger import Begin, Done, Event, Failed, Hello, Ledger, OperationKind
from torture.oracles.verdict.blocks.history import parse_readback
from torture.oracles.verdict.blocks.oracle import consult
from torture.oracles.verdict.guarantee import Verdict

WRITERS, FILES, BLOCKS, SECTORS = 2, 4, 3, 8
IN_PLACE = (OperationKind.OVERWRITE, OperationKind.DSYNC, OperationKind.SCRIBBLE)
SYNCED = (
    OperationKind.OVERWRITE,
    OperationKind.APPEND,
    OperationKind.CREATE,
    OperationKind.REPLACE,
)
Content = int | str
Place = tuple[int, int]
"""A block and a sector in it."""


def places_of(blocks: Iterable[int], sectors: Iterable[int] = range(SECTORS)) -> list[Place]:
    sectors = list(sectors)
    return [(block, sector) for block in blocks for sector in sectors]


@dataclass
class Inode:
    """The possible contents of one file: sizes in blocks, and each sector's versions, oldest first."""

    sizes: list[int]
    versions: dict[Place, list[Content]]
    written: dict[Place, int] = field(default_factory=dict)
    """Sector to its newest version whose write has returned."""

    def settle(self, place: Place, version: Content) -> None:
        versions = self.versions[place]
        if version in versions:
            del versions[: versions.index(version)]

    def settle_all(self, written: dict[Place, int]) -> None:
        for place, version in written.items():
            self.settle(place, version)


@dataclass
class Reference:
    """Everything a crash may leave after the events replayed so far."""

    raw: bool
    tears: bool = False
    """Whether what is under way may leave a part of a sector."""
    halves: bool = False
    """Whether the read-back names both writes of such a sector."""
    names: dict[int, list[Inode | None]] = field(default_factory=dict)
    temporaries: dict[int, Begin] = field(default_factory=dict)
    begun: dict[int, Begin] = field(default_factory=dict)
    before: dict[int, dict[int, dict[Place, int]]] = field(default_factory=dict)
    """By operation: what had been written, unsynced or not, when it began (a raw disk's files)."""

    def replay(self, event: Event) -> None:
        if isinstance(event, Begin):
            self.begin(event)
        elif isinstance(event, Done):
            self.done(self.begun[event.seq])

    def alternatives(self, file: int) -> list[Inode | None]:
        fresh: Inode | None = None
        if self.raw:
            fresh = Inode([BLOCKS], {place: ["zero"] for place in places_of(range(BLOCKS))})
        return self.names.setdefault(file, [fresh])

    def begin(self, op: Begin) -> None:
        self.begun[op.seq] = op
        alternatives = self.alternatives(op.file)
        inode = alternatives[-1]
        self.before[op.seq] = {
            file: dict(found[-1].written) for file, found in self.names.items() if found[-1]
        }
        if op.kind is OperationKind.UNLINK:
            alternatives.append(None)
        elif op.kind is OperationKind.CREATE and not self.raw:
            zeros: dict[Place, list[Content]] = {
                place: ["zero", op.seq] for place in places_of(op.blocks)
            }
            alternatives.append(Inode(list(range(op.size_blocks + 1)), zeros))
        elif op.kind is OperationKind.REPLACE:
            alternatives.append(
                Inode([op.size_blocks], {p: [op.seq] for p in places_of(op.blocks)})
            )
            self.temporaries[op.file] = op
        else:
            assert inode is not None
            if op.kind is OperationKind.APPEND:
                inode.sizes = list(range(inode.sizes[-1], op.size_blocks + 1))
            for place in places_of(op.blocks, op.sectors):
                inode.versions.setdefault(place, ["zero"]).append(op.seq)

    def done(self, op: Begin) -> None:
        alternatives = self.alternatives(op.file)
        del alternatives[:-1]
        self.temporaries.pop(op.file, None)
        inode = alternatives[-1]
        if inode is None:
            return
        for place in places_of(op.blocks, op.sectors):
            inode.written[place] = op.seq
        if op.kind in (OperationKind.APPEND, OperationKind.CREATE):
            inode.sizes = [op.size_blocks] if not self.raw else inode.sizes
        if op.kind is OperationKind.DSYNC:
            for place in places_of(op.blocks, op.sectors):
                inode.settle(place, op.seq)
        elif op.kind in SYNCED:
            inode.settle_all(inode.written)
            for file, written in self.before[op.seq].items() if self.raw else ():
                other = self.names[file][-1]
                assert other is not None
                other.settle_all(written)

    def explains(self, document: dict[str, Any]) -> bool:
        seen_all = [*document["files"], *document["temporaries"]]
        sectors = [one for seen in seen_all for block in seen.get("blocks", ()) for one in block]
        tears = self.tears and sum(map(_is_half, sectors)) <= 1  # one cut leaves one at most
        for seen in document["files"]:
            found = self.names.get(seen["file"], self.alternatives(seen["file"]))
            if not any(_matches(one, seen, tears=tears) for one in found):
                return False
        for seen in document["temporaries"]:
            op = self.temporaries.get(seen["file"])
            if op is None or len(seen["blocks"]) > op.size_blocks:
                return False
            versions: list[Content] = ["zero", op.seq]
            if not all(
                _may_hold(versions, content, is_torn=tears)
                for sectors in seen["blocks"]
                for content in sectors
            ):
                return False
        return True

    def crash(self, dice: random.Random) -> dict[str, Any]:
        """The read-back after a crash at this moment."""
        files = [
            _observe(file, dice.choice(self.alternatives(file)), dice) for file in range(FILES)
        ]
        temporaries = []
        for file, op in self.temporaries.items():
            if dice.random() < 0.5:
                inode = Inode(list(range(op.size_blocks + 1)), {})
                inode.versions = {p: ["zero", op.seq] for p in places_of(op.blocks)}
                temporaries.append(_observe(file, inode, dice))
        document = readback_of(files, looked=FILES, mode="raw" if self.raw else "files")
        document |= {"temporaries": temporaries, "finds_halves": self.halves}
        if self.tears:
            self._tear_one(document, dice)
        return document

    def _tear_one(self, document: dict[str, Any], dice: random.Random) -> None:
        """One sector of one file is left by two of the writes that it may hold."""
        places = [
            (sectors, sector, versions)
            for seen in document["files"]
            for inode in self.alternatives(seen["file"])
            if inode is not None and seen.get("size") in [one * BLOCK_BYTES for one in inode.sizes]
            for block, sectors in enumerate(seen["blocks"])
            for sector in range(SECTORS)
            if len(versions := inode.versions.get((block, sector), [])) > 1
            and all(content in inode.versions[block, at] for at, content in enumerate(sectors))
        ]
        if places and dice.random() < 0.5:
            sectors, sector, versions = dice.choice(places)
            two = [0 if version == "zero" else version for version in dice.sample(versions, 2)]
            sectors[sector] = f"half:{two[0]}:{two[1]}" if self.halves else "garbage"


def _matches(alternative: Inode | None, seen: dict[str, Any], *, tears: bool) -> bool:
    if alternative is None or "errno" in seen:
        return alternative is None and "errno" in seen
    return seen["size"] in [size * BLOCK_BYTES for size in alternative.sizes] and all(
        _may_hold(alternative.versions.get((index, sector), []), content, is_torn=tears)
        for index, sectors in enumerate(seen["blocks"])
        for sector, content in enumerate(sectors)
    )


def _is_half(content: Content) -> bool:
    return content == "garbage" or str(content).startswith("half:")


def _may_hold(versions: list[Content], content: Content, *, is_torn: bool) -> bool:
    if content in versions or not (is_torn and _is_half(content)) or len(versions) < 2:
        return content in versions
    named = [0 if version == "zero" else version for version in versions]
    pairs = [f"half:{one}:{other}" for one in named for other in named if one != other]
    return content == "garbage" or content in pairs


def _observe(file: int, inode: Inode | None, dice: random.Random) -> dict[str, Any]:
    seen: dict[str, Any] = {"file": file, "name": f"f{file}", "listed": inode is not None}
    if inode is None:
        return seen | {"errno": 2}
    size = dice.choice(inode.sizes)
    blocks = []
    for block in range(size):
        torn = dice.random() < 0.3
        age = dice.random()
        sectors = [
            versions[int(len(versions) * (dice.random() if torn else age))]
            for versions in (inode.versions[block, sector] for sector in range(SECTORS))
        ]
        blocks.append(sectors)
    return seen | {"size": size * BLOCK_BYTES, "blocks": blocks}


def _damage(document: dict[str, Any], dice: random.Random, seqs: int) -> None:
    """Change one thing: a file, or one or all sectors of one block."""
    seen = dice.choice(document["files"])
    raw = document["mode"] == "raw"
    if not raw and dice.random() < 0.2:
        other = json.loads(json.dumps(dice.choice(document["files"])))
        own = {"file": seen["file"], "name": seen["name"]}
        seen.clear()
        seen.update(other | own)
        return
    if not seen.get("blocks"):
        return
    if not raw and dice.random() < 0.2:
        seen["blocks"].pop()
        seen["size"] -= BLOCK_BYTES
        return
    sectors = dice.choice(seen["blocks"])
    content = dice.choice(["zero", "zero", dice.randint(1, seqs), dice.randint(1, seqs)])
    if dice.random() < 0.1:
        content = "foreign:7:9:0:0:1"
    if dice.random() < 0.1 and not raw:
        one, other = dice.randrange(seqs), dice.randrange(seqs)
        content = f"half:{one}:{other}" if document["finds_halves"] else "garbage"
    width = dice.choice([1, SECTORS])
    at = dice.randrange(SECTORS - width + 1)
    sectors[at : at + width] = [content] * width


def drawn_events(dice: random.Random, count: int, *, raw: bool) -> tuple[Event, ...]:
    """A ledger: writers that begin and end operations in any interleaving; rarely one fails."""
    sizes: dict[int, int | None] = dict.fromkeys(range(FILES))
    in_flight: dict[int, int] = {}
    dead: set[int] = set()
    events: list[Event] = []
    for seq in range(1, count):
        writer = dice.randrange(WRITERS)
        t_ms = float(10 * (1 + len(events)))  # the hello is the first
        if writer in dead:
            continue
        if writer in in_flight:
            ended = in_flight.pop(writer)
            if dice.random() < 0.03:
                dead.add(writer)
                events.append(Failed(t_ms=t_ms, seq=ended, errno=5, call="fsync"))
            else:
                events.append(Done(t_ms=t_ms, seq=ended))
            continue
        file = writer * (FILES // WRITERS) + dice.randrange(FILES // WRITERS)
        kind, blocks, sizes[file] = _operation(dice, sizes[file], raw=raw)
        in_flight[writer] = seq
        more = {"size_blocks": sizes[file] or 0, "sectors": _sectors(dice, kind)}
        events.append(begun(t_ms, seq, kind, writer=writer, file=file, blocks=blocks, **more))
    return tuple(events)


def _sectors(dice: random.Random, kind: OperationKind) -> range:
    if kind not in IN_PLACE or dice.random() < 0.6:
        return range(SECTORS)
    first = dice.randrange(SECTORS)
    return range(first, dice.randint(first, SECTORS - 1) + 1)


def _operation(
    dice: random.Random, size: int | None, *, raw: bool
) -> tuple[OperationKind, tuple[int, ...], int | None]:
    fresh = BLOCKS if raw else dice.randint(1, BLOCKS)
    if size is None:
        return OperationKind.CREATE, tuple(range(fresh)), fresh
    kinds = [OperationKind.OVERWRITE, OperationKind.DSYNC, *[OperationKind.SCRIBBLE] * 2]
    if not raw:
        kinds += [OperationKind.REPLACE, OperationKind.UNLINK, *[OperationKind.APPEND] * 2]
    kind = dice.choice(kinds)
    if kind is OperationKind.REPLACE:
        return kind, tuple(range(fresh)), fresh
    if kind is OperationKind.UNLINK:
        return kind, (), None
    if kind is OperationKind.APPEND and size < BLOCKS:
        more = dice.randint(size + 1, BLOCKS)
        return kind, tuple(range(size, more)), more
    if kind is OperationKind.APPEND:
        kind = OperationKind.OVERWRITE
    return kind, tuple(sorted(dice.sample(range(size), dice.randint(1, size)))), size


@pytest.mark.parametrize(
    ("raw", "tears", "halves"),
    [(False, False, False), (False, True, False), (False, True, True), (True, False, False)],
    ids=["files", "files-that-tear", "files-whose-halves-are-found", "raw"],
)
@given(seed=st.integers(0, 2**63), count=st.integers(4, 60), damages=st.integers(0, 2))
@settings(max_examples=examples(400), deadline=None)
def test_oracle_agrees_with_the_reference(
    raw: bool, tears: bool, halves: bool, seed: int, count: int, damages: int
) -> None:
    dice = random.Random(seed)
    mode = "raw" if raw else "files"
    hello = Hello(t_ms=0.0, trial=7, mode=mode, writers=WRITERS)
    events = (hello, *drawn_events(dice, count, raw=raw))
    crash_at = dice.choice([len(events), dice.randint(0, len(events))])
    reference = Reference(raw=raw, tears=tears, halves=halves)
    for event in events[:crash_at]:
        reference.replay(event)
    document = reference.crash(dice)
    for _ in range(damages):
        _damage(document, dice, count)
    explained = []
    replayed = Reference(raw=raw, tears=tears, halves=halves)
    for moment in range(len(events) + 1):
        if replayed.explains(document):
            explained.append(moment)
        if moment < len(events):
            replayed.replay(events[moment])

    readback = parse_readback(json.dumps(document))
    cut_ms = float(10 * len(events))
    findings = consult(Ledger(events=events), readback, cut_ms=cut_ms, tears_sectors=tears)

    if not explained:
        assert findings.verdict is Verdict.CORRUPTED
        assert findings.torn + findings.stale + findings.missing + findings.foreign > 0
    elif explained[-1] == len(events):
        assert findings.verdict is Verdict.INTACT
        assert findings.lost == 0
        assert findings.torn + findings.stale + findings.missing + findings.foreign == 0
    else:
        assert findings.verdict is Verdict.ROLLED_BACK
        assert findings.rollback_ms == cut_ms - 10 * explained[-1]
        assert findings.lost > 0
    if not damages:
        assert crash_at in explained
