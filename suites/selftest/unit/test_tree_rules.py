"""What each sync makes durable of what was done before it, one by one; and evidence that is none."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from suites.selftest.unit.tree_model import Model, Seen
from torture.evidence.ledger import Begin, Done, Event, Failed, Ledger, OperationKind
from torture.verdict.data_findings import Findings
from torture.verdict.trees.tree_oracle import consult_trees
from torture.verdict.trees.tree_seen import parse_trees
from torture.verdict.unreadable import UnreadableError
from torture.verdict.verdicts import Verdict

ROOT, FILE, OTHER, ABOVE, BELOW, LINK = 0, 2, 4, 6, 8, 10
What = dict[str, Any]
"""The directory of writer 0, two files in it, a directory, one in that, and a symbolic link."""

_START: tuple[What, ...] = (
    {"do": "create", "whom": FILE, "at": [ROOT, "f2"], "runs": [[0, 8]],
     "syncs": [["fsync", FILE], ["fsync", ROOT]]},
    {"do": "create", "whom": OTHER, "at": [ROOT, "f4"], "runs": [[0, 4]],
     "syncs": [["fsync", OTHER], ["fsync", ROOT]]},
    {"do": "mkdir", "whom": ABOVE, "at": [ROOT, "d6"], "syncs": [["fsync", ROOT]]},
    {"do": "mkdir", "whom": BELOW, "at": [ABOVE, "d8"], "syncs": [["fsync", ABOVE]]},
    {"do": "symlink", "whom": LINK, "at": [ROOT, "s10"], "target": "to", "syncs": [["fsync", ROOT]]},
    {"do": "xattr", "whom": FILE, "name": "user.a", "value": "1", "syncs": [["fsync", FILE]]},
)  # fmt: skip

_WRITE = {"do": "write", "how": "buffered", "whom": FILE, "runs": [[4, 2]]}
_APPEND = {"do": "write", "how": "buffered", "whom": FILE, "runs": [[8, 2]]}
_LONGER = {"do": "truncate", "whom": FILE, "sectors": 20}
_SHORTER = {"do": "truncate", "whom": FILE, "sectors": 3}
_PUNCH = {"do": "punch", "whom": FILE, "run": [2, 3]}
_CHMOD = {"do": "chmod", "whom": FILE, "mode": 0o600}
_UTIMENS = {"do": "utimens", "whom": FILE, "mtime": 5}
_SETXATTR = {"do": "xattr", "whom": FILE, "name": "user.b", "value": "2"}
_REMOVEXATTR = {"do": "xattr", "whom": FILE, "name": "user.a", "value": None}
_LINK = {"do": "link", "whom": FILE, "at": [BELOW, "l"]}
_UNLINK = {"do": "unlink", "whom": FILE, "at": [ROOT, "f2"]}
_SYMLINK = {"do": "symlink", "whom": 12, "at": [BELOW, "s12"], "target": "away"}
_MKDIR = {"do": "mkdir", "whom": 12, "at": [BELOW, "d12"]}
_RMDIR = {"do": "rmdir", "whom": BELOW, "at": [ABOVE, "d8"]}
_RENAME = {"do": "rename", "whom": FILE, "was": [ROOT, "f2"], "at": [BELOW, "r"]}
_REPLACE = {
    "do": "rename",
    "whom": FILE,
    "was": [ROOT, "f2"],
    "at": [ROOT, "f4"],
    "instead_of": OTHER,
}

RULES: tuple[tuple[What, list[str | int], bool], ...] = (
    (_WRITE, ["fsync", FILE], True), (_WRITE, ["fdatasync", FILE], True), (_WRITE, ["syncfs", 0], True),
    (_WRITE, ["fsync", OTHER], False), (_WRITE, ["fsync", ROOT], False),
    (_APPEND, ["fsync", FILE], True), (_APPEND, ["fdatasync", FILE], True),
    (_LONGER, ["fsync", FILE], True), (_LONGER, ["fdatasync", FILE], True),
    (_LONGER, ["fsync", ROOT], False),
    (_SHORTER, ["fsync", FILE], True), (_SHORTER, ["fdatasync", FILE], True),
    (_SHORTER, ["syncfs", 0], True),
    (_PUNCH, ["fsync", FILE], True), (_PUNCH, ["fdatasync", FILE], True),
    (_PUNCH, ["fsync", OTHER], False),
    (_CHMOD, ["fsync", FILE], True), (_CHMOD, ["fdatasync", FILE], False), (_CHMOD, ["syncfs", 0], True),
    (_UTIMENS, ["fsync", FILE], True), (_UTIMENS, ["fdatasync", FILE], False),
    (_SETXATTR, ["fsync", FILE], True), (_SETXATTR, ["fdatasync", FILE], False),
    (_SETXATTR, ["syncfs", 0], True),
    (_REMOVEXATTR, ["fsync", FILE], True), (_REMOVEXATTR, ["fdatasync", FILE], False),
    (_LINK, ["fsync", BELOW], True), (_LINK, ["fsync", FILE], False), (_LINK, ["syncfs", 0], True),
    (_UNLINK, ["fsync", ROOT], True), (_UNLINK, ["fsync", BELOW], False),
    (_SYMLINK, ["fsync", BELOW], True), (_SYMLINK, ["fsync", ABOVE], False),
    (_MKDIR, ["fsync", BELOW], True), (_MKDIR, ["fsync", ABOVE], False), (_MKDIR, ["fsync", 12], False),
    (_RMDIR, ["fsync", ABOVE], True), (_RMDIR, ["fsync", ROOT], False),
    (_RENAME, ["fsync", BELOW], True), (_RENAME, ["fsync", ROOT], True),
    (_RENAME, ["fsync", FILE], False),
    (_RENAME, ["fsync", ABOVE], False), (_REPLACE, ["fsync", ROOT], True),
    (_REPLACE, ["fsync", FILE], False),
)  # fmt: skip
"""What is done lazily, what is synced later, and whether that makes it durable."""


def told(*doings: What) -> list[Event]:
    """The ledger of these: what has an odd number is the second writer's."""
    events: list[Event] = []
    for seq, what in enumerate(doings, start=1):
        whole = {"syncs": [], **what}
        kind = OperationKind.TRANSACTION if whole["syncs"] else OperationKind.LAZY_TRANSACTION
        writer = what.get("whom", 0) % 2
        begin = Begin(
            t_ms=seq,
            seq=seq,
            writer=writer,
            kind=kind,
            file=0,
            blocks=(),
            size_blocks=0,
            what=whole,
        )
        events += [begin, Done(t_ms=seq + 0.5, seq=seq)]
    return events


def left_by(events: list[Event]) -> list[Seen]:
    """All of it, and nothing lost."""
    return Model.after(tuple(events)).crash(random.Random(0), newest=1.0)


def judged(events: list[Event], trees: list[Seen]) -> Findings:
    document = {"trial": 1, "mode": "application", "trees": trees, "complete": True}
    seen = parse_trees(json.dumps(document))
    return consult_trees(Ledger(events=tuple(events)), seen, cut_ms=None)


@pytest.mark.parametrize(("what", "sync", "is_durable"), RULES)
def test_a_later_sync_makes_durable_what_its_manual_says_and_no_more(
    what: What, sync: list[str | int], is_durable: bool
) -> None:
    # an operation of its own goes with the sync, on something that it does not touch
    late = {"do": "mkdir", "whom": 14, "at": [ROOT, "d14"], "syncs": [sync]}
    events = told(*_START, what, late)
    forgotten = [one for one in events if not (isinstance(one, (Begin, Done)) and one.seq == 7)]
    assert judged(events, left_by(events)).verdict is Verdict.INTACT
    findings = judged(events, left_by(forgotten))
    assert (findings.verdict is not Verdict.INTACT) is is_durable
    assert (findings.lost > 0) is is_durable


_CREATE = {"do": "create", "whom": 12, "at": [BELOW, "f12"], "runs": [[0, 8]]}


@pytest.mark.parametrize("what", [_CREATE, _MKDIR, _RMDIR, _SYMLINK, _LINK, _UNLINK, _RENAME])
def test_where_names_are_stable_one_is_there_without_a_sync(what: What) -> None:
    """As over NFS, whose server answers once it is (`torture.transports.protocol.Traits`)."""
    for is_stable in (True, False):
        told_of = what | ({"names_are_stable": True} if is_stable else {})
        events = told(*_START, told_of, _CHMOD)
        forgotten = [one for one in events if not (isinstance(one, (Begin, Done)) and one.seq == 7)]
        findings = judged(events, left_by(forgotten))
        assert (findings.verdict is not Verdict.INTACT) is is_stable
        assert (findings.lost > 0) is is_stable
        assert judged(events, left_by(events)).verdict is Verdict.INTACT


def test_what_is_in_a_file_waits_for_a_sync_where_its_name_does_not() -> None:
    events = told(*_START, _CREATE | {"names_are_stable": True})
    trees = left_by(events)
    made = trees[0]["entries"]["d6"]["entries"]["d8"]["entries"]["f12"]
    made |= {"size": 0, "runs": []}
    assert judged(events, trees).verdict is Verdict.INTACT


@pytest.mark.parametrize("how", ["dsync", "osync", "mmap"])
def test_what_syncs_itself_makes_its_own_range_durable_and_no_other(how: str) -> None:
    late = {"do": "write", "how": how, "whom": FILE, "runs": [[0, 1]]}
    events = told(*_START, _WRITE, late)
    for seq, is_durable in ((7, False), (8, True)):
        forgotten = [
            one for one in events if not (isinstance(one, (Begin, Done)) and one.seq == seq)
        ]
        assert (judged(events, left_by(forgotten)).verdict is not Verdict.INTACT) is is_durable


def _entries(trees: list[Seen]) -> dict[str, Seen]:
    entries: dict[str, Seen] = trees[0]["entries"]
    return entries


def test_what_is_renamed_is_at_one_of_its_names_whatever_was_synced() -> None:
    events = told(*_START, _RENAME)
    before, after = left_by(told(*_START)), left_by(events)
    for trees in (before, after):
        assert judged(events, trees).verdict is Verdict.INTACT
    both = json.loads(json.dumps(after))
    _entries(both)["f2"] = _entries(before)["f2"]
    assert judged(events, both).verdict is Verdict.INTACT
    neither = json.loads(json.dumps(before))
    del _entries(neither)["f2"]
    assert judged(events, neither).verdict is Verdict.CORRUPTED


def test_what_was_renamed_on_and_on_is_at_one_of_all_these_names() -> None:
    on = {"do": "rename", "whom": FILE, "was": [BELOW, "r"], "at": [ABOVE, "r2"]}
    gone = {"do": "unlink", "whom": FILE, "at": [ABOVE, "r2"]}
    events = told(*_START, _RENAME, on)
    nowhere = left_by(told(*_START, _RENAME, on, gone))
    assert judged(events, nowhere).verdict is Verdict.CORRUPTED
    assert judged(told(*_START, _RENAME, on, gone), nowhere).verdict is Verdict.INTACT


def test_what_was_renamed_into_a_directory_that_is_not_there_is_gone_with_it() -> None:
    new = {"do": "mkdir", "whom": 12, "at": [ROOT, "d12"]}
    into = {
        "do": "rename",
        "whom": FILE,
        "was": [ROOT, "f2"],
        "at": [12, "r"],
        "syncs": [["fsync", 12]],
    }
    events = told(*_START, new, into)
    trees = left_by(told(*_START))
    del _entries(trees)["f2"]
    assert judged(events, trees).verdict is Verdict.INTACT


def test_a_name_that_is_renamed_over_is_never_gone() -> None:
    events = told(*_START, _REPLACE)
    trees = left_by(events)
    del _entries(trees)["f4"]
    assert judged(events, trees).verdict is Verdict.CORRUPTED


@pytest.mark.parametrize(
    ("size", "verdict"),
    [(8, "intact"), (9, "intact"), (20, "intact"), (21, "corrupted"), (7, "corrupted")],
)
def test_a_size_on_its_way_is_between_the_old_one_and_the_new(size: int, verdict: str) -> None:
    events = told(*_START, _LONGER)
    trees = left_by(events)
    file = _entries(trees)["f2"]
    file["size"] = size * 512
    file["runs"] = [[0, min(size, 8), 1], [8, max(0, size - 8), "zero"]]
    assert judged(events, trees).verdict == verdict
    synced = told(*_START, _LONGER | {"syncs": [["fdatasync", FILE]]})
    assert (judged(synced, trees).verdict is Verdict.INTACT) is (size == 20)


def test_what_was_cut_off_does_not_come_back_with_the_length() -> None:
    long_again = _LONGER | {"syncs": [["fsync", FILE]]}
    events = told(*_START, _SHORTER | {"syncs": [["fdatasync", FILE]]}, long_again)
    trees = left_by(events)
    assert judged(events, trees).verdict is Verdict.INTACT
    _entries(trees)["f2"]["runs"] = [[0, 8, 1], [8, 12, "zero"]]
    assert judged(events, trees).verdict is Verdict.CORRUPTED


def test_two_names_of_one_file_are_not_two_files() -> None:
    link = _LINK | {"at": [ROOT, "l"], "syncs": [["fsync", FILE], ["fsync", ROOT]]}
    events = told(*_START, link)
    trees = left_by(events)
    _entries(trees)["l"] = dict(_entries(trees)["l"]) | {"inode": 99}
    findings = judged(events, trees)
    assert findings.verdict is Verdict.CORRUPTED
    assert "several" in " ".join(findings.reasons)


def test_a_number_of_links_waits_for_the_name_it_counts() -> None:
    """The name's directory was not synced: the file's own sync says nothing of it."""
    events = told(*_START, _LINK, _CHMOD | {"syncs": [["fsync", FILE]]})
    trees = left_by(told(*_START, _CHMOD))
    assert judged(events, trees).verdict is Verdict.INTACT
    both = told(*_START, _LINK | {"syncs": [["fsync", FILE], ["fsync", BELOW]]})
    counted = left_by(both)
    _entries(counted)["f2"]["links"] = 1
    assert judged(both, counted).verdict is not Verdict.INTACT


@pytest.mark.parametrize("found", [{"errno": 5}, {"type": "other", "mode": 0o10644}])
def test_what_cannot_be_used_is_lost(found: Seen) -> None:
    events = told(*_START)
    trees = left_by(events)
    _entries(trees)["f2"] = found
    findings = judged(events, trees)
    assert findings.verdict is Verdict.CORRUPTED
    assert findings.lost == 1


@pytest.mark.parametrize("found", [{"errno": 5}, {"type": "other", "mode": 0o10644}])
def test_with_a_writers_own_directory_all_is_lost_that_was_acknowledged_of_it(found: Seen) -> None:
    others = {"do": "mkdir", "whom": 3, "at": [1, "d3"], "syncs": [["fsync", 1]]}
    events = told(*_START, _CHMOD, others)
    first, second = left_by(events)
    for trees, lost in (([found, second], len(_START)), ([first, found], 1)):
        findings = judged(events, trees)
        assert (findings.verdict, findings.lost) == (Verdict.CORRUPTED, lost)
        assert (findings.missing, findings.foreign) == (1, 0)
    assert judged(events, [found, found]).lost == findings.acknowledged


def test_a_symbolic_link_to_somewhere_else_is_told() -> None:
    trees = left_by(told(*_START))
    _entries(trees)["s10"]["target"] = ""
    assert judged(told(*_START), trees).verdict is Verdict.CORRUPTED


def test_a_transaction_that_failed_forbids_nothing_and_is_named() -> None:
    begun, _ = told(_CHMOD | {"syncs": [["fsync", FILE]]})
    assert isinstance(begun, Begin)
    tried = Begin(
        t_ms=99,
        seq=99,
        writer=0,
        kind=begun.kind,
        file=0,
        blocks=(),
        size_blocks=0,
        what=begun.what,
    )
    events = [*told(*_START), tried, Failed(t_ms=100, seq=99, errno=5, call="fsync")]
    for trees in (left_by(told(*_START)), left_by(told(*_START, _CHMOD))):
        findings = judged(events, trees)
        assert findings.verdict is Verdict.INTACT
        assert "99 failed" in " ".join(findings.reasons)


def test_a_rollback_is_measured_from_the_first_that_is_gone() -> None:
    events = told(*_START)
    findings = judged(events, left_by(told(*_START[:-2])))
    assert findings.verdict is Verdict.ROLLED_BACK
    assert findings.rollback_ms == 6.5 - 5.5
    assert findings.lost == 2


def test_a_ledger_that_contradicts_itself_is_no_evidence() -> None:
    with pytest.raises(UnreadableError, match="had not begun"):
        judged([Done(t_ms=1, seq=1)], left_by([]))
    with pytest.raises(UnreadableError, match="unheard of"):
        judged(told({"do": "create"}), left_by([]))


GOOD = {"trial": 1, "mode": "application", "complete": True, "trees": left_by(told(*_START))}


def test_a_read_back_is_what_it_says() -> None:
    seen = parse_trees(json.dumps(GOOD))
    assert (seen.trial, seen.mode, len(seen.trees)) == (1, "application", 2)


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "[]", json.dumps(GOOD)[:-9], json.dumps(GOOD | {"complete": False}),
        json.dumps(GOOD | {"trees": [{"type": "dir"}]}), json.dumps(GOOD | {"trees": 1}),
        json.dumps(GOOD).replace('"size"', '"length"'),
        json.dumps(GOOD).replace("[0, 1, 1]", "[0, 1, null]"),
    ],
)  # fmt: skip
def test_one_that_is_cut_off_or_garbled_is_no_evidence(text: str) -> None:
    with pytest.raises(UnreadableError):
        parse_trees(text)
