"""The verdict of a walked state, and of the trial that recovers it once more.

A walk's first loss in words: the fewest dropped writes, and the layer they belong to.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from suites.selftest.unit.good_evidence import MIXED, OLD, REPAIR, WONT_MOUNT, evidence, without
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.folder import Evidence, Step
from torture.facts.recording.intent_log import Role
from torture.features.walk.documents import DroppedWrite, SetsTaken, WalkDocument, WalkedLoss
from torture.features.walk.tasks import Walk
from torture.features.walk.walk_values import PoolHealth, StateVerdict, judge_state
from torture.features.walk.words import layer_of, walk_in_words
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.judgement import Judgement
from torture.records.scoring.judge import judge
from torture.records.tasks import as_json

_CELL = Cell.parse("iscsi-standard-noslog-btrfs-bothdie")


def _judged(seen: Evidence, *, is_imported: bool = True) -> StateVerdict:
    return judge_state(_CELL, seen, is_imported=is_imported)


def _of_walk(walk: WalkDocument, **words: Any) -> Judgement:
    """The judgement of a trial that made this walk, and whose fresh NAS found this."""
    return judge(evidence(parts={WalkDocument.FILE: walk}, **words))


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
    repaired = _judged(evidence(*REPAIR))
    assert repaired.verdict is Verdict.REPAIRED
    assert repaired.loses, "a safe cell needs no repair"
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


_SOUND = WalkDocument(
    engine="both", distinct=900, recovered=100, proven=200, outcomes={"intact": 300}, repeated=6,
    proofs_repeated=36, compared=36, fresh=3, depth=4,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"differing": 6}, "6 of 6 second recoveries ended otherwise than the first"),
        ({"proofs_differing": 20}, "20 of 36 proven states had another content"),
        ({"disagreeing": 1}, "1 of 36 states ended otherwise by the other engine"),
        ({"fresh_differing": 1}, "1 of 3 states ended otherwise by a fresh NAS"),
        (
            {"outcomes": {"intact": 296, "inconclusive": 4}, "unknown": {"no readback": 4}},
            "4 of 300 walked states are inconclusive, e.g. no readback",
        ),
        (
            {"outcomes": {"inconclusive": 300}},
            "300 of 300 walked states are inconclusive, e.g. no reason was kept",
        ),
        (
            {"outcomes": {"intact": 280, "corrupted": 20}},
            "a walked state lost something, and the last recovery of a fresh NAS did not",
        ),
        (
            {"losses": (WalkedLoss(verdict="corrupted"),)},
            "a walked state lost something, and the last recovery of a fresh NAS did not",
        ),
        ({"recovered": 0, "proven": 0, "outcomes": {}}, "the walk recovered no state"),
    ],
)
def test_a_walk_with_a_difference_or_too_much_unknown_is_inconclusive(
    changes: dict[str, Any], words: str
) -> None:
    """A loss may be the loop's own mistake, or by chance. One that a fresh NAS shows stands beside it."""
    walk = structs.replace(_SOUND, **changes)
    judged = _of_walk(walk)
    assert (judged.verdict, judged.reasons) == (Verdict.INCONCLUSIVE, (words,))
    assert _of_walk(walk, found=MIXED).verdict is Verdict.CORRUPTED


def test_a_sound_walk_may_have_one_inconclusive_state_in_a_hundred() -> None:
    assert _of_walk(_SOUND).verdict is Verdict.INTACT
    unknown = structs.replace(_SOUND, outcomes={"intact": 297, "inconclusive": 3})
    assert _of_walk(unknown).verdict is Verdict.INTACT


def test_a_trial_without_the_walk_that_it_was_to_make_is_inconclusive() -> None:
    made = evidence()
    asked = replace(made, spec=dict(made.spec) | {"task": as_json(Walk(states=300))})
    assert judge(asked).verdict is Verdict.INCONCLUSIVE
    assert judge(replace(asked, parts={WalkDocument.FILE: _SOUND})).verdict is Verdict.INTACT


@pytest.mark.parametrize(
    ("health", "lacks_disks", "verdict"),
    [
        (PoolHealth(), False, Verdict.INTACT),
        (PoolHealth(errors=1), False, Verdict.CORRUPTED),
        (PoolHealth(errors=1), True, Verdict.CORRUPTED),
        (PoolHealth(state="DEGRADED"), False, Verdict.REPAIRED),
        (PoolHealth(state="DEGRADED"), True, Verdict.INTACT),
        (PoolHealth(state="FAULTED"), True, Verdict.CORRUPTED),
        (PoolHealth(state="UNKNOWN"), False, Verdict.CORRUPTED),
    ],
)
def test_errors_of_the_pool_are_damage(
    health: PoolHealth, lacks_disks: bool, verdict: Verdict
) -> None:
    judged = judge_state(
        _CELL, evidence(), is_imported=True, health=health, lacks_disks=lacks_disks
    )
    assert judged.verdict is verdict
    assert judged.loses == (verdict is not Verdict.INTACT)
    assert bool(judged.reasons) == judged.loses
    unread = without(evidence(found=None), Step.FS_MOUNT)
    beside = judge_state(_CELL, unread, is_imported=True, health=health, lacks_disks=lacks_disks)
    assert beside.verdict is (verdict if judged.loses else Verdict.INCONCLUSIVE)


def test_a_volume_that_cannot_be_read_is_lost() -> None:
    """Its content is that of an earlier state, or none."""
    judged = judge_state(_CELL, evidence(), is_imported=True, refusal="the volume gave error 5")
    assert (judged.verdict, judged.lost) == (Verdict.UNAVAILABLE, 6)
    assert judged.loses


def test_a_walk_that_broke_off_keeps_its_loss_and_is_never_intact() -> None:
    walk = WalkDocument(recovered=5, outcomes={"intact": 5}, broken_off="the NAS is gone")
    judged = _of_walk(walk)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert "the walk broke off after 5 states: the NAS is gone" in judged.reasons
    lossy = structs.replace(walk, losses=(WalkedLoss(verdict="corrupted"),))
    assert _of_walk(lossy, found=MIXED).verdict is Verdict.CORRUPTED


def test_states_lost_are_neither_intact_nor_unknown() -> None:
    outcomes = {"intact": 4, "inconclusive": 2, "corrupted": 3, "rolled-back": 1}
    assert WalkDocument(recovered=10, outcomes=outcomes).states_lost == 4


_WRITE = DroppedWrite(disk="data0", role=Role.ZIL, offset_bytes=8192, length_bytes=4096)
_LOSS = WalkedLoss(verdict="corrupted", acknowledged=57, lost=3, unflushed=41, dropped=(_WRITE,))
_WALK = WalkDocument(
    distinct=900, recovered=200, outcomes={"intact": 199, "corrupted": 1}, losses=(_LOSS,)
)


def _words(walk: WalkDocument) -> str:
    return "\n".join(walk_in_words(walk))


def test_the_counts_and_the_first_loss() -> None:
    assert _words(_WALK).splitlines() == [
        "the walk: 200 of 900 distinct crash states were recovered, 1 lost something",
        "  the first is corrupted, 3 of 57 acknowledged operations lost by dropping 1 of 41 "
        "unflushed writes (the intent log on the pool's disks)",
        "    data0: 4096 bytes at 8192, the intent log on the pool's disks",
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"by_library": 170, "checked": 36},
            "36 of the 170 states intact by OpenZFS's library alone were drawn and recovered by the "
            "kernel's ZFS, too: 0 ended otherwise [0-9.74 %]",
        ),
        (
            {"by_library": 60, "checked": 36, "checked_differing": 36},
            "36 ended otherwise [90-100 %]",
        ),
        ({"by_library": 170}, "kernel's ZFS, too: any share may be wrong"),
        (
            {"proven": 74, "proofs_repeated": 36, "proofs_differing": 1},
            "36 of the 110 proven states were recovered all the same: 1 ended otherwise [0.0703-15 %]",
        ),
    ],
)
def test_the_checks_of_the_library_say_the_share_that_may_be_wrong(
    changes: dict[str, Any], words: str
) -> None:
    assert words in _words(structs.replace(_WALK, **changes))


def test_a_walk_without_loss_is_one_line() -> None:
    assert len(_words(structs.replace(_WALK, losses=())).splitlines()) == 1


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (SetsTaken(cuts=9, cuts_taken=9), "9 of 9 cuts: of 9 each set of surviving writes"),
        (
            SetsTaken(cuts=3100, cuts_taken=1596, cuts_drawn=392, sets_drawn=12345, sets_log2=61.2),
            "1,596 of 3,100 cuts: of 1,204 each set of surviving writes; of 392 others 12,345 of some "
            "2^61 sets",
        ),
    ],
)
def test_how_many_sets_of_how_many_were_taken(sets: SetsTaken, words: str) -> None:
    said = _words(structs.replace(_WALK, sets=sets)).splitlines()
    assert said[1] == f"  they are of {words}"


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (structs.replace(_LOSS, dropped=()), "they were only in the memory of the NAS"),
        (
            structs.replace(_LOSS, dropped=(), verdict="pool-lost"),
            "although each write before the cut survived",
        ),
        (structs.replace(_LOSS, dropped=None), "were not sought"),
        (
            structs.replace(_LOSS, dropped=(structs.replace(_WRITE, sectors_kept=2),)),
            "but for its first 2 sectors",
        ),
    ],
)
def test_the_cause_of_another_loss(loss: WalkedLoss, words: str) -> None:
    assert words in _words(structs.replace(_WALK, losses=(loss,)))


@pytest.mark.parametrize(
    ("write", "layer"),
    [
        (structs.replace(_WRITE, disk="slog0"), "the intent log on the SLOG"),
        (structs.replace(_WRITE, disk="slog0", role=Role.LABEL), "a label of the pool"),
        (structs.replace(_WRITE, role="trim-submit"), "trim-submit"),
    ],
)
def test_the_layer_of_a_write(write: DroppedWrite, layer: str) -> None:
    assert layer_of(write) == layer
