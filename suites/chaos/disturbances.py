"""The disturbances of a campaign on a fleet: a process ends, or stands still, or a disk is full."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from suites.chaos.fleet import Fleet
from suites.chaos.host_disks import MACHINES
from suites.chaos.session import Session

_LASTS_S = 20
_END_S = 120
"""A session that is asked to end first ends its trials."""

Hit = Callable[[Fleet, Session, random.Random], bool]
"""Disturbs, and returns whether there was something to disturb."""


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """One kind of disturbance."""

    name: str
    hit: Hit
    ends_campaign: bool = False
    hits_machines: bool = False
    """Whether a trial at work may be inconclusive: it hits the trial's machines."""
    hits_each_trial: bool = False
    """Whether this holds for each trial that ends meanwhile, however short it was."""


def _kill_one(victims: Sequence[int], draw: random.Random) -> bool:
    """Kill one of these processes; whether there was one."""
    if not victims:
        return False
    os.kill(draw.choice(sorted(victims)), signal.SIGKILL)
    return True


def _program(name: str) -> Hit:
    return lambda fleet, _session, draw: _kill_one(fleet.programs(name), draw)


def _sandbox(fleet: Fleet, _session: Session, draw: random.Random) -> bool:
    return _kill_one([sandbox.first_pid for sandbox in fleet.present_sandboxes()], draw)


def _worker(fleet: Fleet, _session: Session, draw: random.Random) -> bool:
    return _kill_one(fleet.workers(), draw)


def _nanny(fleet: Fleet, _session: Session, draw: random.Random) -> bool:
    nanny = draw.choice(fleet.nannies)
    nanny.kill()
    nanny.wait(_END_S)
    fleet.replace(nanny)
    return True


def _still_worker(fleet: Fleet, _session: Session, draw: random.Random) -> bool:
    workers = fleet.workers()
    if not workers:
        return False
    worker = draw.choice(sorted(workers))
    os.kill(worker, signal.SIGSTOP)
    time.sleep(_LASTS_S)
    os.kill(worker, signal.SIGCONT)
    return True


def _full_machines(fleet: Fleet, _session: Session, _draw: random.Random) -> bool:
    """A host that fails three times meanwhile is out, so another one joins instead."""
    _be_full(fleet, MACHINES, lambda: time.sleep(_LASTS_S))
    for nanny in tuple(fleet.nannies):
        nanny.terminate()
        nanny.wait(_END_S)
        fleet.replace(nanny)
    return True


def _full_results(fleet: Fleet, session: Session, _draw: random.Random) -> bool:
    _be_full(fleet, fleet.disks.results, lambda: _wait_for_end(session))
    return True


def _be_full(fleet: Fleet, disk: Path, wait: Callable[[], None]) -> None:
    fleet.disks.fill(disk)
    try:
        wait()
    finally:
        fleet.disks.make_room(disk)


def _scheduler(fleet: Fleet, session: Session, _draw: random.Random) -> bool:
    fleet.cluster.scheduler.kill()
    _wait_for_end(session)
    fleet.begin()
    return True


def _campaign(_fleet: Fleet, session: Session, _draw: random.Random) -> bool:
    session.kill()
    return True


def _asked_to_end(by: signal.Signals) -> Hit:
    def hit(_fleet: Fleet, session: Session, _draw: random.Random) -> bool:
        assert session.process is not None
        session.process.send_signal(by)
        _wait_for_end(session)
        return True

    return hit


def _wait_for_end(session: Session) -> None:
    assert session.process is not None
    session.process.wait(_END_S)


DISTURBANCES = (
    Disturbance(name="QEMU is killed", hit=_program("qemu-system"), hits_machines=True),
    Disturbance(name="the shelf is killed", hit=_program("nbdkit"), hits_machines=True),
    Disturbance(name="a sandbox is killed", hit=_sandbox),
    Disturbance(name="a worker is killed", hit=_worker),
    Disturbance(name="a nanny is killed", hit=_nanny),
    Disturbance(name="a worker stands still", hit=_still_worker, hits_machines=True),
    Disturbance(
        name="the machines' disk is full",
        hit=_full_machines,
        hits_machines=True,
        hits_each_trial=True,
    ),
    Disturbance(name="the results' disk is full", hit=_full_results, ends_campaign=True),
    Disturbance(name="the scheduler is killed", hit=_scheduler, ends_campaign=True),
    Disturbance(name="the campaign is killed", hit=_campaign, ends_campaign=True),
    Disturbance(
        name="the campaign gets SIGTERM", hit=_asked_to_end(signal.SIGTERM), ends_campaign=True
    ),
    Disturbance(
        name="the campaign gets Ctrl-C", hit=_asked_to_end(signal.SIGINT), ends_campaign=True
    ),
)
_WEIGHT = 3
"""Of a disturbance that the campaign outlives. One that ends it has 1: dead tries are then forgotten."""


def drawn(draw: random.Random) -> Disturbance:
    """A kind of disturbance; those that end the campaign are rarer."""
    weights = [1 if kind.ends_campaign else _WEIGHT for kind in DISTURBANCES]
    return draw.choices(DISTURBANCES, weights)[0]
