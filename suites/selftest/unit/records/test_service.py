"""The speed of a cell, and acknowledgements without a NAS, from made-up ledgers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from suites.selftest.unit.good_evidence import evidence
from suites.selftest.unit.report_records import make_records
from torture.choices.matrix.cells import Cell
from torture.facts.axes.sync import Sync
from torture.facts.evidence.cut_document import Confirmation, CutDocument, LinkFailure
from torture.facts.evidence.folder import (
    LEDGER,
    Evidence,
    load_evidence,
    write_document,
)
from torture.facts.evidence.ledger import parse_ledger
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.trials import Absence, Speed, TrialRecord
from torture.records.scoring.score import score
from torture.records.scoring.service import absence_in_words, absence_of, speed_of

CUT_MS, PUBLISHING_MS, PUBLISHED_MS = 1000.0, 9000.0, 9500.0
AT_CUT = CutDocument(t_ms=CUT_MS, publishing_ms=PUBLISHING_MS, published_ms=PUBLISHED_MS)


class Story:
    """A ledger's file, line by line."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = [
            {"event": "hello", "seq": 0, "trial": 7, "mode": "files", "t_ms": 0.0}
        ]

    def begin(self, seq: int, t_ms: float, *, writer: int = 0, op: str = "overwrite") -> Story:
        self.lines.append(
            {"event": "begin", "seq": seq, "writer": writer, "op": op, "file": 0, "blocks": [0],
             "size": 1, "t_ms": t_ms}
        )  # fmt: skip
        return self

    def done(self, seq: int, t_ms: float, **spent: object) -> Story:
        self.lines.append({"event": "done", "seq": seq, "t_ms": t_ms, **spent})
        return self

    def cut(self, t_ms: float = CUT_MS) -> Story:
        self.lines.append({"event": "cut", "t_ms": t_ms})
        return self

    @property
    def stored(self) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)

    def evidence(self, cut: CutDocument = AT_CUT) -> Evidence:
        return evidence(ledger=parse_ledger(self.stored), cut=cut)


def test_speed_is_of_the_writers_own_work_before_the_cut() -> None:
    story = Story().begin(1, 1, writer=0).begin(2, 2, writer=1)
    story.done(1, 200, work_ms=30.0, sync_ms=[20.0]).begin(3, 200, writer=0, op="scribble")
    story.done(2, 210, work_ms=50.0, sync_ms=[10.0, 30.0]).begin(4, 210, writer=1)
    story.done(3, 300, work_ms=20.0, sync_ms=[])
    story.cut().done(4, 9600, work_ms=8000.0, sync_ms=[7999.0])
    # two writers, each 50 ms at work: two durable operations in 50 ms
    assert speed_of(story.evidence()) == Speed(
        durable_per_s=40.0, sync_p50_ms=20.0, sync_p99_ms=40.0
    )


@pytest.mark.parametrize(
    ("count", "median", "tail"), [(1, 1.0, 1.0), (4, 2.0, 4.0), (200, 100.0, 198.0)]
)
def test_percentiles_are_of_operations_that_there_were(
    count: int, median: float, tail: float
) -> None:
    story = Story()
    for seq in range(1, count + 1):
        wait_ms = float(count + 1 - seq)
        story.begin(seq, seq).done(seq, seq, work_ms=wait_ms, sync_ms=[wait_ms / 2, wait_ms / 2])
    speed = speed_of(story.cut().evidence())
    assert (speed.sync_p50_ms, speed.sync_p99_ms) == (median, tail)


@pytest.mark.parametrize(
    "spent", [{}, {"work_ms": None}, {"work_ms": float("nan")}, {"work_ms": 0.0}]
)
def test_a_load_that_does_not_tell_its_work_has_no_speed(spent: dict[str, object]) -> None:
    story = Story().begin(1, 1).done(1, 100, **spent).cut()
    assert speed_of(story.evidence()) == Speed()


def test_one_operation_that_does_not_tell_leaves_no_rate_that_is_too_good() -> None:
    story = Story().begin(1, 1).done(1, 100, work_ms=1.0).begin(2, 100).done(2, 900).cut()
    assert speed_of(story.evidence()).durable_per_s is None


def test_a_garbled_time_is_no_time() -> None:
    line = {"event": "done", "seq": 1, "work_ms": "soon", "t_ms": 1.0}
    assert parse_ledger(json.dumps(line).encode() + b"\n").garbled == 1


def lived(*, begun_ms: float, acknowledged_ms: float, op: str = "overwrite") -> Story:
    """A client that lived: an operation of another writer, which comes back when the NAS does."""
    story = Story().begin(1, 5, writer=1).begin(2, 6, writer=2).done(2, 500)
    if begun_ms < CUT_MS:
        story.begin(3, begun_ms, op=op).cut()
    else:
        story.cut().begin(3, begun_ms, op=op)
    return story.done(3, acknowledged_ms).done(1, PUBLISHED_MS + 750)


@pytest.mark.parametrize(
    ("begun_ms", "acknowledged_ms", "op", "sync", "expected"),
    [
        (900, 1257, "overwrite", Sync.STANDARD, (0, 0)),  # on its way, or nothing left to ask
        (900, 2999, "overwrite", Sync.STANDARD, (0, 0)),
        (900, 3000, "overwrite", Sync.STANDARD, (1, 1)),
        (900, 8000, "overwrite", Sync.ALWAYS, (1, 0)),  # its writes may be in the log
        (1001, 1002, "overwrite", Sync.STANDARD, (1, 1)),
        (1001, 1002, "overwrite", Sync.ALWAYS, (1, 1)),
        (1001, 1002, "scribble", Sync.STANDARD, (0, 0)),
        (900, 8999, "overwrite", Sync.STANDARD, (1, 1)),
        (900, 9000, "overwrite", Sync.STANDARD, (0, 0)),  # the NAS was about to be there again
        (1001, 9600, "overwrite", Sync.STANDARD, (0, 0)),
    ],
)
def test_an_acknowledgement_is_dated(
    begun_ms: float, acknowledged_ms: float, op: str, sync: Sync, expected: tuple[int, int]
) -> None:
    story = lived(begun_ms=begun_ms, acknowledged_ms=acknowledged_ms, op=op)
    absence = absence_of(story.evidence(), sync=sync)
    assert (absence.acknowledged_in_outage, absence.unfounded) == expected
    assert absence.outage_ms == 8500.0
    assert len(absence.lines) == expected[0]
    for line in absence.lines:
        assert story.lines[line - 1] == {"event": "done", "seq": 3, "t_ms": acknowledged_ms}


@pytest.mark.parametrize(
    ("begun_ms", "acknowledged_ms", "sync", "expected"),
    [
        (400, 700, Sync.STANDARD, (0, 0)),  # begun before, and on its way
        (400, 2600, Sync.STANDARD, (1, 1)),
        (400, 2600, Sync.ALWAYS, (1, 0)),  # its writes may be in the log
        (2499, 2600, Sync.ALWAYS, (1, 0)),
        (2500, 2600, Sync.ALWAYS, (1, 1)),
        (400, 8499, Sync.STANDARD, (1, 1)),
        (400, 8500, Sync.STANDARD, (0, 0)),  # the link was up again
    ],
)
def test_an_acknowledgement_through_a_dead_link_is_dated(
    begun_ms: float, acknowledged_ms: float, sync: Sync, expected: tuple[int, int]
) -> None:
    story = Story().begin(1, begun_ms).begin(2, 2700, op="scribble").done(2, 2800)
    story.done(1, acknowledged_ms).cut(12_000)
    link = LinkFailure(down_ms=500.0, up_ms=8500.0)
    absence = absence_of(story.evidence(CutDocument(t_ms=12_000.0, link=link)), sync=sync)
    assert (absence.acknowledged_in_outage, absence.unfounded) == expected
    for other in (None, replace(link, has_other_path=True)):
        steady = absence_of(story.evidence(CutDocument(t_ms=12_000.0, link=other)), sync=sync)
        assert steady.acknowledged_in_outage is None


@pytest.mark.parametrize(
    ("first_ms", "expected"), [(9600.0, 100.0), (9400.0, 0.0), (99_000.0, 750.0)]
)
def test_the_client_is_back_with_its_first_acknowledgement(
    first_ms: float, expected: float
) -> None:
    story = lived(begun_ms=900, acknowledged_ms=first_ms)
    story.lines.sort(key=lambda line: float(line["t_ms"]))
    assert absence_of(story.evidence(), sync=Sync.STANDARD).reconnect_ms == expected


def test_a_dead_client_never_reconnects_and_a_second_cut_ends_the_absence() -> None:
    story = Story().begin(1, 5).begin(2, 6, writer=1).cut()
    absence = absence_of(story.evidence(), sync=Sync.STANDARD)
    assert (absence.outage_ms, absence.reconnect_ms) == (8500.0, None)
    story.cut(7000).done(1, 8000).done(2, 9900)
    absence = absence_of(story.evidence(), sync=Sync.STANDARD)
    assert (absence.acknowledged_in_outage, absence.reconnect_ms) == (0, None)


@pytest.mark.parametrize("name", ["t_ms", "publishing_ms", "published_ms"])
def test_an_unknown_moment_is_not_dated(name: str) -> None:
    story = lived(begun_ms=900, acknowledged_ms=8000)
    unknown: dict[str, Any] = {name: None}
    assert absence_of(story.evidence(replace(AT_CUT, **unknown)), sync=Sync.STANDARD) == Absence()


def test_a_client_that_was_taken_for_dead_was_acknowledged_nothing_later() -> None:
    confirmed = replace(AT_CUT, confirmed=Confirmation(marks=3, t_ms=700.0))
    story = lived(begun_ms=900, acknowledged_ms=8000)
    absence = absence_of(story.evidence(confirmed), sync=Sync.STANDARD)
    assert absence == Absence(outage_ms=8500.0)


def test_acknowledgements_without_a_nas_are_reported() -> None:
    found = Absence(acknowledged_in_outage=3, unfounded=1, lines=(7, 9, 12))
    (sentence,) = absence_in_words(found)
    assert "3 operations were acknowledged" in sentence
    assert "lines 7, 9, 12 of the ledger" in sentence
    assert "2 may have been stored" in sentence
    assert not list(absence_in_words(Absence(acknowledged_in_outage=0)))
    assert not list(absence_in_words(Absence()))


@pytest.mark.parametrize(
    ("unfounded", "guarantee", "is_broken"),
    [
        (0, Guarantee.SAFE, False),
        (1, Guarantee.SAFE, True),
        (1, Guarantee.ROLLS_BACK, False),
        (1, Guarantee.LOSES, False),
    ],
)
def test_an_unfounded_acknowledgement_breaks_a_safe_cell(
    unfounded: int, guarantee: Guarantee, is_broken: bool
) -> None:
    record = an_intact_record()
    absence = Absence(acknowledged_in_outage=2, unfounded=unfounded, lines=(4, 5))
    assert replace(record, absence=absence).breaks(guarantee) is is_broken


def an_intact_record() -> TrialRecord:
    cell = Cell.parse("iscsi-always-noslog-btrfs-nasonly")
    return next(
        record
        for record in make_records(9, cells=[cell], seed=1)
        if record.verdict is Verdict.INTACT
    )


HOSTILE: Sequence[Any] = ("<b>", -1, float("nan"), float("inf"), True, [], {}, 10**400)


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: str(value)[:9])
def test_a_value_that_is_no_figure_is_refused(value: Any) -> None:
    for kind in (Speed, Absence):
        with pytest.raises(ValueError, match=r"Expected|range"):
            kind.from_json(dict.fromkeys(kind.names(), value) | {"lines": [value]})


def scored(folder: Path, **documents: Any) -> TrialRecord:
    """The record of a trial with these documents, each by the name of its file without the ending."""
    record = an_intact_record()
    spec = {"cell": record.cell, "index": 0, "seed": record.seed, "load_ms": 4000, "survive_ms": 1}
    for name, document in {"spec": spec, **documents}.items():
        write_document(folder, f"{name}.json", document)
    return score(folder, timings={})


def test_a_folder_is_scored_with_its_speed_and_its_outage(tmp_path: Path) -> None:
    story = Story().begin(1, 5).begin(2, 6, writer=1).done(2, 300, work_ms=5.0, sync_ms=[4.0]).cut()
    story.done(1, 8000, work_ms=7990.0, sync_ms=[7990.0])
    (tmp_path / LEDGER).write_bytes(story.stored)
    record = scored(tmp_path, cut=AT_CUT.as_json())
    assert load_evidence(tmp_path).cut == AT_CUT
    assert record.speed == Speed(durable_per_s=200.0, sync_p50_ms=4.0, sync_p99_ms=4.0)
    assert (record.absence.acknowledged_in_outage, record.absence.unfounded) == (1, 0)
    assert any("1 operation was acknowledged while" in reason for reason in record.reasons)


@pytest.mark.parametrize("lost", ["lost_by_zfs", "lost_by_chain", "none"])
def test_a_flush_that_was_lost_before_the_load_is_named(lost: str, tmp_path: Path) -> None:
    record = scored(tmp_path, proof={lost: True})
    named = [reason for reason in record.reasons if "before the load" in reason]
    assert len(named) == (lost != "none")


def test_a_verifier_after_the_return_is_held_against_the_former_one(tmp_path: Path) -> None:
    proof = {"advertised": {"client": {"hard": "yes"}}}
    verifiers = {"before": ["a"], "after": ["a"]}
    client = {"hard": "yes", "write_verifier": "the same"}
    assert scored(tmp_path, proof=proof, verifiers=verifiers).advertised.client == client
