"""Everything that a trial's seed decides on the host, before any machine starts."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from msgspec.structs import replace

from torture.choices.administration.protocol import Administration, Moment
from torture.choices.experiments import find
from torture.choices.matrix.cell_terms import disks_keep_power
from torture.choices.matrix.cells import ADMINISTRATION, EVENT, FATE, SYNC
from torture.errors import HarnessError
from torture.facts.axes.event import Event
from torture.facts.axes.fate import Fate
from torture.facts.axes.sync import Sync
from torture.facts.evidence.documents import Document, strict_json
from torture.facts.evidence.folder import SPEC
from torture.facts.recording.crash_state import DiskState, InFlight, Policy
from torture.facts.recording.disks import Persistence, ShelfDisk
from torture.facts.recording.events import Kind
from torture.facts.recording.intent_log import Role
from torture.machines.nas.pool import gone_at_cut, pool_disks
from torture.records.record.specs import TrialSpec
from torture.records.tasks import drawn_origins
from torture.trials.plan.cut_plan import TARGETS, Aim, CutPlan, aimed_at, draw_cut

LYING_MS = 700
"""The time before the cut in which a lying disk's flushes did nothing. In tests, SSDs under power
faults lost completed writes up to 700 ms after their completion (Ahmadian et al., arXiv
1805.00140)."""

_POLICIES_OF_DRAW_1 = {
    Persistence.PLP: (Policy.ALL,),
    Persistence.VOLATILE: (Policy.FLUSHED, Policy.SUBSET, Policy.TORN),
    Persistence.LYING: (Policy.LYING, Policy.SUBSET, Policy.TORN),
}
_OF_ANY_CACHE = (Policy.SUBSET, Policy.TORN, Policy.PREFIX, Policy.OLDEST, Policy.BUT_FEW)
_POLICIES = {
    Persistence.PLP: (Policy.ALL,),
    Persistence.VOLATILE: (Policy.FLUSHED, *_OF_ANY_CACHE),
    Persistence.LYING: (Policy.LYING, *_OF_ANY_CACHE),
}
"""A volatile cache may lose all, whole writes, sectors of them, the ends of them, the youngest, or
one or two. A lying cache may lose the same, of all writes that it has not done."""

_HELD_MS = (50, 10_000)
"""The maximum time for which a cache holds an unflushed write. The SSDs of the tests above held it
for 700 ms. A disk with an arm writes back when it has no other work."""
_HELD_BYTES = (1 << 20, 256 << 20)
"""The cache sizes in data sheets of disks without a capacitor."""


class _Bounds(TypedDict, total=False):
    held_ms: int
    held_bytes: int


def draw_disk_states(disks: Sequence[ShelfDisk], *, seed: int, draw: int) -> dict[str, DiskState]:
    """The state that each of these disks keeps in the trial of this seed, by serial.

    `draw`: as `TrialSpec` has it.
    """
    return {disk.serial: _drawn(disk, seed, draw) for disk in disks}


def draw_powered_states(disks: Sequence[ShelfDisk], *, seed: int) -> dict[str, DiskState]:
    """The states of disks that keep their power: writes in flight alone survive or not."""
    generators = {disk.serial: random.Random(f"powered/{seed}/{disk.serial}") for disk in disks}
    whole = (InFlight.GONE, InFlight.WHOLE)
    return {
        serial: DiskState(policy=Policy.ALL, in_flight=generator.choice(whole))
        for serial, generator in generators.items()
    }


def _drawn(disk: ShelfDisk, seed: int, draw: int) -> DiskState:
    """A write in flight may survive or not on any disk: nothing is promised about it."""
    generator = random.Random(f"survivors/{seed}/{disk.serial}")
    is_old = draw == 1
    policies = _POLICIES_OF_DRAW_1 if is_old else _POLICIES
    policy = generator.choice(policies[disk.persistence])
    in_flight = generator.choice(tuple(InFlight))
    bounds: _Bounds = {} if is_old else _bounds(disk.persistence, generator)
    return DiskState(
        policy=policy,
        lying_ms=LYING_MS if disk.persistence is Persistence.LYING else None,
        in_flight=InFlight.GONE if policy in (Policy.TORN, Policy.PREFIX) else in_flight,
        **bounds,
    )


def _bounds(persistence: Persistence, generator: random.Random) -> _Bounds:
    """The most that a cache holds, each order of magnitude as often as the others.

    A disk holds data about which it lies for as long as it lies.
    """
    least_ms, most_ms = _HELD_MS
    least, most = _HELD_BYTES
    held_ms = round(least_ms * (most_ms / least_ms) ** generator.random())
    held_bytes = round(least * (most / least) ** generator.random())
    match persistence:
        case Persistence.PLP:
            return {}
        case Persistence.VOLATILE:
            return {"held_ms": held_ms, "held_bytes": held_bytes}
        case Persistence.LYING:
            return {"held_ms": max(held_ms, LYING_MS)}


class AdministrationCut(Document, frozen=True, kw_only=True):
    """One `CutPoint` of the administration, with the values that the seed drew for it.

    The trial issues the command at the moment of its `CutPlan`. It ignores the plan's aim.
    """

    moment: Moment
    event: Kind | None
    """None: the cut comes `delay_ms` later, without regard to events."""
    role: Role | None
    disk: str | None
    count: int
    delay_ms: float
    is_after_end: bool


def draw_administration_cut(
    administration: Administration | None, *, seed: int, moments: Sequence[Moment] = tuple(Moment)
) -> AdministrationCut | None:
    """The cut of this seed: each moment as often as the others; None without an administration."""
    if administration is None:
        return None
    generator = random.Random(f"administration/{seed}")
    moment = generator.choice(moments)
    point = generator.choice(tuple(administration.cut_points[moment]))
    return AdministrationCut(
        moment=moment,
        event=point.event,
        role=point.role,
        disk=point.disk,
        count=generator.randint(point.least, point.most),
        delay_ms=round(generator.uniform(0, point.delay_ms_max), 3),
        is_after_end=point.is_after_end,
    )


_SHARE = 0.25
"""The share of second cuts among the trials whose client lives on."""
_EARLIEST_SHARE_OF_LIFE = 0.25


class SecondCut(Document, frozen=True, kw_only=True):
    """NAS and client lose power `after_ms` after the client went on.

    `seed` and `survivors` decide which requests of the NAS since its return the disks keep.
    """

    after_ms: float
    seed: int
    survivors: Mapping[str, DiskState]


def draw_second_cut(
    disks: Sequence[ShelfDisk], *, seed: int, survive_ms: int, draw: int
) -> SecondCut | None:
    """The second cut of one trial in four, within the time for which its client lives on."""
    generator = random.Random(f"second cut/{seed}")
    if generator.random() >= _SHARE:
        return None
    second_seed = generator.getrandbits(64)
    return SecondCut(
        after_ms=round(generator.uniform(_EARLIEST_SHARE_OF_LIFE, 1) * survive_ms, 3),
        seed=second_seed,
        survivors=draw_disk_states(disks, seed=second_seed, draw=draw),
    )


_CLIENT_OUTLIVES_MS = (2_000, 12_000)
"""From the end of all packets from before the cut until the client gives up its links. The kernel's
NVMe gives up 5 to 10 s after the last answer (`NVME_DEFAULT_KATO`, `drivers/nvme/host/nvme.h`)."""


class TrialPlan(Document, frozen=True, kw_only=True):
    """The moment of the power loss, the state that each disk keeps, and the disks that vanish."""

    cut: CutPlan
    survivors: Mapping[str, DiskState]
    """By serial; only the disks that stay."""
    gone: frozenset[str]
    """Serials of the disks that are gone after the cut."""
    second: SecondCut | None = None
    """The cut of NAS and client together, once the client has lived on.

    None in most trials, and in older ones.
    """
    administration: AdministrationCut | None = None
    """The event that the cut awaits instead of `cut.aim`, where the trial administers the pool."""
    client_outlives_ms: float | None = None
    """The time from the NAS's power loss to the client's.

    None where the client dies with the NAS, or lives on.
    """


def plan_of(spec: TrialSpec) -> TrialPlan:
    """The plan of a trial; a repeated trial has its former plan, if its evidence has it.

    The draws of a seed may change from version to version. Raises `HarnessError` for a plan that
    cannot be read.
    """
    file = Path(spec.replay_of) / SPEC
    if not spec.replay_of or not file.exists():
        return draw_plan(spec)
    try:
        stored = strict_json(file.read_bytes()).get("plan")
        return draw_plan(spec) if stored is None else TrialPlan.from_json(stored)
    except (OSError, ValueError, AttributeError) as error:
        raise HarnessError(
            f"the plan in {file} is of another version: {error!r}", hint=f"read {file}"
        ) from error


def draw_plan(spec: TrialSpec) -> TrialPlan:
    """The plan of a trial: the same for the same cell, seed and length of load."""
    fault = find(spec.fault)
    planted = {} if fault is None else dict(fault.survivors)
    gone = gone_at_cut(spec.cell, spec.seed) - planted.keys()
    disks = [disk for disk in pool_disks(spec.cell) if disk.serial not in gone]
    cut = draw_cut(
        seed=spec.seed,
        load_ms=spec.load_ms,
        has_intent_log=spec.cell[SYNC] is not Sync.DISABLED,
        draw=spec.draw,
    )
    outlives = random.Random(f"client outlives/{spec.seed}")
    if fault is not None and fault.aim:
        cut = aimed_at(cut, Aim(fault.aim), seed=spec.seed)
    event, is_of_client = spec.cell[EVENT], spec.cell[FATE] is Fate.CLIENT_ONLY
    if (event.is_of_its_kernel or is_of_client) and cut.aim in TARGETS:
        cut = aimed_at(cut, Aim.OPERATION, seed=spec.seed)
    if disks_keep_power(spec.cell):
        states = draw_powered_states(disks, seed=spec.seed)
    else:
        states = draw_disk_states(disks, seed=spec.seed, draw=spec.draw)
    moments = tuple(Moment)
    task = drawn_origins().get(spec.origin)
    if task is not None and task.takes_all_cuts:
        cut = replace(aimed_at(cut, Aim.ANYWHERE, seed=spec.seed), after_ms=float(spec.load_ms))
        moments = (Moment.END,)
    return TrialPlan(
        cut=cut,
        survivors=states | planted,
        gone=gone,
        second=(
            draw_second_cut(disks, seed=spec.seed, survive_ms=spec.survive_ms, draw=spec.draw)
            if spec.cell[FATE] is Fate.NAS_ONLY and event is Event.POWER
            else None
        ),
        client_outlives_ms=(
            round(outlives.uniform(*_CLIENT_OUTLIVES_MS), 3)
            if spec.cell[FATE] is Fate.CLIENT_LATER
            else None
        ),
        administration=draw_administration_cut(
            spec.cell[ADMINISTRATION], seed=spec.seed, moments=moments
        ),
    )
