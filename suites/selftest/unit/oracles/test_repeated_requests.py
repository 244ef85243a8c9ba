"""A request that NFS does twice: its second answer is an acknowledgement, and its effect is asked for."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from suites.selftest.unit.good_evidence import begun, evidence, ledger, readback
from torture.facts.evidence.folder import Evidence
from torture.facts.evidence.ledger import (
    Begin,
    Cut,
    Done,
    Event,
    Failed,
    Ledger,
    OperationKind,
)
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.repeated_requests import (
    creations_that_met_their_file,
    repeated_as_done,
)
from torture.records.scoring.judge import judge
from torture.records.scoring.service import failed_writers

_NFS, _SMB = (f"{server}-standard-noslog-files-nasonly" for server in ("nfs4", "smb"))
_ENOENT, _EEXIST, _EIO = errno.ENOENT, errno.EEXIST, errno.EIO
_SEQ = 9


def _begun(kind: OperationKind = OperationKind.UNLINK) -> Begin:
    return begun(200, _SEQ, kind, blocks=() if kind is OperationKind.UNLINK else (0,))


def _failed(call: str = "unlink", error: int = _ENOENT) -> Failed:
    return Failed(t_ms=400, seq=_SEQ, errno=error, call=call)


def _cut(t_ms: float = 300) -> Cut:
    return Cut(t_ms=t_ms)


_DONE = Done(t_ms=400, seq=_SEQ)


@pytest.mark.parametrize(
    ("kind", "call", "error", "is_done"),
    [
        (OperationKind.UNLINK, "unlink", _ENOENT, True),
        (OperationKind.REPLACE, "rename", _ENOENT, True),
        (OperationKind.UNLINK, "unlink", _EIO, False),
        (OperationKind.UNLINK, "unlink", _EEXIST, False),
        (OperationKind.UNLINK, "fsync", _ENOENT, False),
        (OperationKind.REPLACE, "open", _ENOENT, False),
        (OperationKind.REPLACE, "open", _EEXIST, False),
        (OperationKind.REPLACE, "rename", _EIO, False),
        (OperationKind.CREATE, "open", _EEXIST, False),
        (OperationKind.OVERWRITE, "open", _ENOENT, False),
        (OperationKind.TRANSACTION, "unlink", _ENOENT, False),
    ],
)
def test_a_name_that_is_gone_was_removed_or_moved_before_and_any_other_error_stays_one(
    kind: OperationKind, call: str, error: int, *, is_done: bool
) -> None:
    events = (_begun(kind), _cut(), _failed(call, error))
    after = repeated_as_done(Ledger(events=events)).events
    assert after == ((*events[:2], _DONE) if is_done else events)


@pytest.mark.parametrize(
    ("do", "call", "error", "is_stable", "is_done"),
    [
        ("mkdir", "mkdir", _EEXIST, True, True),
        ("link", "link", _EEXIST, True, True),
        ("symlink", "symlink", _EEXIST, True, True),
        ("unlink", "unlink", _ENOENT, True, True),
        ("rmdir", "rmdir", _ENOENT, True, True),
        ("rename", "rename", _ENOENT, True, True),
        ("mkdir", "mkdir", _EEXIST, False, False),
        ("mkdir", "mkdir", _EIO, True, False),
        ("create", "create", _EEXIST, True, False),
        ("link", "fsync", _ENOENT, True, False),
    ],
)
def test_a_change_of_names_that_was_done_before_is_done_without_its_syncs(
    do: str, call: str, error: int, *, is_stable: bool, is_done: bool
) -> None:
    what = {"do": do, "whom": 4, "syncs": [["fsync", 4]]}
    what |= {"names_are_stable": True} if is_stable else {}
    begin = replace(_begun(OperationKind.TRANSACTION), what=what)
    events = (begin, _cut(), _failed(call, error))
    after = repeated_as_done(Ledger(events=events)).events
    unsynced = replace(begin, what=what | {"syncs": []})
    assert after == ((unsynced, _cut(), _DONE) if is_done else events)


@pytest.mark.parametrize(
    ("events", "is_done"),
    [
        ((_begun(), _failed(), _cut(500)), False),
        ((_cut(100), _begun(), _failed()), False),
        ((_cut(100), _begun(), _cut(), _failed()), True),
        ((_begun(), _cut(), _cut(350), _failed()), True),
    ],
)
def test_a_request_that_was_under_way_in_no_cut_was_sent_once(
    events: Sequence[Event], is_done: bool
) -> None:
    assert (_DONE in repeated_as_done(Ledger(events=tuple(events))).events) == is_done


def _seen(
    cell: str, kind: OperationKind, call: str, *blocks: Any, error: int = _ENOENT
) -> Evidence:
    """A client whose operation on the first file was under way, and these contents of its files."""
    events = ledger().events
    longer = (*events[:-1], _begun(kind), events[-1], _failed(call, error))
    made = evidence(filesystem="raw", found=readback(*blocks), ledger=Ledger(events=longer))
    return replace(made, spec={"cell": cell, "seed": 1})


def _without_first_file(made: Evidence) -> Evidence:
    ((name, text),) = made.readbacks.items()
    document = json.loads(text)
    gone = {"file": 0, "name": "f0", "listed": False, "errno": _ENOENT}
    document["files"][0] = gone
    return replace(made, readbacks={name: json.dumps(document)})


def test_a_file_that_was_unlinked_twice_is_gone() -> None:
    made = _without_first_file(_seen(_NFS, OperationKind.UNLINK, "unlink", 4, 5, 6))
    assert judge(made).verdict is Verdict.INTACT
    assert failed_writers(made.ledger).count == 1, "the record still counts its writer"


def test_a_file_that_is_there_was_not_unlinked_before() -> None:
    """An answer without its effect is a loss, as any acknowledgement is."""
    judged = judge(_seen(_NFS, OperationKind.UNLINK, "unlink", 4, 5, 6))
    assert judged.verdict.is_loss
    assert judged.lost == 1


def test_a_file_that_was_moved_twice_has_its_new_content() -> None:
    assert judge(_seen(_NFS, OperationKind.REPLACE, "rename", _SEQ, 5, 6)).verdict is Verdict.INTACT
    judged = judge(_seen(_NFS, OperationKind.REPLACE, "rename", 4, 5, 6))
    assert judged.verdict.is_loss, "the new file had been synced before it was moved"
    assert judged.lost == 1


def test_no_other_transport_does_a_request_twice() -> None:
    made = _without_first_file(_seen(_SMB, OperationKind.UNLINK, "unlink", 4, 5, 6))
    judged = judge(made)
    assert judged.verdict is Verdict.REPAIRED
    assert "1 of 1 writers failed for good: errno 2 in unlink" in judged.reasons


@pytest.mark.parametrize("kind", [OperationKind.CREATE, OperationKind.REPLACE])
def test_a_creation_that_met_its_own_file_names_the_finding(kind: OperationKind) -> None:
    """ZFS forgets a part of the creation's verifier: an error of the storage, and a known one."""
    judged = judge(_seen(_NFS, kind, "open", 4, 5, 6, error=_EEXIST))
    assert judged.verdict is Verdict.REPAIRED
    assert "creation of operation 9 was under way in the cut" in judged.reasons[-1]
    for other in (
        _seen(_SMB, kind, "open", 4, 5, 6, error=_EEXIST),
        _seen(_NFS, kind, "open", 4, 5, 6, error=_EIO),
        _seen(_NFS, kind, "fsync", 4, 5, 6, error=_EEXIST),
        _seen(_NFS, OperationKind.OVERWRITE, "open", 4, 5, 6, error=_EEXIST),
    ):
        assert not any("under way" in reason for reason in judge(other).reasons)


def test_a_creation_after_the_cut_met_another_file() -> None:
    events = (_cut(100), _begun(OperationKind.CREATE), _failed("open", _EEXIST))
    assert creations_that_met_their_file(Ledger(events=events)) == ()


def test_the_finding_is_in_the_document() -> None:
    text = (CHECKOUT / "docs" / "findings.md").read_text()
    (reason,) = creations_that_met_their_file(
        Ledger(events=(_begun(OperationKind.CREATE), _cut(), _failed("open", _EEXIST)))
    )
    assert f"## {reason.split(chr(39), 1)[1].rstrip(chr(39))}" in text
