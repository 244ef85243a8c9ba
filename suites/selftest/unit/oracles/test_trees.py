"""The oracle of trees, against a model filesystem that is cut at every moment."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import count as counted
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from suites.selftest.unit.examples import examples
from suites.selftest.unit.oracles.tree_ledgers import (
    CHMOD,
    CREATE,
    FILE,
    LINK,
    MKDIR,
    PUNCH,
    RENAME,
    RMDIR,
    START,
    SYMLINK,
    UNLINK,
    WRITE,
    What,
    below,
    judged,
    ledger_of,
    left_by,
    story,
    without,
)
from suites.selftest.unit.oracles.tree_model import Model, Seen
from torture.facts.evidence.ledger import Begin, Done, Event, Hello, OperationKind
from torture.oracles.verdict.guarantee import Verdict

seeds = st.integers(0, 1 << 40)


@settings(max_examples=examples(60))
@given(seed=seeds, count=st.integers(2, 80), names_are_stable=st.booleans(), tears=st.booleans())
@example(seed=15_675, count=72, names_are_stable=False, tears=False)
def test_no_crash_of_the_model_is_taken_for_corruption(
    seed: int, count: int, names_are_stable: bool, tears: bool
) -> None:
    events = story(seed, count, names_are_stable=names_are_stable)
    dice = random.Random(seed)
    newest = dice.choice((0.0, 0.5, 0.95))
    trees = Model.after(tuple(events), tears_sectors=tears).crash(dice, newest=newest)
    last = judged(events, trees, tears_sectors=tears)
    assert last.verdict is Verdict.INTACT, last.reasons
    assert last.lost == 0
    moment = dice.randrange(count)
    earlier = Model.after(tuple(events[:moment]), tears_sectors=tears)
    seen = earlier.crash(dice, newest=newest)
    verdict = judged(events, seen, tears_sectors=tears).verdict
    assert verdict in (Verdict.INTACT, Verdict.ROLLED_BACK)


def _files(seen: Seen) -> list[Seen]:
    if seen["type"] == "dir":
        return [file for entry in seen["entries"].values() for file in _files(entry)]
    return [seen] if seen["type"] == "file" else []


def _directories(seen: Seen) -> list[Seen]:
    below = [entry for entry in seen["entries"].values() if entry["type"] == "dir"]
    return [seen, *(found for entry in below for found in _directories(entry))]


def _with_damage(trees: list[Seen], others: list[Seen], dice: random.Random) -> list[Seen]:
    """A copy in which one or two things are otherwise; `others` are from another moment."""
    trees = json.loads(json.dumps(trees))
    for _ in range(dice.choice((1, 1, 2))):
        files = [file for tree in trees for file in _files(tree)]
        directory = dice.choice([one for tree in trees for one in _directories(tree)])
        names = sorted(directory["entries"])
        others_files = [file for tree in others for file in _files(tree)]
        match dice.randrange(4 if files and others_files else 1):
            case 0 if names:
                name = dice.choice(names)
                entry = directory["entries"].pop(name)
                if dice.random() < 0.5:
                    directory["entries"][dice.choice((*names, "new"))] = entry
            case 1:
                file = dice.choice(files)
                word = dice.choice(("links", "mode", "mtime_ns", "size"))
                file[word] = dice.choice((file[word] + 1, dice.choice(others_files)[word]))
            case 2:
                file = dice.choice(files)
                if file["runs"]:
                    run = dice.choice(file["runs"])
                    run[2] = dice.choice(("zero", "garbage", dice.randrange(40)))
            case 3:
                file, other = dice.choice(files), dice.choice(others_files)
                file |= {
                    word: other[word] for word in ("xattrs", "runs", "size") if dice.random() < 0.6
                }
    return trees


@settings(max_examples=examples(80))
@given(seed=seeds, count=st.integers(2, 40), names_are_stable=st.booleans(), tears=st.booleans())
# a damaged directory is there twice, and not alike
@example(seed=34_691, count=42, names_are_stable=False, tears=False)
# it is there twice, and only one of them can be explained
@example(seed=36_984, count=53, names_are_stable=False, tears=False)
# zeroes behind the last sector that was written were not read back
@example(seed=21_604, count=39, names_are_stable=False, tears=False)
# a file is longer, and the zeroes that were never written there were not read back
@example(seed=550, count=26, names_are_stable=False, tears=False)
def test_the_verdict_is_that_of_all_moments_tried_one_by_one(
    seed: int, count: int, names_are_stable: bool, tears: bool
) -> None:
    events = story(seed, count, names_are_stable=names_are_stable)
    dice = random.Random(seed)
    models = [
        Model.after(tuple(events[:moment]), tears_sectors=tears) for moment in range(count + 1)
    ]
    trees, others = (
        models[dice.choice((count, dice.randrange(count + 1)))].crash(dice, newest=0.8)
        for _ in range(2)
    )
    seen = _with_damage(trees, others, dice)
    fitting = [moment for moment, model in enumerate(models) if model.explains(seen)]
    verdict = judged(events, seen, tears_sectors=tears).verdict
    if not fitting:
        assert verdict is Verdict.CORRUPTED
    elif fitting[-1] == count:
        assert verdict is Verdict.INTACT
    else:
        assert verdict is Verdict.ROLLED_BACK


def _named(what: Any) -> str:
    """The content of a transaction, by which this test distinguishes transactions."""
    if what["do"] == "write":
        first, _ = what["runs"][0]
        return "sparse" if first > 60 else str(what["how"])
    if what["do"] == "rename" and "instead_of" in what:
        return "replace"
    if what["do"] == "xattr":
        return "removexattr" if what["value"] is None else "setxattr"
    return str(what["do"])


_SYNCS = {"create": 2, "link": 2, "rename": 1, "dsync": 0, "osync": 0, "mmap": 0}
"""How many it takes; of others one."""
DOINGS = (
    "create", "buffered", "sparse", "direct", "dsync", "osync", "mmap", "truncate", "punch", "zero",
    "setxattr", "removexattr", "chmod", "utimens", "mkdir", "rmdir", "symlink", "link", "rename",
    "replace", "unlink",
)  # fmt: skip


def _unsynced(event: Event, seq: int) -> Event:
    """The same, lazily."""
    if not isinstance(event, Begin) or event.seq != seq:
        return event
    what = dict(event.what) | {"syncs": []}
    if what["do"] == "write":
        what["how"] = "buffered"
    return replace(event, what=what, kind=OperationKind.LAZY_TRANSACTION)


def _ends_with(doing: str, seed: int) -> tuple[list[Event], int] | None:
    """A story whose last event acknowledges that this was done and synced."""
    events = story(seed, 300)
    begun = {event.seq: event for event in events if isinstance(event, Begin)}
    for place, event in enumerate(events):
        if isinstance(event, Done) and place > 40:
            what = begun[event.seq].what
            if _named(what) == doing and len(what["syncs"]) >= _SYNCS.get(doing, 1):
                return events[: place + 1], event.seq
    return None


@pytest.mark.parametrize("doing", DOINGS)
def test_every_loss_of_synced_data_is_reported(doing: str) -> None:
    tried = 0
    for events, seq in filter(None, (_ends_with(doing, seed) for seed in counted())):
        forgotten = left_by(without(events, seq))
        if forgotten == left_by(events):
            continue  # the mode was the same before
        tried += 1
        assert judged(events, left_by(events)).verdict is Verdict.INTACT
        findings = judged(events, forgotten)
        assert findings.verdict in (Verdict.ROLLED_BACK, Verdict.CORRUPTED)
        assert findings.lost >= 1
        assert findings.reasons
        lazily = [_unsynced(event, seq) for event in events]
        assert judged(lazily, forgotten).verdict is Verdict.INTACT
        if tried == 2:
            return


@pytest.mark.parametrize("tears", [False, True])
def test_half_a_sector_is_allowed_only_of_a_write_under_way_and_where_sectors_tear(
    tears: bool,
) -> None:
    hello = Hello(t_ms=0.0, trial=1, mode="application")
    for do, is_allowed in ((WRITE, tears), (PUNCH, False), (CHMOD, False)):
        events = [hello, *ledger_of(*START, do)]
        trees = left_by(events)
        file = trees[0]["entries"]["f2"]
        file["runs"][4] = [4, 1, "garbage"]  # which both change
        findings = judged(events, trees, tears_sectors=tears)
        assert (findings.verdict is Verdict.INTACT) is is_allowed, (do, findings.reasons)
    events = [hello, *ledger_of(*START, WRITE)]
    trees = left_by(events)
    trees[0]["entries"]["f2"]["runs"][4:6] = [[4, 2, "garbage"]]
    assert judged(events, trees, tears_sectors=tears).verdict is Verdict.CORRUPTED, (
        "a split leaves one, and these are two"
    )
    durable = [hello, *ledger_of(*START, WRITE | {"syncs": [["fsync", FILE]]})]
    trees = left_by(durable)
    trees[0]["entries"]["f2"]["runs"][4] = [4, 1, "garbage"]
    assert judged(durable, trees, tears_sectors=tears).verdict is not Verdict.INTACT


# Names that are durable once their call returned (`torture.choices.transports.protocol.Traits`).


@pytest.mark.parametrize("what", [CREATE, MKDIR, RMDIR, SYMLINK, LINK, UNLINK, RENAME])
def test_where_names_are_stable_one_is_there_without_a_sync(what: What) -> None:
    """As over NFS, whose server answers once it is (`torture.choices.transports.protocol.Traits`)."""
    for is_stable in (True, False):
        changed = what | ({"names_are_stable": True} if is_stable else {})
        events = ledger_of(*START, changed, CHMOD)
        findings = judged(events, left_by(without(events, 7)))
        assert (findings.verdict is not Verdict.INTACT) is is_stable
        assert (findings.lost > 0) is is_stable
        assert judged(events, left_by(events)).verdict is Verdict.INTACT


def test_the_content_of_a_file_waits_for_a_sync_where_its_name_does_not() -> None:
    events = ledger_of(*START, CREATE | {"names_are_stable": True})
    trees = left_by(events)
    below(trees)["f12"] |= {"size": 0, "runs": []}
    assert judged(events, trees).verdict is Verdict.INTACT


@pytest.mark.parametrize(
    ("mode", "verdict"), [(0, "intact"), (0o644, "intact"), (0o600, "corrupted")]
)
def test_a_file_that_is_being_made_over_nfs_may_have_no_mode_yet(mode: int, verdict: str) -> None:
    whole = ledger_of(*START, CREATE | {"names_are_stable": True})
    for events, expected in ((whole[:-1], verdict), (whole, verdict if mode else "rolled-back")):
        trees = left_by(events)
        below(trees)["f12"] |= {"mode": mode, "size": 0, "runs": []}
        assert judged(events, trees).verdict == expected
