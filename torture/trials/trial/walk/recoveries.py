"""The recoveries of one state, each with its own verdict: none replaces another one.

The library never decides alone that a state lost something, and a loss by either engine is a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import replace

from torture.facts.evidence.walk_document import WalkDocument
from torture.facts.recording.crash_state import CrashState
from torture.machines.lab.machine import GuestDied
from torture.records.scoring.walk_verdict import StateVerdict
from torture.trials.trial.shared.storage import StorageFailed
from torture.trials.trial.walk.engines.engine import Engine, GaveUp, Recovered
from torture.trials.trial.walk.engines.engines import Engines
from torture.trials.trial.walk.times import Times


class How(StrEnum):
    """The way to the end of a recovery."""

    PROOF = "proof"
    """An earlier recovery has read the same bytes."""
    LIBRARY = "library"
    KERNEL = "kernel"


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovery:
    """The end of one recovery of a state, and its verdict."""

    state: CrashState
    how: How
    end: Recovered | None
    """None where a machine hung or crashed."""
    verdict: StateVerdict

    @property
    def content(self) -> str:
        """The volume's; empty where there is none."""
        return "" if self.end is None else self.end.content

    def ends_as(self, other: Recovery) -> bool:
        """Whether both have the same content and the same health of the pool, or both have none."""
        if self.end is None or other.end is None:
            return self.end is other.end
        return self.end.is_like(other.end) and self.end.health == other.end.health


def worst_of(recoveries: Sequence[Recovery]) -> StateVerdict:
    """The verdict of a state: the worst one; anything unknown outranks an intact one."""
    return max(
        (recovery.verdict for recovery in recoveries),
        key=lambda verdict: (verdict.rank, verdict.lost),
    )


class Recoveries:
    """Recovers states by the engines of a walk; `document` counts the recoveries and differences.

    `judge` gives the verdict of a state by the end of its recovery; the engine still has the content.
    None for an engine: the content is known. `hung` gives the verdict of a state that hung a machine or
    crashed its kernel, with the reason.
    """

    def __init__(
        self,
        engines: Engines,
        *,
        judge: Callable[[CrashState, Recovered, Engine | None], StateVerdict],
        is_known: Callable[[Recovered], bool],
        hung: Callable[[CrashState, str], StateVerdict],
        times: Times,
    ) -> None:
        self._engines = engines
        self._judge = judge
        self._is_known = is_known
        self._hung = hung
        self._times = times
        self.document = WalkDocument()

    def of(self, state: CrashState, *, again: bool = False) -> tuple[Recovery, ...]:
        """The recoveries of a state, one at least, `again`: two by the same engine.

        The kernel's ZFS recovers it where there is no library, or where the library gives up or loses.
        Raises what `Engine.recover` raises for a failure of the machinery.
        """
        if not self._engines.has_scout:
            first = self.by_kernel(state)
            return (first, self._second(first, self.by_kernel(state))) if again else (first,)
        scouted = self._proven(state) or self.by_scout(state)
        if scouted is None:
            return (self.by_kernel(state),)
        found = [scouted]
        if again and scouted.how is not How.PROOF:
            found.append(self._second(scouted, self.by_scout(state) or self.by_kernel(state)))
        if any(recovery.verdict.loses for recovery in found):
            found.append(self.compared(scouted))
        return tuple(found)

    def by_kernel(self, state: CrashState) -> Recovery:
        """Recover a state with the kernel's ZFS. One that hangs or crashes a machine is lost."""
        return self._recovered(How.KERNEL, self._engines.kernel, state)

    def by_scout(self, state: CrashState) -> Recovery | None:
        """Recover a state with the library; None where only the kernel's ZFS can."""
        try:
            return self._recovered(How.LIBRARY, self._engines.scout, state)
        except GaveUp:
            self._count(given_up=1)
            return None

    def compared(self, known: Recovery) -> Recovery:
        """Recover a state with the kernel's ZFS, too, and count whether it ends as known."""
        recovery = self.by_kernel(known.state)
        self._count(compared=1, disagreeing=int(not known.ends_as(recovery)))
        return recovery

    def proof_checked(self, proof: Recovery) -> Recovery:
        """Recover a proven state all the same, and count whether it ends as proven."""
        recovery = self.by_scout(proof.state) or self.by_kernel(proof.state)
        is_like = (
            proof.end is not None and recovery.end is not None and proof.end.is_like(recovery.end)
        )
        self._count(proofs_repeated=1, proofs_differing=int(not is_like))
        return recovery

    def _proven(self, state: CrashState) -> Recovery | None:
        """The state's end by a proof; None where it has none, or with a content never looked at."""
        end = self._engines.proven(state)
        if end is None or not self._is_known(end):
            return None
        verdict = self._judge(state, end, None)
        return Recovery(state=state, how=How.PROOF, end=end, verdict=verdict)

    def _second(self, first: Recovery, second: Recovery) -> Recovery:
        self._count(repeated=1, differing=int(not first.ends_as(second)))
        return second

    def _recovered(self, how: How, start: Callable[[], Engine], state: CrashState) -> Recovery:
        try:
            with self._times.recovering():
                engine = start()
                end = engine.recover(state)
            judged = self._judge(state, end, engine)
            self._engines.require_host()
            return Recovery(state=state, how=how, end=end, verdict=judged)
        except (StorageFailed, GuestDied) as failure:
            if isinstance(failure, GuestDied) and not failure.kernel_crashed:
                raise
            self._engines.require_host()
            self._engines.end_kernel()
            reason = str(failure).splitlines()[0]
            return Recovery(state=state, how=how, end=None, verdict=self._hung(state, reason))

    def _count(self, **more: int) -> None:
        """Add to these counts of the document."""
        counts = {name: getattr(self.document, name) + number for name, number in more.items()}
        self.document = replace(self.document, **counts)
