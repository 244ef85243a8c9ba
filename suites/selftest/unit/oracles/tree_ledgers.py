"""Ledgers of what writers did in their trees, drawn or written by hand, and the oracle's verdict."""

from __future__ import annotations

import json
import random
from typing import Any

from suites.selftest.unit.good_evidence import begun
from suites.selftest.unit.oracles.tree_model import WRITERS, Model, Seen
from torture.facts.evidence.ledger import Begin, Done, Event, Ledger, OperationKind
from torture.oracles.verdict.judgement import Findings
from torture.oracles.verdict.trees.tree_oracle import consult_trees
from torture.oracles.verdict.trees.tree_syncs import parse_trees
from vmimages.client.load.applications.posix.drawing import OPTIONAL, Drawing

What = dict[str, Any]
ROOT, FILE, OTHER, ABOVE, BELOW, SYMBOLIC = 0, 2, 4, 6, 8, 10
"""The directory of writer 0, two files in it, a directory, one in that, and a symbolic link."""

START: tuple[What, ...] = (
    {"do": "create", "whom": FILE, "at": [ROOT, "f2"], "runs": [[0, 8]],
     "syncs": [["fsync", FILE], ["fsync", ROOT]]},
    {"do": "create", "whom": OTHER, "at": [ROOT, "f4"], "runs": [[0, 4]],
     "syncs": [["fsync", OTHER], ["fsync", ROOT]]},
    {"do": "mkdir", "whom": ABOVE, "at": [ROOT, "d6"], "syncs": [["fsync", ROOT]]},
    {"do": "mkdir", "whom": BELOW, "at": [ABOVE, "d8"], "syncs": [["fsync", ABOVE]]},
    {"do": "symlink", "whom": SYMBOLIC, "at": [ROOT, "s10"], "target": "to", "syncs": [["fsync", ROOT]]},
    {"do": "xattr", "whom": FILE, "name": "user.a", "value": "1", "syncs": [["fsync", FILE]]},
)  # fmt: skip

WRITE = {"do": "write", "how": "buffered", "whom": FILE, "runs": [[4, 2]]}
APPEND = {"do": "write", "how": "buffered", "whom": FILE, "runs": [[8, 2]]}
LONGER = {"do": "truncate", "whom": FILE, "sectors": 20}
SHORTER = {"do": "truncate", "whom": FILE, "sectors": 3}
PUNCH = {"do": "punch", "whom": FILE, "run": [2, 3]}
CHMOD = {"do": "chmod", "whom": FILE, "mode": 0o600}
UTIMENS = {"do": "utimens", "whom": FILE, "mtime": 5}
SETXATTR = {"do": "xattr", "whom": FILE, "name": "user.b", "value": "2"}
REMOVEXATTR = {"do": "xattr", "whom": FILE, "name": "user.a", "value": None}
LINK = {"do": "link", "whom": FILE, "at": [BELOW, "l"]}
UNLINK = {"do": "unlink", "whom": FILE, "at": [ROOT, "f2"]}
SYMLINK = {"do": "symlink", "whom": 12, "at": [BELOW, "s12"], "target": "away"}
MKDIR = {"do": "mkdir", "whom": 12, "at": [BELOW, "d12"]}
RMDIR = {"do": "rmdir", "whom": BELOW, "at": [ABOVE, "d8"]}
RENAME = {"do": "rename", "whom": FILE, "was": [ROOT, "f2"], "at": [BELOW, "r"]}
REPLACE = RENAME | {"at": [ROOT, "f4"], "instead_of": OTHER}
CREATE = {"do": "create", "whom": 12, "at": [BELOW, "f12"], "runs": [[0, 8]]}


def story(seed: int, count: int, *, names_are_stable: bool = False) -> list[Event]:
    """The operations of two writers, each one at a time; some are never done."""
    dice = random.Random(seed)
    job = {"seed": seed, "writers": WRITERS, "names_are_stable": names_are_stable}
    drawings = [Drawing(job, writer, OPTIONAL) for writer in range(WRITERS)]
    busy: dict[int, int] = {}
    events: list[Event] = []
    seq = 0
    for place in range(count):
        writer = dice.randrange(WRITERS)
        if writer in busy:
            events.append(Done(t_ms=10.0 * place, seq=busy.pop(writer)))
            continue
        seq += 1
        busy[writer] = seq
        drawn = drawings[writer].draw()
        kind = OperationKind(drawn.kind)
        events.append(begun(10.0 * place, seq, kind, writer=writer, blocks=(), what=drawn.what))
    return events


def ledger_of(*doings: What) -> list[Event]:
    """The ledger of these: what has an odd number is the second writer's."""
    events: list[Event] = []
    for seq, what in enumerate(doings, start=1):
        whole = {"syncs": [], **what}
        kind = OperationKind.TRANSACTION if whole["syncs"] else OperationKind.LAZY_TRANSACTION
        writer = what.get("whom", 0) % 2
        begin = begun(seq, seq, kind, writer=writer, blocks=(), what=whole)
        events += [begin, Done(t_ms=seq + 0.5, seq=seq)]
    return events


def without(events: list[Event], *seqs: int) -> list[Event]:
    """The same ledger, without these operations."""
    return [one for one in events if not (isinstance(one, Begin | Done) and one.seq in seqs)]


def left_by(events: list[Event]) -> list[Seen]:
    """All of it, and nothing lost."""
    return Model.after(tuple(events)).crash(random.Random(0), newest=1.0)


def below(trees: list[Seen]) -> dict[str, Seen]:
    """The entries of `BELOW`."""
    entries: dict[str, Seen] = trees[0]["entries"]["d6"]["entries"]["d8"]["entries"]
    return entries


def judged(events: list[Event], trees: list[Seen], *, tears_sectors: bool = False) -> Findings:
    document = {"trial": 1, "mode": "application", "trees": trees, "complete": True}
    seen = parse_trees(json.dumps(document))
    return consult_trees(
        Ledger(events=tuple(events)), seen, cut_ms=None, tears_sectors=tears_sectors
    )
