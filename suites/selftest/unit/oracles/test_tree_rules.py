"""The earlier operations that each sync makes durable, one by one; and evidence that is none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from suites.selftest.unit.oracles.tree_ledgers import (
    ABOVE,
    APPEND,
    BELOW,
    CHMOD,
    FILE,
    LINK,
    LONGER,
    MKDIR,
    OTHER,
    PUNCH,
    REMOVEXATTR,
    RENAME,
    REPLACE,
    RMDIR,
    ROOT,
    SETXATTR,
    SHORTER,
    START,
    SYMLINK,
    UNLINK,
    UTIMENS,
    WRITE,
    What,
    below,
    judged,
    ledger_of,
    left_by,
    without,
)
from suites.selftest.unit.oracles.tree_model import Seen
from torture.facts.evidence.ledger import Begin, Done, Failed
from torture.oracles.verdict.guarantee import UnreadableError, Verdict
from torture.oracles.verdict.trees.tree_syncs import parse_trees

RULES: tuple[tuple[What, list[str | int], bool], ...] = (
    (WRITE, ["fsync", FILE], True), (WRITE, ["fdatasync", FILE], True), (WRITE, ["syncfs", 0], True),
    (WRITE, ["fsync", OTHER], False), (WRITE, ["fsync", ROOT], False),
    (APPEND, ["fsync", FILE], True), (APPEND, ["fdatasync", FILE], True),
    (LONGER, ["fsync", FILE], True), (LONGER, ["fdatasync", FILE], True),
    (LONGER, ["fsync", ROOT], False),
    (SHORTER, ["fsync", FILE], True), (SHORTER, ["fdatasync", FILE], True),
    (SHORTER, ["syncfs", 0], True),
    (PUNCH, ["fsync", FILE], True), (PUNCH, ["fdatasync", FILE], True),
    (PUNCH, ["fsync", OTHER], False),
    (CHMOD, ["fsync", FILE], True), (CHMOD, ["fdatasync", FILE], False), (CHMOD, ["syncfs", 0], True),
    (UTIMENS, ["fsync", FILE], True), (UTIMENS, ["fdatasync", FILE], False),
    (SETXATTR, ["fsync", FILE], True), (SETXATTR, ["fdatasync", FILE], False),
    (SETXATTR, ["syncfs", 0], True),
    (REMOVEXATTR, ["fsync", FILE], True), (REMOVEXATTR, ["fdatasync", FILE], False),
    (LINK, ["fsync", BELOW], True), (LINK, ["fsync", FILE], False), (LINK, ["syncfs", 0], True),
    (UNLINK, ["fsync", ROOT], True), (UNLINK, ["fsync", BELOW], False),
    (SYMLINK, ["fsync", BELOW], True), (SYMLINK, ["fsync", ABOVE], False),
    (MKDIR, ["fsync", BELOW], True), (MKDIR, ["fsync", ABOVE], False), (MKDIR, ["fsync", 12], False),
    (RMDIR, ["fsync", ABOVE], True), (RMDIR, ["fsync", ROOT], False),
    (RENAME, ["fsync", BELOW], True), (RENAME, ["fsync", ROOT], True),
    (RENAME, ["fsync", FILE], False),
    (RENAME, ["fsync", ABOVE], False), (REPLACE, ["fsync", ROOT], True),
    (REPLACE, ["fsync", FILE], False),
)  # fmt: skip
"""A lazy operation, a later sync, and whether that makes it durable."""


@pytest.mark.parametrize(("what", "sync", "is_durable"), RULES)
def test_a_later_sync_makes_durable_as_much_as_its_manual_says_and_no_more(
    what: What, sync: list[str | int], is_durable: bool
) -> None:
    # an operation of its own goes with the sync, on something that it does not touch
    late = {"do": "mkdir", "whom": 14, "at": [ROOT, "d14"], "syncs": [sync]}
    events = ledger_of(*START, what, late)
    assert judged(events, left_by(events)).verdict is Verdict.INTACT
    findings = judged(events, left_by(without(events, 7)))
    assert (findings.verdict is not Verdict.INTACT) is is_durable
    assert (findings.lost > 0) is is_durable


@pytest.mark.parametrize("how", ["dsync", "osync", "mmap"])
def test_a_write_that_syncs_itself_makes_its_own_range_durable_and_no_other(how: str) -> None:
    late = {"do": "write", "how": how, "whom": FILE, "runs": [[0, 1]]}
    events = ledger_of(*START, WRITE, late)
    for seq, is_durable in ((7, False), (8, True)):
        forgotten = left_by(without(events, seq))
        assert (judged(events, forgotten).verdict is not Verdict.INTACT) is is_durable


def _entries(trees: list[Seen]) -> dict[str, Seen]:
    entries: dict[str, Seen] = trees[0]["entries"]
    return entries


def test_a_renamed_file_is_at_one_of_its_names_with_any_syncs() -> None:
    events = ledger_of(*START, RENAME)
    before, after = left_by(ledger_of(*START)), left_by(events)
    for trees in (before, after):
        assert judged(events, trees).verdict is Verdict.INTACT
    both = json.loads(json.dumps(after))
    _entries(both)["f2"] = _entries(before)["f2"]
    assert judged(events, both).verdict is Verdict.INTACT
    neither = json.loads(json.dumps(before))
    del _entries(neither)["f2"]
    assert judged(events, neither).verdict is Verdict.CORRUPTED


def test_a_thing_that_went_back_to_its_old_name_has_to_be_at_one_of_them() -> None:
    """Each name leans on the other one here, and the search has to end."""
    back = RENAME | {"was": RENAME["at"], "at": RENAME["was"]}
    events = ledger_of(*START, RENAME, back)
    assert judged(events, left_by(events)).verdict is Verdict.INTACT
    assert judged(events, left_by(events[:-2])).verdict is Verdict.INTACT
    nowhere = left_by(ledger_of(*START, RENAME, back, UNLINK))
    assert judged(events, nowhere).verdict is Verdict.CORRUPTED


def test_a_file_renamed_on_and_on_is_at_one_of_all_these_names() -> None:
    on = RENAME | {"was": [BELOW, "r"], "at": [ABOVE, "r2"]}
    gone = UNLINK | {"at": [ABOVE, "r2"]}
    events = ledger_of(*START, RENAME, on)
    nowhere = left_by(ledger_of(*START, RENAME, on, gone))
    assert judged(events, nowhere).verdict is Verdict.CORRUPTED
    assert judged(ledger_of(*START, RENAME, on, gone), nowhere).verdict is Verdict.INTACT


def test_a_file_renamed_into_a_missing_directory_is_gone_with_it() -> None:
    new = {"do": "mkdir", "whom": 12, "at": [ROOT, "d12"]}
    into = RENAME | {"at": [12, "r"], "syncs": [["fsync", 12]]}
    events = ledger_of(*START, new, into)
    trees = left_by(ledger_of(*START))
    del _entries(trees)["f2"]
    assert judged(events, trees).verdict is Verdict.INTACT


def test_a_name_that_is_renamed_over_is_never_gone() -> None:
    events = ledger_of(*START, REPLACE)
    trees = left_by(events)
    del _entries(trees)["f4"]
    assert judged(events, trees).verdict is Verdict.CORRUPTED


@pytest.mark.parametrize(
    ("size", "verdict"),
    [(8, "intact"), (9, "intact"), (20, "intact"), (21, "corrupted"), (7, "corrupted")],
)
def test_a_size_on_its_way_is_between_the_old_one_and_the_new(size: int, verdict: str) -> None:
    events = ledger_of(*START, LONGER)
    trees = left_by(events)
    file = _entries(trees)["f2"]
    file["size"] = size * 512
    file["runs"] = [[0, min(size, 8), 1], [8, max(0, size - 8), "zero"]]
    assert judged(events, trees).verdict == verdict
    synced = ledger_of(*START, LONGER | {"syncs": [["fdatasync", FILE]]})
    assert (judged(synced, trees).verdict is Verdict.INTACT) is (size == 20)


def test_a_truncated_tail_does_not_come_back_with_the_length() -> None:
    long_again = LONGER | {"syncs": [["fsync", FILE]]}
    events = ledger_of(*START, SHORTER | {"syncs": [["fdatasync", FILE]]}, long_again)
    trees = left_by(events)
    assert judged(events, trees).verdict is Verdict.INTACT
    _entries(trees)["f2"]["runs"] = [[0, 8, 1], [8, 12, "zero"]]
    assert judged(events, trees).verdict is Verdict.CORRUPTED


def test_two_names_of_one_file_are_not_two_files() -> None:
    link = LINK | {"at": [ROOT, "l"], "syncs": [["fsync", FILE], ["fsync", ROOT]]}
    events = ledger_of(*START, link)
    trees = left_by(events)
    _entries(trees)["l"] = dict(_entries(trees)["l"]) | {"inode": 99}
    findings = judged(events, trees)
    assert findings.verdict is Verdict.CORRUPTED
    assert "several" in " ".join(findings.reasons)


def test_a_number_of_links_waits_for_the_name_it_counts() -> None:
    """The name's directory was not synced: the file's own sync says nothing of it."""
    events = ledger_of(*START, LINK, CHMOD | {"syncs": [["fsync", FILE]]})
    trees = left_by(ledger_of(*START, CHMOD))
    assert judged(events, trees).verdict is Verdict.INTACT
    both = ledger_of(*START, LINK | {"syncs": [["fsync", FILE], ["fsync", BELOW]]})
    counted = left_by(both)
    _entries(counted)["f2"]["links"] = 1
    assert judged(both, counted).verdict is not Verdict.INTACT


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("f2", {"errno": 5}),
        ("f2", {"type": "other", "mode": 0o10644}),
        ("s10", {"type": "symlink", "target": ""}),
    ],
)
def test_an_unusable_entry_or_a_changed_target_is_lost(name: str, found: Seen) -> None:
    events = ledger_of(*START)
    trees = left_by(events)
    _entries(trees)[name] = found
    findings = judged(events, trees)
    assert findings.verdict is Verdict.CORRUPTED
    assert findings.lost == 1


@pytest.mark.parametrize("found", [{"errno": 5}, {"type": "other", "mode": 0o10644}])
def test_with_a_writers_own_directory_all_is_lost_that_was_acknowledged_of_it(found: Seen) -> None:
    others = {"do": "mkdir", "whom": 3, "at": [1, "d3"], "syncs": [["fsync", 1]]}
    events = ledger_of(*START, CHMOD, others)
    first, second = left_by(events)
    for trees, lost in (([found, second], len(START)), ([first, found], 1)):
        findings = judged(events, trees)
        assert (findings.verdict, findings.lost) == (Verdict.CORRUPTED, lost)
        assert (findings.missing, findings.foreign) == (1, 0)
    assert judged(events, [found, found]).lost == findings.acknowledged


def test_a_transaction_that_failed_forbids_nothing_and_is_named() -> None:
    begun, _ = ledger_of(CHMOD | {"syncs": [["fsync", FILE]]})
    assert isinstance(begun, Begin)
    tried = replace(begun, t_ms=99, seq=99)
    events = [*ledger_of(*START), tried, Failed(t_ms=100, seq=99, errno=5, call="fsync")]
    for trees in (left_by(ledger_of(*START)), left_by(ledger_of(*START, CHMOD))):
        findings = judged(events, trees)
        assert findings.verdict is Verdict.INTACT
        assert "99 failed" in " ".join(findings.reasons)


def test_a_rollback_is_measured_from_the_first_that_is_gone() -> None:
    events = ledger_of(*START)
    findings = judged(events, left_by(ledger_of(*START[:-2])))
    assert findings.verdict is Verdict.ROLLED_BACK
    assert findings.rollback_ms == 6.5 - 5.5
    assert findings.lost == 2


def test_a_ledger_that_contradicts_itself_is_no_evidence() -> None:
    with pytest.raises(UnreadableError, match="had not begun"):
        judged([Done(t_ms=1, seq=1)], left_by([]))
    with pytest.raises(UnreadableError, match="unknown call"):
        judged(ledger_of({"do": "create"}), left_by([]))


GOOD = {"trial": 1, "mode": "application", "complete": True, "trees": left_by(ledger_of(*START))}


def test_a_read_back_has_the_fields_it_should() -> None:
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


@pytest.mark.parametrize("how", ["dsync", "osync", "mmap"])
def test_durable_data_is_within_the_file_with_any_size(how: str) -> None:
    """The size that its data is read by is synced with them, though an older call had set it."""
    late = {"do": "write", "how": how, "whom": FILE, "runs": [[12, 2]]}
    events = ledger_of(*START, LONGER, late)
    short = left_by(without(events, 7, 8))
    findings = judged(events, short)
    assert (findings.verdict, findings.lost) == (Verdict.ROLLED_BACK, 1)
    assert judged(events, left_by(events)).verdict is Verdict.INTACT
    lazily = ledger_of(*START, LONGER, late | {"how": "buffered"})
    assert judged(lazily, short).verdict is Verdict.INTACT


@pytest.mark.parametrize(
    ("syncs", "links", "is_allowed"),
    [
        ([["fsync", BELOW]], 2, True),
        ([["fsync", BELOW]], 3, False),
        ([["fsync", BELOW], ["fsync", ROOT]], 2, False),
    ],
)
def test_a_renamed_file_counts_twice_while_it_has_both_names(
    syncs: list[list[object]], links: int, is_allowed: bool
) -> None:
    """The new name's directory was synced, and the old name's was not: seen with btrfs."""
    events = ledger_of(*START, RENAME | {"syncs": syncs})
    trees = left_by(events)
    below(trees)["r"]["links"] = links
    _entries(trees)["f2"] = dict(below(trees)["r"])
    assert (judged(events, trees).verdict is Verdict.INTACT) is is_allowed


def test_a_number_of_links_is_exact_once_its_names_are_durable() -> None:
    gone, again = UNLINK | {"at": [BELOW, "l"]}, LINK | {"at": [BELOW, "l2"]}
    linked = LINK | {"syncs": [["fsync", FILE], ["fsync", BELOW]]}
    for syncs, is_settled in (([["fsync", FILE], ["fsync", BELOW]], True), ([], False)):
        events = ledger_of(*START, linked, gone, again, CHMOD | {"syncs": syncs})
        trees = left_by(events)
        assert judged(events, trees).verdict is Verdict.INTACT
        _entries(trees)["f2"]["links"] = 3
        below(trees)["l2"]["links"] = 3
        assert (judged(events, trees).verdict is Verdict.INTACT) is not is_settled
