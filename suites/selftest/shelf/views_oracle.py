"""Crash states of a recording, drawn by a seed, and what the specification says they hold."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from suites.selftest.shelf.requests import Difference
from suites.selftest.shelf.rig import disk, of_view
from torture.facts.recording.crash_state import CrashState, DiskState, InFlight, Policy
from torture.facts.recording.events import WRITE_SUBMITS, Event, Kind, Recording
from torture.facts.recording.model import content

_NS_PER_MS = 1_000_000
_TURNING_POINTS = frozenset({Kind.FLUSH_SUBMIT, Kind.FLUSH_COMPLETE, Kind.FREEZE})


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """An export that shows a disk of a view, and what it has to hold."""

    export: dict[str, Any]
    holds: bytes
    description: str
    """Which view it is, for whoever reads the failure."""

    @property
    def name(self) -> str:
        return str(self.export["name"])


def draw_views(
    rng: random.Random, recording: Recording, names: Sequence[str], count: int
) -> list[CrashState]:
    """Views at cuts anywhere in the log; as many policies on as many disks as there are places."""
    policies = list(Policy)
    rng.shuffle(policies)
    take = cycle(policies)
    views = []
    for _ in range(count):
        cut = _draw_cut(rng, recording.events)
        disks = {name: _draw_policy(rng, next(take), recording.events, cut) for name in names}
        seed = rng.getrandbits(64)
        views.append(CrashState(recording=recording.folder, cut=cut, seed=seed, disks=disks))
    return views


def _draw_cut(rng: random.Random, events: Sequence[Event]) -> int:
    """Anywhere, but rather where a mistake would show: beside a flush, or amid many writes."""
    last = events[-1].seq
    turns = [event.seq for event in events if event.kind in _TURNING_POINTS or event.fua]
    match rng.randrange(6):
        case 0:
            return last
        case 1 | 2 if turns:
            return min(last, max(0, rng.choice(turns) + rng.randint(-1, 2)))
        case 3 | 4:
            return max(rng.choices(events, k=4), key=lambda event: event.in_flight).seq
        case _:
            return rng.randrange(len(events))


def _draw_policy(
    rng: random.Random, policy: Policy, events: Sequence[Event], cut: int
) -> DiskState:
    lived_ms = events[cut].time_ns // _NS_PER_MS
    lying_ms = rng.choice([0, 1, rng.randint(0, lived_ms + 1), 2**64 - 1])
    may_lie = lying_ms if rng.random() < 0.5 else None
    held_ms = rng.choice([None, None, 0, rng.randint(0, lived_ms + 1)])
    held_bytes = rng.choice([None, None, 0, rng.randint(0, 64) * 512])
    in_flight = rng.choice(list(InFlight))
    held = partial(DiskState, policy=policy, held_ms=held_ms, held_bytes=held_bytes)
    match policy:
        case Policy.LYING:
            return held(lying_ms=lying_ms, in_flight=in_flight)
        case Policy.SUBSET | Policy.OLDEST | Policy.BUT_FEW:
            return held(lying_ms=may_lie, in_flight=in_flight)
        case Policy.TORN | Policy.PREFIX:
            return held(lying_ms=may_lie)
        case Policy.FLUSHED:
            return held(in_flight=in_flight)
        case Policy.EXPLICIT:
            # of any disk, before the cut or after it: what does not apply means nothing
            numbers = [event.seq for event in events if event.kind in WRITE_SUBMITS]
            chosen = rng.sample(numbers, rng.randint(0, len(numbers)))
            listed = tuple(
                (number, sectors) if (sectors := _draw_sectors(rng)) is not None else number
                for number in chosen
            )
            return DiskState(policy=policy, survivors=listed)
        case _:
            return DiskState(policy=policy, in_flight=in_flight)


def _draw_sectors(rng: random.Random) -> tuple[int, ...] | None:
    if rng.random() < 0.5:
        return None
    return tuple(rng.sample(range(20), rng.randint(0, 10)))


def write_views(folder: Path, prefix: str, views: Sequence[CrashState]) -> list[str]:
    """A file for each, named from `folder` on, where the recordings are too."""
    names = [f"{prefix}{number}.view.json" for number in range(len(views))]
    for name, view in zip(names, views, strict=True):
        document = view.as_json() | {"recording": view.recording.name}
        (folder / name).write_text(json.dumps(document))
    return names


def payloads(recording: Recording) -> Callable[[int], bytes]:
    """The bytes of a submission by its number, from `data` as it is now."""
    data = (recording.folder / "data").read_bytes()

    def payload(submission: int) -> bytes:
        event = recording.events[submission]
        return data[event.reference : event.reference + event.length]

    return payload


def expected(
    recording: Recording,
    views: Sequence[CrashState],
    files: Sequence[str],
    bases: dict[str, bytes],
) -> list[Expected]:
    """An export for each disk of each view, and what it holds; at first the disks held `bases`."""
    payload = payloads(recording)
    found = []
    for file, view in zip(files, views, strict=True):
        for name, disk_view in view.disks.items():
            place = recording.place_of(name)
            recorded = recording.disks[place]
            holds = content(
                bases[name],
                recording.events,
                disk=place,
                sector=recorded.physical_sector,
                view=disk_view,
                cut=view.cut,
                seed=view.seed,
                payload=payload,
            )
            export = disk(
                f"{file.removesuffix('.view.json')}.{name}",
                size=recorded.size,
                sector=recorded.sector,
                physical_sector=recorded.physical_sector,
                source=of_view(file, name),
            )
            description = f"{name} cut at {view.cut}, seed {view.seed}: {disk_view}"
            found.append(Expected(export=export, holds=holds, description=description))
    return found


def must_be_as_expected(wanted: Sequence[Expected], contents: dict[str, bytes]) -> None:
    """Raise `Difference` at the first byte that is not what the specification says."""
    for export in wanted:
        got = contents[export.name]
        if got == export.holds:
            continue
        at = next(at for at in range(len(got)) if got[at] != export.holds[at])
        sector = at // 512 * 512
        raise Difference(
            f"{export.description}: at byte {sector} the shelf has "
            f"{got[sector : sector + 16].hex()}, the specification "
            f"{export.holds[sector : sector + 16].hex()}"
        )
