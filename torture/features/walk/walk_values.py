"""The values of a walk: its recording, the ends of its recoveries, and its times.

The verdict of a recovered crash state (pure).

A state's pool was imported, and was not scrubbed. The errors that it knows of are damage. The rest
of the pool's verdict is left to the fresh NAS that recovers a state with a loss once more.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import median

from msgspec.structs import replace

from torture.choices.matrix.cell_terms import terms_of
from torture.choices.matrix.cells import FILESYSTEM, WORKLOAD, Cell
from torture.choices.workloads import with_those_beside
from torture.facts.evidence.cut_document import Confirmation
from torture.facts.evidence.folder import Evidence
from torture.facts.recording.crash_state import CrashState
from torture.facts.recording.events import Recording
from torture.features.walk.documents import WalkDocument
from torture.oracles.verdict.guarantee import Verdict, standing
from torture.oracles.verdict.pool_verdict import is_damaged
from torture.records.scoring.checkers import Layer, LayerFinding, check_data, check_filesystem


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolHealth:
    """The health of an imported pool before any scrub."""

    state: str = "ONLINE"
    """In the words of `zpool status`."""
    errors: int = 0
    """The damaged blocks that the pool knows of."""

    def verdict(self, *, lacks_disks: bool) -> Verdict:
        """By the rule of `torture.oracles.verdict.pool_verdict`; `lacks_disks`: the cut took some."""
        if is_damaged(self.state, errors=self.errors):
            return Verdict.CORRUPTED
        return Verdict.INTACT if self.state == "ONLINE" or lacks_disks else Verdict.REPAIRED


@dataclass(frozen=True, kw_only=True, slots=True)
class StateVerdict:
    """The verdict of one state."""

    verdict: Verdict
    acknowledged: int
    lost: int
    reasons: tuple[str, ...]
    refusal: str = field(default="", compare=False)
    """The words of the engine for a refused import or an unreadable volume; engines differ in them."""

    @property
    def loses(self) -> bool:
        """Whether the state lost something, is damaged, or did not come back."""
        return self.verdict not in (Verdict.INTACT, Verdict.INCONCLUSIVE)

    @property
    def rank(self) -> float:
        """Its place from best to worst: anything unknown is worse than intact, and better than damage."""
        return 0.5 if self.verdict is Verdict.INCONCLUSIVE else self.verdict.badness

    def is_kind_of(self, other: StateVerdict) -> bool:
        """Whether the state loses in the way of the other one, perhaps less; numbers do not count.

        Otherwise one mistake would be shrunk to the smallest state of another one.
        """
        return (self.loses, self.verdict) == (True, other.verdict) and self._kinds <= other._kinds

    @property
    def _kinds(self) -> set[str]:
        return {re.sub(r"\d+", "#", words) for words in (self.refusal, *self.reasons)}


def judge_state(
    cell: Cell,
    evidence: Evidence,
    *,
    is_imported: bool,
    refusal: str = "",
    health: PoolHealth | None = None,
    lacks_disks: bool = False,
) -> StateVerdict:
    """The verdict; `evidence` has the client's look and the ledger up to the state's cut.

    `refusal`: the words for a refused import, or for a volume that cannot be read. `health`: the pool's,
    where it is known. `lacks_disks`: the pool may be degraded.
    """
    if refusal or not is_imported:
        unreadable = "the pool is imported, and its volume cannot be read"
        return StateVerdict(
            verdict=Verdict.UNAVAILABLE if is_imported else Verdict.POOL_LOST,
            acknowledged=evidence.ledger.acknowledged,
            lost=evidence.ledger.acknowledged,
            reasons=(unreadable if is_imported else "the pool cannot be imported",),
            refusal=refusal,
        )
    terms = terms_of(cell)
    pool = Verdict.INTACT if health is None else health.verdict(lacks_disks=lacks_disks)
    said = f"the pool is {health.state} with {health.errors} errors" if health is not None else ""
    found = {
        Layer.POOL: LayerFinding(
            layer=Layer.POOL, verdict=pool, reasons=() if pool is Verdict.INTACT else (said,)
        )
    }
    checkers = (
        partial(check_filesystem, filesystem=cell[FILESYSTEM], is_root=False),
        partial(check_data, loads=with_those_beside(cell[WORKLOAD])),
    )
    for check in checkers:
        finding = check(evidence, terms, found)
        found[finding.layer] = finding
    known = [one.verdict for one in found.values() if one.verdict is not None]
    unknown = tuple(why for one in found.values() for why in one.unknown)
    findings = found[Layer.DATA].findings
    return StateVerdict(
        verdict=standing(known, doubts=unknown),
        acknowledged=findings.acknowledged,
        lost=findings.lost,
        reasons=(*unknown, *(why for one in found.values() for why in one.reasons)),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class WalkedRecording:
    """A recording whose states are walked.

    `acknowledged`: the event of the load's recording up to which acknowledgements count. None: up to
    each state's own cut, for this is the load's recording.
    """

    recording: Recording
    latest: CrashState
    """A state of its end: its volume has data wherever another state's has, and its disks partitions."""
    acknowledged: int | None = None

    def acknowledged_by(self, state: CrashState) -> int:
        """The event up to which acknowledgements count in this state."""
        return state.cut if self.acknowledged is None else self.acknowledged


@dataclass(frozen=True, kw_only=True, slots=True)
class Around:
    """A recorded cut around whose states a walk goes."""

    state: CrashState
    """Its state; that of a cut amid a recovery has another recording than the load's."""
    acknowledged: int
    """The event of the load's recording up to which acknowledgements count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LostState:
    """A state that lost something, and its cut."""

    state: CrashState
    cut: Confirmation


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstEnd:
    """The end of the first recovery to a content."""

    state: CrashState
    verdict: StateVerdict
    health: PoolHealth | None
    """The pool's; a proven end has that of the recovery that proves it."""


_HUNDRED = 100


class Times:
    """The time of each recovery, and of each check of a content."""

    def __init__(self) -> None:
        self._recovering_s: list[float] = []
        self._checking_s: list[float] = []

    @contextmanager
    def recovering(self) -> Iterator[None]:
        """Count the block as a recovery."""
        with _counted(self._recovering_s):
            yield

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Count the block as a check of a content."""
        with _counted(self._checking_s):
            yield

    def with_sums(self, document: WalkDocument) -> WalkDocument:
        """The document with the sums of both."""
        return replace(
            document,
            recovering_ms=round(sum(self._recovering_s) * 1000),
            checking_ms=round(sum(self._checking_s) * 1000),
        )

    def with_drift(
        self, document: WalkDocument, *, available_mib: Callable[[], int | None]
    ) -> WalkDocument:
        """The document with the first and the last hundred recoveries, and the memory after each.

        `available_mib`: the memory that the NAS has left; None where it recovers only few states.
        """
        times_s = self._recovering_s
        hundreds = len(times_s) // _HUNDRED
        if hundreds >= 2:  # else the first hundred would hold a part of the last one
            first_ms, last_ms = _median_ms(times_s[:_HUNDRED]), _median_ms(times_s[-_HUNDRED:])
            document = replace(document, first_ms=first_ms, last_ms=last_ms)
        known = document.nas_available_mib
        if hundreds > len(known) and (mib := available_mib()) is not None:
            document = replace(document, nas_available_mib=(*known, mib))
        return document


@contextmanager
def _counted(into: list[float]) -> Iterator[None]:
    begun_s = time.monotonic()
    try:
        yield
    finally:
        into.append(time.monotonic() - begun_s)


def _median_ms(times_s: Sequence[float]) -> int:
    return round(median(times_s) * 1000)
