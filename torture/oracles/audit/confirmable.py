"""Which finding a crash state can confirm, and which state that is: what it accuses is really lost there.

A log says that something is not on the disks which was said to be. Had the power gone then, it would be
gone: so the disks are cut there, with nothing left that no flush covers, and recovered and checked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from torture.facts.recording.crash_state import DiskState, Policy, Survivor
from torture.facts.recording.disks import Persistence, ShelfDisk
from torture.facts.recording.events import Recording
from torture.oracles.audit.found import Audit
from torture.oracles.audit.invariants import Finding, Invariant

_KEPT = {
    Persistence.PLP: DiskState(policy=Policy.ALL),
    Persistence.VOLATILE: DiskState(policy=Policy.FLUSHED),
    Persistence.LYING: DiskState(policy=Policy.FLUSHED),
}
"""What a disk is sure to keep. A lying one may also have told the truth: then the loss is none of its."""

_NOT_TO_BE_SEEN = frozenset(Invariant) - {
    Invariant.ACKNOWLEDGED_IS_DURABLE,
    Invariant.LOG_CHAIN_IS_WHOLE,
    Invariant.TXG_IS_DURABLE,
    Invariant.COMPLETED_IS_DURABLE,
}
"""What these are about is not what one cut takes away."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Confirmable:
    """A finding, the last event that happens, and by serial what the disks keep then."""

    finding: Finding
    event: int
    disks: Mapping[str, DiskState]


def confirmable(
    found: Audit, recording: Recording, *, disks: Sequence[ShelfDisk], lives_on: bool
) -> Confirmable | str:
    """The finding whose loss is surest, and of these the last: least else is different from the real cut.

    `disks` are those that are there after the cut; `lives_on` says whether the client is, too. When
    none can be confirmed, why, in words.

    Surest is an acknowledgement of what a cut takes away. Then a transaction group whose uberblock
    survives and its writes do not. Then a request of the client after which an operation was
    acknowledged before a flush made up for it, cut right before that; and at last any request. These
    say nothing with a client that lives: one that died never hears of what it had completed, and one
    that lived knows what came after. The other two are lost to both.
    """
    seen = [finding for finding in found.findings if finding.invariant not in _NOT_TO_BE_SEEN]
    if not seen:
        return "no cut takes away what was found"
    if lives_on:
        seen = [x for x in seen if x.invariant is not Invariant.COMPLETED_IS_DURABLE]
        if not seen:
            return "the client lived on: at the cut it knew more than when this was found"
    first = found.acknowledged_at[0] if found.acknowledged_at else len(recording.events)
    seen = [finding for finding in seen if _event(finding, found) >= first]
    if not seen:
        return "nothing had been acknowledged yet"
    takers = {disk.serial for disk in disks if disk.persistence is not Persistence.PLP}
    seen = [finding for finding in seen if _can_be_lost(finding, recording, takers)]
    if not seen:
        return "the disks keep what was not covered"
    finding = max(seen, key=lambda finding: _preference(finding, found))
    kept = {disk.serial: _KEPT[disk.persistence] for disk in disks}
    if finding.invariant is Invariant.TXG_IS_DURABLE:
        kept |= _with_uberblock(finding, recording, takers)
    return Confirmable(finding=finding, event=_event(finding, found), disks=kept)


def _event(finding: Finding, found: Audit) -> int:
    """Where to cut: for a request as late as it did not hold, if something was acknowledged by then."""
    if finding.until is None:
        return finding.event
    heard = bisect_right(found.acknowledged_at, finding.until)
    has_acknowledged = heard > bisect_right(found.acknowledged_at, finding.event)
    return finding.until if has_acknowledged else finding.event


def _preference(finding: Finding, found: Audit) -> tuple[int, int]:
    event = _event(finding, found)
    match finding.invariant:
        case Invariant.ACKNOWLEDGED_IS_DURABLE | Invariant.LOG_CHAIN_IS_WHOLE:
            return 3, event
        case Invariant.TXG_IS_DURABLE:
            return 2, event
        case _:
            return int(event > finding.event), event


def _can_be_lost(finding: Finding, recording: Recording, takers: Collection[str]) -> bool:
    """Whether one of these disks has what was not covered, or none has, for it was never written."""
    events, disks = recording.events, recording.disks
    places = [events[submission].disk for submission in finding.uncovered]
    return not places or any(place is not None and disks[place].name in takers for place in places)


def _with_uberblock(
    finding: Finding, recording: Recording, takers: Collection[str]
) -> dict[str, DiskState]:
    """The disk to which the uberblock was on its way: it is there, whatever was written before it."""
    place = recording.events[finding.event].disk
    if place is None or (name := recording.disks[place].name) not in takers:
        return {}
    survivor = Survivor(submission=finding.event)
    return {name: DiskState(policy=Policy.EXPLICIT, survivors=(survivor,))}
