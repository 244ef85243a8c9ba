"""A ledger, step by step, and the oracle's findings in a read-back."""

from __future__ import annotations

import json
from typing import Any

from suites.selftest.unit.good_evidence import BLOCK_BYTES, begun, readback_of
from torture.facts.evidence.ledger import Cut, Done, Event, Ledger, OperationKind
from torture.oracles.verdict.blocks.history import parse_readback
from torture.oracles.verdict.blocks.oracle import consult
from torture.oracles.verdict.judgement import Findings


class Story:
    """A ledger, step by step; every event is 10 ms after the last. `mode` is the load's."""

    def __init__(self, mode: str = "files", *, tears_sectors: bool = False) -> None:
        self.mode = mode
        self.tears_sectors = tears_sectors
        self.events: list[Event] = []

    def begin(self, word: str, seq: int, *blocks: int, size: int = 0, **more: Any) -> Story:
        """`more`: its writer, file and sectors, of each the first or all."""
        size_blocks = size or len(blocks)
        kind = OperationKind(word)
        self.events.append(
            begun(self._now_ms(), seq, kind, blocks=blocks, size_blocks=size_blocks, **more)
        )
        return self

    def done(self, seq: int) -> Story:
        self.events.append(Done(t_ms=self._now_ms(), seq=seq))
        return self

    def acked(self, kind: str, seq: int, *blocks: int, **more: Any) -> Story:
        return self.begin(kind, seq, *blocks, **more).done(seq)

    def cut(self) -> Story:
        self.events.append(Cut(t_ms=self._now_ms()))
        return self

    def finds(self, *files: Any, temporaries: tuple[Any, ...] = (), **more: Any) -> Findings:
        seen = [self._file(at, blocks) for at, blocks in enumerate(files)]
        beside = [self._file(0, blocks) for blocks in temporaries]
        document = readback_of(seen, looked=9, mode=self.mode) | {"temporaries": beside}
        ledger = Ledger(events=tuple(self.events))
        readback = parse_readback(json.dumps(document | more))
        return consult(ledger, readback, cut_ms=ledger.cut_ms, tears_sectors=self.tears_sectors)

    def _file(self, file: int, blocks: Any) -> dict[str, Any]:
        seen = {"file": file, "name": f"f{file}", "listed": blocks is not None}
        if blocks is None or isinstance(blocks, int):
            return seen | {"errno": blocks or 2}
        return seen | {"size": len(blocks) * BLOCK_BYTES, "blocks": blocks}

    def _now_ms(self) -> float:
        return 10.0 * len(self.events)
