"""The verdict of a walked state, and of the trial that recovers it once more."""

from __future__ import annotations

from dataclasses import replace

from suites.selftest.unit.good_evidence import MIXED, OLD, REPAIR, WONT_MOUNT, evidence, without
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.folder import Evidence, Step
from torture.facts.evidence.walk_document import WalkDocument, WalkedLoss
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.judge import judge
from torture.records.scoring.walked import StateVerdict, judge_state

_CELL = Cell.parse("iscsi-standard-noslog-btrfs-bothdie")


def _judged(seen: Evidence, *, is_imported: bool = True) -> StateVerdict:
    return judge_state(_CELL, seen, is_imported=is_imported)


def test_a_state_with_everything_is_intact() -> None:
    judged = _judged(evidence())
    assert (judged.verdict, judged.acknowledged, judged.lost) == (Verdict.INTACT, 6, 0)
    assert judged.reasons == ()
    assert not judged.loses


def test_a_state_needs_no_scrub() -> None:
    """Its pool is not scrubbed, since thousands of states would wait for it."""
    seen = without(evidence(), Step.POOL_IMPORT, Step.POOL_STATUS, Step.POOL_SCRUB)
    assert _judged(seen).verdict is Verdict.INTACT


def test_each_loss_is_seen() -> None:
    assert _judged(evidence(found=OLD)).verdict is Verdict.ROLLED_BACK
    assert _judged(evidence(found=MIXED)).verdict is Verdict.CORRUPTED
    assert _judged(evidence(*REPAIR)).verdict is not Verdict.INTACT
    assert _judged(evidence(*WONT_MOUNT, found=None)).verdict is Verdict.UNREPAIRABLE
    lost = _judged(evidence(), is_imported=False)
    assert (lost.verdict, lost.lost) == (Verdict.POOL_LOST, 6)
    assert lost.loses


def test_less_evidence_is_inconclusive_and_says_why() -> None:
    for seen in (
        evidence(found=None),
        without(evidence(), Step.FS_MOUNT),
        without(evidence(), Step.FS_CHECK),
        replace(evidence(), is_cut_read=False),
    ):
        judged = _judged(seen)
        assert judged.verdict is Verdict.INCONCLUSIVE
        assert judged.reasons
        assert not judged.loses


def test_a_smaller_loss_of_the_same_kind_is_known_from_another_loss() -> None:
    torn = StateVerdict(
        verdict=Verdict.ROLLED_BACK, acknowledged=9, lost=3, reasons=("3 files are old", "fsck 4")
    )
    smaller = replace(torn, lost=1, reasons=("1 files are old",))
    assert smaller.is_kind_of(torn)
    assert not torn.is_kind_of(smaller)
    assert not replace(torn, reasons=("3 files are gone",)).is_kind_of(torn)
    assert not replace(torn, verdict=Verdict.CORRUPTED).is_kind_of(torn)
    intact = replace(torn, verdict=Verdict.INTACT, lost=0, reasons=())
    assert not intact.is_kind_of(intact)


def test_two_refused_imports_differ_by_zfs_own_words() -> None:
    refused = _judged(evidence(), is_imported=False)
    one, other = (replace(refused, refusal=words) for words in ("no such device", "I/O error"))
    assert one == other
    assert one.is_kind_of(one)
    assert not one.is_kind_of(other)


def test_a_loss_outranks_missing_evidence() -> None:
    seen = without(evidence(found=MIXED), Step.FS_CHECK)
    assert _judged(seen).verdict is Verdict.CORRUPTED


def test_a_loss_that_no_fresh_nas_shows_is_inconclusive() -> None:
    """The loop's own mistake, or a loss by chance: the trial never counts as intact."""
    walk = WalkDocument(recovered=5, outcomes={"intact": 4, "corrupted": 1})
    lossy = replace(walk, losses=(WalkedLoss(verdict="corrupted"),))
    assert judge(evidence(walk=walk)).verdict is Verdict.INTACT
    assert judge(evidence(walk=lossy)).verdict is Verdict.INCONCLUSIVE
    by_fresh_nas = WalkDocument(recovered=5, outcomes={"intact": 5}, fresh=1, fresh_differing=1)
    assert judge(evidence(walk=by_fresh_nas)).verdict is Verdict.INCONCLUSIVE
    assert judge(evidence(walk=lossy, found=MIXED)).verdict is Verdict.CORRUPTED


def test_a_walk_that_broke_off_keeps_its_loss_and_is_never_intact() -> None:
    walk = WalkDocument(recovered=5, outcomes={"intact": 5}, broken_off="the NAS is gone")
    judged = judge(evidence(walk=walk))
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert "the walk broke off after 5 states: the NAS is gone" in judged.reasons
    lossy = replace(walk, losses=(WalkedLoss(verdict="corrupted"),))
    assert judge(evidence(walk=lossy, found=MIXED)).verdict is Verdict.CORRUPTED


def test_states_lost_are_neither_intact_nor_unknown() -> None:
    outcomes = {"intact": 4, "inconclusive": 2, "corrupted": 3, "rolled-back": 1}
    assert WalkDocument(recovered=10, outcomes=outcomes).states_lost == 4
