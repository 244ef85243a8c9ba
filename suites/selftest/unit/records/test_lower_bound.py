"""The first conclusive records count, and a cell that must lose, and does not, is red."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from suites.selftest.unit.made_records import changed, trial_record
from torture.choices.matrix.cell_terms import must_lose
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import AuditDocument, Confirmation, CutDocument
from torture.facts.stats.rates import rate_of
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.oracles.verdict.judgement import Findings, Judgement
from torture.records.record.counting import the_one_that_counts
from torture.records.record.trials import TrialRecord
from torture.records.scoring.detection import is_at_risk, too_safe_in_words
from torture.report.reading.store import Store

CELL = "iscsi-standard-noslog-ext4-nasonly"
CAMPAIGNS = 400
TRIALS = 40
RATE = 0.2


class Made(NamedTuple):
    """A try, as the rule sees it."""

    is_conclusive: bool
    is_breach: bool = False
    is_loss: bool = False


FAILED, FAILED_AUDIT = Made(False), Made(False, True)
INTACT, LOSS, BREACH = Made(True), Made(True, is_loss=True), Made(True, True, True)


@pytest.mark.parametrize(
    ("tries", "place"),
    [
        ([INTACT, LOSS], 0),
        ([LOSS, INTACT], 0),
        ([FAILED, LOSS, INTACT], 1),
        ([INTACT, FAILED], 0),
        ([FAILED, FAILED], 1),
        ([BREACH, INTACT], 0),
        ([INTACT, LOSS, BREACH, INTACT], 2),
        ([FAILED_AUDIT, INTACT], 0),
        ([INTACT, FAILED_AUDIT], 1),
        ([FAILED_AUDIT, BREACH], 1),
        ([BREACH, BREACH], 0),
    ],
)
def test_the_record_that_counts(tries: list[Made], place: int) -> None:
    own = [Made(*made) for made in tries]
    assert the_one_that_counts(own) is own[place]


def test_of_no_record_none_counts() -> None:
    with pytest.raises(IndexError):
        the_one_that_counts(())


def test_a_campaign_whose_losses_are_drawn_again_is_covered_by_its_interval() -> None:
    """The last record_of_trial would cover the rate in one campaign of five."""

    def covered(draw: random.Random, *, is_last: bool) -> bool:
        events = 0
        for _ in range(TRIALS):
            tries = [LOSS if draw.random() < RATE else INTACT]
            if tries[0].is_loss:
                tries.append(LOSS if draw.random() < RATE else INTACT)
            events += (tries[-1] if is_last else the_one_that_counts(tries)).is_loss
        rate = rate_of(events, TRIALS)
        return rate.low <= RATE <= rate.high

    first, last = (
        sum(covered(random.Random(seed), is_last=is_last) for seed in range(CAMPAIGNS)) / CAMPAIGNS
        for is_last in (False, True)
    )
    assert first >= 0.93
    assert last < 0.3


def test_a_records_own_breach_has_its_loss_and_its_audit() -> None:
    sound = record_of_trial(Verdict.INTACT)
    lost = changed(record_of_trial(Verdict.ROLLED_BACK), lost=3)
    audit = AuditDocument(broken=1, under_way=1)
    failed = record_of_trial(Verdict.INCONCLUSIVE)
    accused = changed(failed, cut=replace(failed.cut, audit=audit))
    assert [own.is_breach for own in (sound, lost, failed, accused)] == [False, True, False, True]
    assert not replace(lost, guarantee="a word of another version").is_breach
    assert the_one_that_counts([sound, lost]) is lost
    assert the_one_that_counts([accused, sound]) is accused


def record_of_trial(verdict: Verdict) -> TrialRecord:
    return trial_record(
        trial=f"{CELL}.0000-0123456789abcdef", cell=CELL, verdict=verdict, guarantee=Guarantee.SAFE
    )


# A cell that must lose, and does not, is red: its setting may not be in effect.

DISABLED, LYING = "iscsi-disabled-noslog-btrfs-bothdie", "iscsi-always-lying-btrfs-bothdie"
AT_RISK = {"uncommitted": 3, "logged_ms": None}


def record(
    cell: str = DISABLED,
    *,
    lost: int = 0,
    view: dict[str, Any] | None = None,
    is_conclusive: bool = True,
    **audit: Any,
) -> TrialRecord:
    verdict = Verdict.ROLLED_BACK if lost else Verdict.INTACT
    return TrialRecord(
        trial="x",
        cell=cell,
        judgement=Judgement(
            verdict=verdict if is_conclusive else Verdict.INCONCLUSIVE,
            findings=Findings(acknowledged=9, lost=lost),
        ),
        cut=CutDocument(
            audit=AuditDocument(**(audit or AT_RISK)), view={"disks": view} if view else {}
        ),
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (DISABLED, True),
        ("iscsi-disabled-noslog-btrfs-nasonly", True),
        ("nfs3-export_async-standard-noslog-files-bothdie", True),
        ("nfs3-export_async-always-noslog-files-bothdie", False),
        (LYING, True),
        ("iscsi-always-lost-btrfs-nasonly", True),
        ("iscsi-always-lost-throughput-btrfs-bothdie", False),
        ("iscsi-always-mirror-btrfs-bothdie", False),
        ("iscsi-standard-noslog-nocacheflush-btrfs-bothdie", True),
        ("iscsi-always-noslog-zilnocacheflush-btrfs-bothdie", True),
        ("iscsi-always-plp-zilnocacheflush-btrfs-bothdie", False),
        ("iscsi-always-noslog-mirrored-zilnocacheflush-btrfs-bothdie", False),
        ("iscsi-standard-noslog-btrfs-nasonly", False),
        ("iscsi-always-noslog-btrfs-bothdie", False),
        ("smb-standard-noslog-files-bothdie", False),
    ],
)
def test_a_cell_must_lose_where_data_are_in_memory_or_on_a_log_that_forgets(
    name: str, expected: bool
) -> None:
    assert must_lose(Cell.parse(name)) is expected


def test_eight_cuts_at_risk_without_a_loss_are_red_and_seven_are_not() -> None:
    assert too_safe_in_words([record()] * 7) == ""
    assert "none of 8 cuts" in too_safe_in_words([record()] * 8)
    assert too_safe_in_words([*[record()] * 20, record(lost=1)]) == ""


def test_cuts_with_nothing_at_risk_do_not_count() -> None:
    others = [
        record(uncommitted=0),
        record(is_conclusive=False),
        record("iscsi-standard-noslog-btrfs-nasonly"),
        replace(record(), cut=replace(record().cut, confirmed=Confirmation(marks=3))),
        record(acknowledged_lately=3, uncommitted_ms=400),
        record(acknowledged_lately=0, uncommitted_ms=4000),
    ]
    assert too_safe_in_words([*[record()] * 7, *others * 8]) == ""


@pytest.mark.parametrize(
    ("disk", "logged_ms", "expected"),
    [
        ({"policy": "lying", "lying_ms": 700}, 699, True),
        ({"policy": "lying", "lying_ms": 700}, 700, False),
        ({"policy": "subset", "lying_ms": 700, "held_ms": 900}, 800, False),
        ({"policy": "lying", "lying_ms": 700}, None, None),
        ({"policy": "gone"}, 5000, True),
        ({"policy": "gone"}, None, True),
    ],
)
def test_a_log_device_takes_only_the_operations_that_it_lies_about(
    disk: dict[str, Any], logged_ms: int | None, expected: bool | None
) -> None:
    one = record(
        LYING, view={"slog0": disk, "data0": {"held_ms": 1}}, uncommitted=2, logged_ms=logged_ms
    )
    assert is_at_risk(one) is expected


def test_a_group_that_was_never_flushed_commits_nothing() -> None:
    name = "iscsi-standard-noslog-nocacheflush-btrfs-bothdie"
    assert is_at_risk(record(name, acknowledged_lately=3, txgs=4)) is True
    assert is_at_risk(record(name, acknowledged_lately=3, txgs=0)) is None


def test_older_records_say_it_by_their_last_second() -> None:
    assert is_at_risk(record(acknowledged_lately=3, uncommitted_ms=1000)) is True
    assert is_at_risk(record(acknowledged_lately=3, uncommitted_ms=999)) is None
    lying = {"slog0": {"policy": "lying", "lying_ms": 700}}
    assert is_at_risk(record(LYING, view=lying, acknowledged_lately=3, uncommitted_ms=4000)) is None


def test_the_report_has_the_sentence_and_the_published_records_do_not() -> None:
    published = Path(__file__).parents[4] / "results" / "published"
    with Store.open([published]) as store:
        assert [note for note in store.notes if "less than theory" in note] == []
        [[cuts, lost]] = store.sql.execute(
            "SELECT count(*), count(*) FILTER (is_loss) FROM live WHERE is_at_risk"
        ).fetchall()
    assert lost > cuts / 2 > 100
