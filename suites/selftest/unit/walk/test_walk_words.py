"""A walk's first loss in words: the fewest dropped writes, and the layer they belong to."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from torture.facts.recording.intent_log import Role
from torture.features.walk.documents import DroppedWrite, SetsTaken, WalkDocument, WalkedLoss
from torture.features.walk.words import layer_of, walk_in_words

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
    assert words in _words(replace(_WALK, **changes))


def test_a_walk_without_loss_is_one_line() -> None:
    assert len(_words(replace(_WALK, losses=())).splitlines()) == 1


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
    said = _words(replace(_WALK, sets=sets)).splitlines()
    assert said[1] == f"  they are of {words}"


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (replace(_LOSS, dropped=()), "they were only in the memory of the NAS"),
        (
            replace(_LOSS, dropped=(), verdict="pool-lost"),
            "although each write before the cut survived",
        ),
        (replace(_LOSS, dropped=None), "were not sought"),
        (
            replace(_LOSS, dropped=(replace(_WRITE, sectors_kept=2),)),
            "but for its first 2 sectors",
        ),
    ],
)
def test_the_cause_of_another_loss(loss: WalkedLoss, words: str) -> None:
    assert words in _words(replace(_WALK, losses=(loss,)))


@pytest.mark.parametrize(
    ("write", "layer"),
    [
        (replace(_WRITE, disk="slog0"), "the intent log on the SLOG"),
        (replace(_WRITE, disk="slog0", role=Role.LABEL), "a label of the pool"),
        (replace(_WRITE, role="trim-submit"), "trim-submit"),
    ],
)
def test_the_layer_of_a_write(write: DroppedWrite, layer: str) -> None:
    assert layer_of(write) == layer
