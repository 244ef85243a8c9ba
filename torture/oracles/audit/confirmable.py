"""Chooses the finding that a crash state can confirm, and that crash state.

A finding says that data was not durable when it had to be. A power cut at that event would lose the
data. So the disks are cut there without any uncovered write, recovered and checked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from torture.facts.recording.crash_state import DiskState, Policy
from torture.facts.recording.disks import Persistence, ShelfDisk
from torture.facts.recording.events import Recording
from torture.oracles.audit.invariants import Audit, Finding, Invariant

_KEPT = {
    Persistence.PLP: DiskState(policy=Policy.ALL),
    Persistence.VOLATILE: DiskState(policy=Policy.FLUSHED),
    Persistence.LYING: DiskState(policy=Policy.FLUSHED),
}
"""The states in which a disk keeps only its certain content. A lying disk may also have flushed
honestly: then it did not cause the loss.
"""

_UNCONFIRMABLE = frozenset(Invariant) - {
    Invariant.ACKNOWLEDGED_IS_DURABLE,
    Invariant.LOG_CHAIN_IS_WHOLE,
    Invariant.TXG_IS_DURABLE,
    Invariant.COMPLETED_IS_DURABLE,
}
"""One cut cannot show that these were broken."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Confirmable:
    """A finding, the last event before the cut, and the state of each disk then, by serial."""

    finding: Finding
    event: int
    disks: Mapping[str, DiskState]


def confirmable(
    found: Audit, recording: Recording, *, disks: Sequence[ShelfDisk], client_survives: bool
) -> Confirmable | str:
    """The finding whose loss is surest; of several the last, since it differs least from the real cut.

    `disks` are those present after the cut. `client_survives` says whether the client lives on. Where no
    finding can be confirmed, returns the reason in words.

    The order of preference:

    - An acknowledged operation whose data a cut would lose.
    - A transaction group whose uberblock survives a cut, but not all its writes.
    - A completed request, if an operation was acknowledged before a later flush covered it. The cut falls
      right before that flush.
    - Any other completed request.

    Completed requests say nothing if the client survives: it then knows later events than the cut. A
    client that died forgets its completions. The other two kinds are lost with either client.
    """
    seen = [finding for finding in found.findings if finding.invariant not in _UNCONFIRMABLE]
    if not seen:
        return "no single cut can show these findings"
    if client_survives:
        seen = [x for x in seen if x.invariant is not Invariant.COMPLETED_IS_DURABLE]
        if not seen:
            return "the client survived: it knows later events than these findings"
    first = found.acknowledged_at[0] if found.acknowledged_at else len(recording.events)
    seen = [finding for finding in seen if _event(finding, found) >= first]
    if not seen:
        return "no operation had been acknowledged yet"
    lossy_disks = {disk.serial for disk in disks if disk.persistence is not Persistence.PLP}
    seen = [finding for finding in seen if _can_be_lost(finding, recording, lossy_disks)]
    if not seen:
        return "the disks keep their uncovered writes"
    finding = max(seen, key=lambda finding: _preference(finding, found))
    kept = {disk.serial: _KEPT[disk.persistence] for disk in disks}
    if finding.invariant is Invariant.TXG_IS_DURABLE:
        kept |= _with_uberblock(finding, recording, lossy_disks)
    return Confirmable(finding=finding, event=_event(finding, found), disks=kept)


def _event(finding: Finding, found: Audit) -> int:
    """Where to cut: for a request right before it became durable, if an acknowledgement came by then."""
    if finding.until is None:
        return finding.event
    acknowledged_then = bisect_right(found.acknowledged_at, finding.until)
    has_acknowledged = acknowledged_then > bisect_right(found.acknowledged_at, finding.event)
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


def _can_be_lost(finding: Finding, recording: Recording, lossy_disks: Collection[str]) -> bool:
    """Whether one of these disks holds an uncovered write, or no disk does since it was never written."""
    events, disks = recording.events, recording.disks
    places = [events[submission].disk for submission in finding.uncovered]
    return not places or any(
        place is not None and disks[place].name in lossy_disks for place in places
    )


def _with_uberblock(
    finding: Finding, recording: Recording, lossy_disks: Collection[str]
) -> dict[str, DiskState]:
    """The disk of the finding's uberblock: the uberblock survives, uncovered writes before it do not."""
    place = recording.events[finding.event].disk
    if place is None or (name := recording.disks[place].name) not in lossy_disks:
        return {}
    return {name: DiskState(policy=Policy.EXPLICIT, survivors=(finding.event,))}
