"""A ledger, step by step, and the oracle's findings in a read-back."""

from __future__ import annotations

import json
from typing import Any

from torture.facts.evidence.ledger import Begin, Cut, Done, Event, Ledger, OperationKind
from torture.oracles.verdict.blocks.history import parse_readback
from torture.oracles.verdict.blocks.oracle import consult
from torture.oracles.verdict.judgement import Findings

BLOCK_BYTES = 4096


class Story:
    """A ledger, step by step; every event is 10 ms after the last. `mode` is the load's."""

    def __init__(self, mode: str = "files", *, tears_sectors: bool = False) -> None:
        self.mode = mode
        self.tears_sectors = tears_sectors
        self.events: list[Event] = []

    def begin(
        self,
        kind: str,
        seq: int,
        *blocks: int,
        file: int = 0,
        size: int = 0,
        writer: int = 0,
        sectors: range = range(8),
    ) -> Story:
        begin = Begin(
            t_ms=self._now_ms(),
            seq=seq,
            writer=writer,
            kind=OperationKind(kind),
            file=file,
            blocks=blocks,
            size_blocks=size or len(blocks),
            sectors=sectors,
        )
        self.events.append(begin)
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
        document: dict[str, Any] = {
            "mode": self.mode,
            "trial": 7,
            "looked": 9,
            "files": [self._file(at, blocks) for at, blocks in enumerate(files)],
            "temporaries": [self._file(0, blocks) for blocks in temporaries],
            "unexpected": [],
            "complete": True,
        }
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
