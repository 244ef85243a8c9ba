"""The cut itself: freeze the shelf, then SIGKILL; nothing graceful anywhere."""

from __future__ import annotations

import time

from torture.client.load.ledger import LedgerKeeper, LedgerLoad
from torture.errors import HarnessError
from torture.lab.machine import Machine
from torture.matrix.axes import Fate
from torture.record.evidence import CUT, write_document
from torture.shelf.server import Shelf
from torture.trial.bench import Bench
from torture.trial.cut import Aim, CutPlan

_BEGIN_DEADLINE_S = 10
_COMMIT_DEADLINE_S = 2.0
_COMMIT_POLL_S = 0.0005
_LOAD_POLL_S = 1.0


def wait_for_moment(plan: CutPlan, *, keeper: LedgerKeeper, load: LedgerLoad, shelf: Shelf) -> bool:
    """Return at the planned moment; the load began when its first promise was heard.

    True when what the plan aims at came. A pool without synchronous writes may not write for
    seconds, so a commit is not waited for any longer than that.
    """
    end = time.monotonic() + plan.after_ms / 1000
    while (left_s := end - time.monotonic()) > 0:
        time.sleep(min(left_s, _LOAD_POLL_S))
        load.raise_if_over()
    match plan.aim:
        case Aim.ANYWHERE:
            return True
        case Aim.OPERATION:
            begun = keeper.begun
            if not keeper.wait_until(lambda: keeper.begun > begun, deadline_s=_BEGIN_DEADLINE_S):
                raise HarnessError(f"the load began nothing for {_BEGIN_DEADLINE_S} s")
            time.sleep(plan.delay_ms / 1000)
            return True
        case Aim.COMMIT:
            end = time.monotonic() + _COMMIT_DEADLINE_S
            while time.monotonic() < end:
                if shelf.has_unflushed_write():
                    return True
                time.sleep(_COMMIT_POLL_S)
            return False


def strike(bench: Bench, plan: CutPlan, *, hit: bool, nas: Machine, client: Machine) -> None:
    """Cut the NAS's power, and the client's with it if that is its fate; writes `cut.json`.

    The shelf stops first, on all disks at one instant: what it had completed survives, what was in
    flight is dropped.
    """
    assert bench.keeper is not None
    t_ms = bench.clock_ms()
    bench.shelf.freeze()
    bench.keeper.mark_cut(t_ms)
    nas.kill()
    if bench.spec.cell.fate is Fate.BOTH_DIE:
        client.kill()
    dead_ms = bench.clock_ms()
    bench.shelf.stop()
    activity = bench.shelf.activity()
    cut = {
        "t_ms": round(t_ms, 3),
        "took_ms": round(dead_ms - t_ms, 3),
        "plan": plan.as_json(),
        "hit": hit,
        "begun": bench.keeper.begun,
        "promised": bench.keeper.promised,
        "disks": {
            name: {"in_flight": disk.in_flight, "unflushed": disk.unflushed, "writes": disk.writes}
            for name, disk in activity.disks.items()
        },
    }
    write_document(bench.folder, CUT, cut)
