"""The disturbances of a campaign on a fleet: each ends a process, or lets one stand still."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence

from suites.chaos.fleet import Fleet, Session

_STANDS_STILL_S = 20
_END_S = 120
"""A session that is asked to end first ends its trials."""


def _kill_one(victims: Sequence[int], draw: random.Random) -> bool:
    """Kill one of these processes; whether there was one."""
    if not victims:
        return False
    os.kill(draw.choice(sorted(victims)), signal.SIGKILL)
    return True


def _qemu(fleet: Fleet, _session: Session, draw: random.Random) -> bool:
    return _kill_one(fleet.programs("qemu-system"), draw)


def _shelf(fleet: Fleet, _session: Session, draw: random.Random) -> bool:
    return _kill_one(fleet.programs("nbdkit"), draw)


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
    time.sleep(_STANDS_STILL_S)
    os.kill(worker, signal.SIGCONT)
    return True


def _scheduler(fleet: Fleet, session: Session, _draw: random.Random) -> bool:
    fleet.cluster.scheduler.kill()
    _wait_for_end(session)
    fleet.begin()
    return True


def _campaign(_fleet: Fleet, session: Session, _draw: random.Random) -> bool:
    session.kill()
    return True


def _asked_to_end(by: signal.Signals) -> Callable[[Fleet, Session, random.Random], bool]:
    def disturb(_fleet: Fleet, session: Session, _draw: random.Random) -> bool:
        assert session.process is not None
        session.process.send_signal(by)
        _wait_for_end(session)
        return True

    return disturb


def _wait_for_end(session: Session) -> None:
    assert session.process is not None
    session.process.wait(_END_S)


DISTURBANCES: dict[str, Callable[[Fleet, Session, random.Random], bool]] = {
    "QEMU is killed": _qemu,
    "the shelf is killed": _shelf,
    "a sandbox is killed": _sandbox,
    "a worker is killed": _worker,
    "a nanny is killed": _nanny,
    "a worker stands still": _still_worker,
    "the scheduler is killed": _scheduler,
    "the campaign is killed": _campaign,
    "the campaign gets SIGTERM": _asked_to_end(signal.SIGTERM),
    "the campaign gets Ctrl-C": _asked_to_end(signal.SIGINT),
}
"""Each returns whether it found its victim."""
HITS_MACHINES = frozenset({"QEMU is killed", "the shelf is killed", "a worker stands still"})
"""Of these a trial may be inconclusive: it was the trial's machine."""
