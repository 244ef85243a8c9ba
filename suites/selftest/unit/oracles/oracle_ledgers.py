"""Ledgers of the load, drawn at random: writers that begin and end operations in any interleaving."""

from __future__ import annotations

import random

from torture.facts.evidence.ledger import Begin, Done, Event, Failed, OperationKind

WRITERS, FILES, BLOCKS, SECTORS, BLOCK_BYTES = 2, 4, 3, 8, 4096
IN_PLACE = (OperationKind.OVERWRITE, OperationKind.DSYNC, OperationKind.SCRIBBLE)


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
        size = sizes[file] or 0
        begin = Begin(
            t_ms=t_ms,
            seq=seq,
            writer=writer,
            kind=kind,
            file=file,
            blocks=blocks,
            size_blocks=size,
            sectors=_sectors(dice, kind),
        )
        events.append(begin)
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
