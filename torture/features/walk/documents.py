"""`walk.json`: the crash states of one recording that were recovered, and their outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, ClassVar

from torture.facts.evidence.documents import Count, Document, Measure, field
from torture.facts.evidence.folder import Part
from torture.oracles.verdict.guarantee import Verdict

_INCONCLUSIVE_MAX = 0.01
"""Of the states of a walk, the share whose verdict may be unknown."""


class WalkEngine(StrEnum):
    """The code that recovers the states of a walk."""

    KERNEL = "kernel"
    """The kernel's ZFS, in a NAS that stays up."""
    NATIVE = "native"
    """OpenZFS's library on the host. The kernel's ZFS recovers each loss, and drawn intact states."""
    BOTH = "both"
    """As `native`, and the kernel's ZFS recovers more of the intact states: one in ten at least."""


class DroppedWrite(Document, frozen=True, kw_only=True):
    """A write that a state lacks, although it was submitted before the cut."""

    disk: str = ""
    """Its serial."""
    role: str = ""
    """The purpose of the write (`torture.facts.recording.intent_log`)."""
    offset_bytes: Count = 0
    """Its place on the disk."""
    length_bytes: Count = 0
    """Its length."""
    sectors_kept: Count = 0
    """Of a torn write, the first physical sectors, which survive."""


class WalkedLoss(Document, frozen=True, kw_only=True):
    """A state that lost something, for a repetition."""

    verdict: str = ""
    """That of the state."""
    acknowledged: Count = 0
    """Durable operations acknowledged before its cut."""
    lost: Count = 0
    """Of these, the missing ones."""
    reasons: tuple[str, ...] = ()
    """In words."""
    view: dict[str, Any] = field(default_factory=dict)
    """The crash state, as `torture.facts.recording.crash_state` writes it."""
    unflushed: Count = 0
    """The writes before its cut that no flush covers."""
    dropped: tuple[DroppedWrite, ...] | None = None
    """The fewest of them whose absence still loses in this way; None where this was not sought. Without
    any, the lost data were only in the memory of the NAS."""


class SetsTaken(Document, frozen=True, kw_only=True):
    """The cuts of a load's recording, and the sets of surviving writes, that a walk takes."""

    cuts: Count = 0
    """The cuts that leave other states than the cut before: those behind each write and flush."""
    cuts_taken: Count = 0
    """Of these, the cuts whose states were sought: all, unless they have too many."""
    cuts_drawn: Count = 0
    """Of these, the cuts with so many undecided writes that only some sets of them were taken."""
    sets_drawn: Count = 0
    """The sets that were taken after these cuts; torn writes are not counted."""
    sets_log2: Measure = 0.0
    """The binary logarithm of the number of all their sets."""


class WalkDocument(Part, frozen=True, kw_only=True):
    """The walk of one recording. States of one recording are no independent trials."""

    FILE: ClassVar[str] = "walk.json"
    FIELD: ClassVar[str] = "walk"
    LACKING: ClassVar[str] = "no state of the recording was walked"

    engine: str = ""
    """A `WalkEngine`: the one that recovered the states, as the library cannot recover each cell's."""
    rule: Count = 0
    """The rule that made the states (`torture.features.walk.states.course.RULE`)."""
    distinct: Count = 0
    """The distinct states that cuts after the first acknowledgement could leave, by the plans."""
    sets: SetsTaken = SetsTaken()
    """How many cuts and sets of surviving writes these are of."""
    recovered: Count = 0
    """Of these, the states that were recovered."""
    proven: Count = 0
    """The states without a recovery: an earlier one has read nothing else than these states have."""
    proofs_repeated: Count = 0
    """Further proven states, which were recovered all the same."""
    proofs_differing: Count = 0
    """Of these, those whose recovery ended with another content."""
    contents: Count = 0
    """The different contents of the volume that a client has mounted, read and checked."""
    seen_once: Count = 0
    """Of these, the contents of one state alone. Their share of all states estimates the share of states
    with another content (I. J. Good, The population frequencies of species, Biometrika 40, 1953)."""
    ends: Count = 0
    """The different ends: verdict, lost operations, reasons."""
    ends_seen_once: Count = 0
    """Of these, the ends of one state alone; the share estimates the states with another end."""
    amid_recovery: Count = 0
    """Of the recovered and proven states, those of a cut during the recovery from an earlier cut."""
    depth: Count = 0
    """The most cuts in a row, each amid the recovery from the one before; 1 without such a state."""
    fresh: Count = 0
    """States that a fresh NAS recovered, too, over the transport, with a client and its checks."""
    fresh_differing: Count = 0
    """Of these, those of another verdict."""
    repeated: Count = 0
    """States recovered a second time."""
    differing: Count = 0
    """Of these, those whose second recovery ended otherwise: the worst verdict counts."""
    compared: Count = 0
    """States recovered by the native engine and by the kernel's ZFS."""
    disagreeing: Count = 0
    """Of these, those with different contents or healths of the pool: the worst verdict counts."""
    given_up: Count = 0
    """States that the native engine could not recover, and left to the kernel's ZFS."""
    outcomes: dict[str, Count] = field(default_factory=dict)
    """Verdict to the number of recovered and proven states."""
    unknown: dict[str, Count] = field(default_factory=dict)
    """The reasons of inconclusive states, with the number of states."""
    losses: tuple[WalkedLoss, ...] = ()
    """The first states that lost something."""
    broken_off: str = ""
    """The failure, mostly of the machinery, that ended the walk early; empty where it went to its end."""
    walked_ms: Count = 0
    """The time of all recoveries and checks, without the recording."""
    first_ms: Count = 0
    """The median time of the load's first hundred recoveries, by one NAS; 0 below two hundred."""
    last_ms: Count = 0
    """The same of the last hundred: a NAS that stays up must not become slower."""
    nas_available_mib: tuple[Count, ...] = ()
    """The memory that this NAS had left after each hundred; empty where the native engine spared it."""
    recovering_ms: Count = 0
    """Of it, the time of the engines' recoveries, with the end of each one before."""
    checking_ms: Count = 0
    """Of it, the time of the client's looks at new contents."""
    by_library: Count = 0
    """The states that the library alone called intact, or proved equal to one of them."""
    checked: Count = 0
    """Of these, those that the seed drew for the kernel's ZFS, which recovered them, too."""
    checked_differing: Count = 0
    """Of these, those that ended otherwise."""

    @property
    def states_lost(self) -> int:
        """The states that lost something acknowledged or are damaged."""
        intact, unknown = self.outcomes.get("intact", 0), self.outcomes.get("inconclusive", 0)
        return self.counted - intact - unknown

    @property
    def counted(self) -> int:
        """The states with an outcome."""
        return self.recovered + self.proven

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Those of its states."""
        return tuple(verdict for verdict, count in self.outcomes.items() if count)

    @property
    def shows_loss(self) -> bool:
        """Whether a state lost something."""
        return self.states_lost > 0

    @property
    def in_brief(self) -> str:
        """The counts."""
        return f"around: {self.recovered} states, {self.states_lost} lost something"

    def in_words(self) -> Iterator[str]:
        """The counts, and the first loss."""
        # its intervals load a library that no reader of documents needs
        from torture.features.walk.words import walk_in_words

        yield from walk_in_words(self)

    def left_open(self, *, shown: str) -> Iterator[str]:
        """Why a walk says nothing for certain; `shown`: the verdict of the last recovery.

        A walk's loss counts once a fresh NAS shows it. A difference between two recoveries of one state
        means that one of them is wrong, and so may be others.
        """
        if self.broken_off:
            yield f"the walk broke off after {self.counted} states: {self.broken_off}"
        if not self.recovered:
            yield "the walk recovered no state"
        if (self.losses or self.states_lost) and shown is Verdict.INTACT:
            yield "a walked state lost something, and the last recovery of a fresh NAS did not"
        for differing, of, words in (
            (self.differing, self.repeated, "second recoveries ended otherwise than the first"),
            (self.proofs_differing, self.proofs_repeated, "proven states had another content"),
            (self.disagreeing, self.compared, "states ended otherwise by the other engine"),
            (self.fresh_differing, self.fresh, "states ended otherwise by a fresh NAS"),
        ):
            if differing:
                yield f"{differing} of {of} {words}"
        unknown = self.outcomes.get(Verdict.INCONCLUSIVE, 0)
        if unknown > _INCONCLUSIVE_MAX * self.counted:
            why = next(iter(self.unknown), "no reason was kept")
            yield f"{unknown} of {self.counted} walked states are inconclusive, e.g. {why}"


def by_library_alone(walk: WalkDocument) -> int:
    """The states whose end is the library's word: the kernel's ZFS recovered none of them."""
    if walk.engine not in (WalkEngine.NATIVE, WalkEngine.BOTH):
        return 0
    return max(walk.counted - walk.compared - walk.given_up, 0)


DOCUMENT = WalkDocument
