"""Crash states: the disks' content after a cut, as a small file beside a recording.

native/README.md has the format, and calls the file a view.

Which writes a cut can leave on a disk: docs/power-cut.md as a slow and obvious program (pure).

It is written from that page and the events alone. It knows nothing of the code that makes crash states
(`torture/features/walk/states`), so it can judge them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from torture.errors import HarnessError
from torture.facts.evidence.documents import Document, strict_json
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
from torture.files import write_whole

_U64 = 1 << 64


class Policy(StrEnum):
    """Which of the completed writes that no flush covers survive."""

    ALL = "all"
    """All survive: a disk with power-loss protection."""
    FLUSHED = "flushed"
    """None survives."""
    SUBSET = "subset"
    """Each survives or not, by the seed."""
    TORN = "torn"
    """Each sector of each write survives or not, by the seed; in-flight writes included."""
    LYING = "lying"
    """As `flushed`, but flushes and FUA of the last `lying_ms` have no effect."""
    PREFIX = "prefix"
    """Of each write, in-flight ones included, the seed's number of first sectors survives: some, not all.
    """
    OLDEST = "oldest"
    """The writes completed first survive; how many, by the seed."""
    BUT_FEW = "but-few"
    """All survive but one or two, by the seed."""
    EXPLICIT = "explicit"
    """The `survivors` survive."""


class InFlight(StrEnum):
    """Which writes in flight survive, where the policy does not decide it."""

    GONE = "gone"
    """None survives."""
    WHOLE = "whole"
    """Each survives or not, by the seed."""
    TORN = "torn"
    """Each sector of each write survives or not, by the seed."""


_CACHE_POLICIES = frozenset(Policy) - {Policy.ALL, Policy.EXPLICIT}
_WITH_IN_FLIGHT = frozenset(Policy) - {Policy.TORN, Policy.PREFIX, Policy.EXPLICIT}
_NUMBERS = {
    "lying_ms": _CACHE_POLICIES - {Policy.FLUSHED},
    "held_ms": _CACHE_POLICIES,
    "held_bytes": _CACHE_POLICIES,
}
"""The numbers of a disk's state, each with the policies that take it."""


Torn = tuple[int, tuple[int, ...]]
"""A write of which only these sectors survive: its submission's number, and the sectors."""
Survivor = int | Torn
"""A write that survives as a whole, by its submission's number, or a torn one."""


class DiskState(Document, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which writes of one disk survive.

    `survivors` belongs to `explicit`; `lying_ms`, `held_ms` and `held_bytes` belong to the policies of
    caches. Raises `ValueError` for fields that contradict the policy.
    """

    policy: Policy
    lying_ms: int | None = None
    held_ms: int | None = None
    """The cache holds no write that completed this long before the cut; None: no limit."""
    held_bytes: int | None = None
    """The cache holds only this many bytes, the last completed; None: no limit."""
    in_flight: InFlight = InFlight.GONE
    survivors: tuple[Survivor, ...] = ()

    def __post_init__(self) -> None:
        if self.policy is Policy.LYING and self.lying_ms is None:
            raise ValueError(f"{self.policy} needs `lying_ms`")
        for name, policies in _NUMBERS.items():
            if (number := getattr(self, name)) is None:
                continue
            if self.policy not in policies:
                raise ValueError(f"`{name}` has no place beside {self.policy}")
            _must_fit(name, number)
        if self.in_flight is not InFlight.GONE and self.policy not in _WITH_IN_FLIGHT:
            raise ValueError(f"`in_flight` has no place beside {self.policy}")
        if self.survivors and self.policy is not Policy.EXPLICIT:
            raise ValueError(f"`survivors` belongs to `explicit`, and only there: {self.policy}")
        for submission, sectors in (listed := self.listed).items():
            _must_fit(f"survivor {submission}", submission, *(sectors or ()))
        if len(listed) != len(self.survivors):
            raise ValueError("a submission survives twice")

    @property
    def listed(self) -> dict[int, tuple[int, ...] | None]:
        """The survivors' submissions, with the sectors of each; None: it survives as a whole."""
        return dict((one, None) if isinstance(one, int) else one for one in self.survivors)

    def as_json(self) -> dict[str, Any]:
        """As plain data, with the fields alone that the policy takes."""
        plain = super().as_json()
        if self.in_flight is InFlight.GONE:
            del plain["in_flight"]
        if self.policy is Policy.EXPLICIT:
            plain.setdefault("survivors", [])
        return plain


class CrashState(Document, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A crash state: a recording, its last event before the cut, and the surviving writes.

    A disk of the recording that is not in `disks` is gone. Raises `ValueError` for fields out of range.
    An unknown field is an error, too: a misspelt one would silently be another crash state.
    """

    schema: Literal[1] = 1
    recording: Path
    cut: int
    seed: int
    """64 bits; `subset` and `torn` draw from it."""
    disks: dict[str, DiskState]

    def __post_init__(self) -> None:
        _must_fit("cut and seed", self.cut, self.seed)


def write_crash_state(path: Path, view: CrashState) -> None:
    """Write a crash state atomically; its path of the recording is relative to the file's folder.

    So a folder that holds both can be moved. Raises `HarnessError` when the file cannot be written.
    """
    try:
        # resolved first: `..` behind a symbolic link leads out of the link's target
        recording = os.path.relpath(view.recording.resolve(), path.parent.resolve())
        text = json.dumps(replace(view, recording=Path(recording)).as_json(), indent=1) + "\n"
        write_whole(path, text.encode())
    except OSError as error:
        raise HarnessError(
            f"cannot write the view {path}: {error}", hint=f"df {path.parent}"
        ) from error


def read_crash_state(path: Path) -> CrashState:
    """The crash state in a file, its recording resolved; raises `HarnessError` for an unreadable file."""
    try:
        view = CrashState.from_json(strict_json(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise HarnessError(
            f"no readable view in {path}: {error}",
            hint="torture/machines/shelf/native/README.md has the format",
        ) from error
    return replace(view, recording=(path.parent / view.recording).resolve())


def _must_fit(what: str, *numbers: int) -> None:
    if not all(0 <= number < _U64 for number in numbers):
        raise ValueError(f"{what} has to be a number from 0 to 2**64 - 1, not {numbers}")


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
