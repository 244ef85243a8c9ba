"""The cut itself: freeze the shelf, then SIGKILL; nothing graceful anywhere."""

from __future__ import annotations

import time
from typing import Any

from torture.client.load.ledger import LedgerKeeper, LedgerLoad
from torture.errors import HarnessError
from torture.lab.machine import Machine
from torture.matrix.axes import Fate
from torture.record.evidence import CUT, write_document
from torture.trial.bench import Bench
from torture.trial.cut import CutPlan

_BEGIN_DEADLINE_S = 10
_PROMISE_POLL_S = 1.0


def wait_for_moment(plan: CutPlan, *, keeper: LedgerKeeper, load: LedgerLoad) -> None:
    """Return at the planned moment; the load began when its first promise was heard."""
    end = time.monotonic() + plan.after_ms / 1000
    while (left_s := end - time.monotonic()) > 0:
        time.sleep(min(left_s, _PROMISE_POLL_S))
        load.raise_if_over()
    if plan.after_begin_ms is not None:
        begun = keeper.begun
        if not keeper.wait_until(lambda: keeper.begun > begun, deadline_s=_BEGIN_DEADLINE_S):
            raise HarnessError(f"the load began nothing for {_BEGIN_DEADLINE_S} s before the cut")
        time.sleep(plan.after_begin_ms / 1000)


def strike(bench: Bench, plan: CutPlan, *, nas: Machine, client: Machine) -> dict[str, Any]:
    """Cut the NAS's power, and the client's with it if that is its fate.

    The shelf stops first, on all disks at one instant: what it had completed survives, what was in
    flight is dropped. Returns what `cut.json` says.
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
        "begun": bench.keeper.begun,
        "promised": bench.keeper.done,
        "disks": {
            name: {"in_flight": disk.in_flight, "unflushed": disk.unflushed, "writes": disk.writes}
            for name, disk in activity.disks.items()
        },
    }
    write_document(bench.folder, CUT, cut)
    return cut
