"""The recoveries of one state, each with its own verdict: none replaces another one.

The library never decides alone that a state lost something, and a loss by either engine is a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from msgspec import structs

from torture.facts.evidence.folder import CUT_STATE, SPEC, Evidence, Step, load_evidence
from torture.facts.recording.crash_state import CrashState, write_crash_state
from torture.facts.recording.events import Recording, load_recording
from torture.features.walk.documents import WalkDocument
from torture.features.walk.engines.engine import Engine, GaveUp, Recovered
from torture.features.walk.engines.engines import Engines
from torture.features.walk.walk_values import PoolHealth, StateVerdict, Times
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import GuestDied
from torture.oracles.verdict.pool_tools.zpool import parse_status
from torture.trials.trial.check import check
from torture.trials.trial.recovery import bring_nas_back, observe_status
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter, StorageFailed


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
        self.document = structs.replace(self.document, **counts)


@dataclass(frozen=True, kw_only=True, slots=True)
class FreshRecovery:
    """The evidence of a fresh NAS and a client, and the recording of the NAS's disks."""

    evidence: Evidence
    recording: Recording
    is_imported: bool
    health: PoolHealth | None
    """The pool's; None where it was not imported."""


def recover_afresh(trial: Trial, lab: Lab, state: CrashState, folder: Path) -> FreshRecovery:
    """Recover a state as a trial does: a fresh NAS imports and publishes, a client mounts and checks.

    The disks are recorded in `folder`, from the import to the end of the client's checks. Raises
    `StorageFailed` when a step hangs or the volume does not come back, `GuestDied` when a kernel
    crashes. Raises `HarnessError` when the host failed a machine or the shelf.
    """
    folder.mkdir(parents=True)
    own = replace(trial, fault=None, folder=folder, scratch=folder)
    evidence = EvidenceWriter(folder=folder, require_host=lab.require_host)
    evidence.write(SPEC, own.spec.as_json())
    machines = Machines(trial=own, lab=lab)
    machines.shelf.directory.mkdir()
    view = machines.shelf.directory / CUT_STATE
    write_crash_state(view, state)
    with closing(machines):
        machines.begin_checker()
        try:
            back = bring_nas_back(own, machines, evidence, view)
            if back is not None:
                client = machines.checker()
                if check(own, evidence, client):
                    machines.give_checker_back(client)
                observe_status(evidence, back.nas, lab.zfs)
        finally:  # a failure of the host is not the state's
            machines.shelf.require_healthy()
            lab.require_host()
    shown = load_evidence(folder)
    return FreshRecovery(
        evidence=shown,
        recording=load_recording(machines.shelf.recording),
        is_imported=back is not None,
        health=None if back is None else _health(shown),
    )


def _health(evidence: Evidence) -> PoolHealth:
    """The pool's health after the client's checks; raises `UnreadableError`."""
    output = evidence.output(Step.POOL_STATUS)
    assert output is not None, "it was observed"
    status = parse_status(output)
    return PoolHealth(state=status.state, errors=status.data_errors)
