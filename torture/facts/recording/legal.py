"""Which writes a cut can leave on a disk: docs/power-cut.md as a slow and obvious program (pure).

It is written from that page and the events alone. It knows nothing of the code that makes crash states
(`torture/features/walk/states`), so it can judge them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from torture.errors import HarnessError
from torture.facts.recording.crash_state import (
    CrashState,
    DiskState,
    Policy,
    read_crash_state,
)
from torture.facts.recording.disks import Persistence, ShelfDisk
from torture.facts.recording.events import (
    WRITE_COMPLETES,
    WRITE_SUBMITS,
    Event,
    Kind,
    Recording,
    ViewSource,
    load_recording,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fates:
    """The writes of one disk at a cut, by their submissions. A write in none of them has failed."""

    covered: frozenset[int]
    """A flush or their own FUA covers them: they survive."""
    kept: frozenset[int]
    """They survive without a flush, since the disk is protected."""
    open: frozenset[int]
    """They survive wholly, in part or not at all."""


def fates(events: Sequence[Event], *, disk: int, persistence: Persistence, cut: int) -> Fates:
    """The fates of a disk's writes; `disk` is its place in the recording, `cut` the last event.

    Raises `ValueError` for a disk that lies: it promises nothing.
    """
    if persistence is Persistence.LYING:
        raise ValueError("a disk that lies promises nothing")
    before = [event for event in events[: cut + 1] if event.disk == disk]
    submitted = {event.seq for event in before if event.kind in WRITE_SUBMITS}
    with_fua = {event.seq for event in before if event.kind in WRITE_SUBMITS and event.fua}
    ended = {event.reference for event in before if event.kind in WRITE_COMPLETES}
    completed_at = {
        event.reference: event.seq
        for event in before
        if event.kind in WRITE_COMPLETES and not event.error
    }
    # a flush covers what was completed before its submission, once it is completed itself
    flushed_from = max(
        (
            event.reference
            for event in before
            if event.kind is Kind.FLUSH_COMPLETE and not event.error
        ),
        default=0,
    )
    covered = {
        write for write, seq in completed_at.items() if write in with_fua or seq < flushed_from
    }
    uncovered = completed_at.keys() - covered
    is_protected = persistence is Persistence.PLP
    return Fates(
        covered=frozenset(covered),
        kept=frozenset(uncovered if is_protected else ()),
        open=frozenset((submitted - ended) | (set() if is_protected else uncovered)),
    )


def why_illegal(recording: Recording, state: CrashState, disks: Mapping[str, Persistence]) -> str:
    """Why no cut leaves these disks so; empty for a state that a cut can leave.

    The states in which the recording's disks began are judged, too. Raises `HarnessError` when a
    recording below this one cannot be read, and `ValueError` for a disk that lies.
    """
    if not 0 <= state.cut < len(recording.events):
        return f"the recording has no event {state.cut}"
    for name, persistence in disks.items():
        place = recording.place_of(name)
        if name not in state.disks:
            return f"{name} is not there"
        why = _why_disk(recording, state, name, place=place, persistence=persistence)
        if why:
            return f"{name}: {why}"
        source = recording.disks[place].source
        if isinstance(source, ViewSource):
            began = read_crash_state(source.view)
            why = _why_source(began, source.disk, persistence)
            if why:
                return f"{name} began with a state that no cut leaves: {why}"
    return ""


def require_legal(recording: Recording, state: CrashState, disks: Iterable[ShelfDisk]) -> None:
    """Raise `HarnessError` for a state that no cut leaves: the suite itself has lost the data then.

    Disks that lie promise nothing, and are not judged.
    """
    honest = {
        disk.serial: disk.persistence for disk in disks if disk.persistence is not Persistence.LYING
    }
    if why := why_illegal(recording, state, honest):
        raise HarnessError(
            f"no cut at event {state.cut} leaves this state: {why}",
            hint="this is a mistake of the suite: report it with the recording",
        )


def _why_source(state: CrashState, name: str, persistence: Persistence) -> str:
    """Why a disk did not begin in a legal state; a state without a list needs no recording."""
    if state.disks[name].policy is not Policy.EXPLICIT:
        return _why_policy(state.disks[name], persistence)
    return why_illegal(load_recording(state.recording), state, {name: persistence})


def _why_disk(
    recording: Recording,
    state: CrashState,
    name: str,
    *,
    place: int,
    persistence: Persistence,
) -> str:
    view = state.disks[name]
    if view.policy is not Policy.EXPLICIT:
        return _why_policy(view, persistence)
    found = fates(recording.events, disk=place, persistence=persistence, cut=state.cut)
    for write in sorted(found.kept):
        if write not in view.listed:
            return f"write {write} was completed on a protected disk, and is not there"
    for write, sectors in sorted(view.listed.items()):
        if write not in found.covered | found.kept | found.open:
            return f"write {write} had failed or was not submitted, and is there"
        event, sector = recording.events[write], recording.disks[place].physical_sector
        if why := _why_torn(sectors, event, sector, is_open=write in found.open):
            return why
    return ""


def _why_torn(sectors: tuple[int, ...] | None, write: Event, sector: int, *, is_open: bool) -> str:
    if sectors is None:
        return ""
    touched = (write.offset + write.length - 1) // sector - write.offset // sector + 1
    if not set(sectors) <= set(range(touched)):
        return f"write {write.seq} has {touched} sectors, and others are there"
    if not is_open and len(set(sectors)) < touched:
        return f"write {write.seq} is certain, and only a part of it is there"
    return ""


def _why_policy(view: DiskState, persistence: Persistence) -> str:
    """Why a disk of this persistence cannot be left so, whatever was written to it."""
    if persistence is Persistence.PLP and view.policy is not Policy.ALL:
        return f"a protected disk keeps all completed writes, and not {view.policy}"
    if view.lying_ms:
        return f"an honest disk does not lie for {view.lying_ms} ms"
    return ""
