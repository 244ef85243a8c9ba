"""The cut itself: freeze the shelf, then SIGKILL; nothing graceful anywhere."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from torture.errors import HarnessError
from torture.evidence.folder import CUT, CUT_VIEW, LEDGER, write_document
from torture.evidence.ledger import parse_ledger
from torture.lab.machine import Machine
from torture.matrix.axes import Fate
from torture.plan.cut_plan import Aim, CutPlan
from torture.plan.survivors import account, draw_view
from torture.recording.events import Kind, Recording, load_recording
from torture.recording.views import write_view
from torture.shelf.control import FreezeOn
from torture.shelf.server import Shelf
from torture.trial.context import Bench
from torture.workloads.ledger import LedgerKeeper, LedgerLoad

_BEGIN_DEADLINE_S = 10
_EVENT_DEADLINE_S = 2.0
_EVENT_POLL_S = 0.002
_LOAD_POLL_S = 1.0
_HEARD_DEADLINE_S = 10

_EVENTS = {Aim.WRITE: Kind.WRITE_COMPLETE, Aim.FLUSH: Kind.FLUSH_SUBMIT}


def wait_for_moment(plan: CutPlan, *, keeper: LedgerKeeper, load: LedgerLoad, shelf: Shelf) -> bool:
    """Return at the planned moment; the load began when its first promise was heard.

    True when what the plan aims at came; the shelf has frozen itself then, if that was an event of
    a disk. A pool without synchronous writes may not write for seconds, so an event is not waited
    for any longer than that.
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
        case Aim.WRITE | Aim.FLUSH:
            shelf.freeze_on(FreezeOn(event=_EVENTS[plan.aim], count=plan.count))
            end = time.monotonic() + _EVENT_DEADLINE_S
            while time.monotonic() < end:
                if shelf.is_frozen:
                    return True
                time.sleep(_EVENT_POLL_S)
            return False


def strike(bench: Bench, plan: CutPlan, *, hit: bool, nas: Machine, client: Machine) -> Path:
    """Cut the NAS's power, and the client's with it if that is its fate.

    The shelf stops first, on all disks with the same event. Writes `cut.json`, and the view of what
    is left, which is returned.
    """
    keeper = bench.keeper
    assert keeper is not None
    t_ms = bench.clock_ms()
    cut = bench.shelf.freeze()
    keeper.mark_cut(t_ms)
    nas.kill()
    if bench.spec.cell.fate is Fate.BOTH_DIE:
        client.kill()
    dead_ms = bench.clock_ms()
    bench.shelf.must_be_well()
    bench.shelf.stop()
    recording = load_recording(bench.shelf.recording)
    if len(recording.events) <= cut:
        raise HarnessError(
            f"the shelf froze at event {cut}, its log has {len(recording.events)}",
            hint=f"read {bench.shelf.errors}",
        )
    view = draw_view(
        bench.shelf.recording, cut=cut, disks=bench.disks, gone=bench.gone, seed=bench.spec.seed
    )
    view_file = bench.shelf.directory / CUT_VIEW
    write_view(view_file, view)
    document = {
        "t_ms": round(t_ms, 3),
        "took_ms": round(dead_ms - t_ms, 3),
        "plan": plan.as_json(),
        "hit": hit,
        "log_seq": cut,
        "log_ms": round(recording.events[cut].time_ns / 1e6, 3),
        **_promised_before(bench, recording, cut),
        "view": view.as_json() | {"recording": bench.shelf.recording.name},
        "disks": account(recording, view, bench.disks),
    }
    write_document(bench.folder, CUT, document)
    return view_file


def _promised_before(bench: Bench, recording: Recording, cut: int) -> dict[str, Any]:
    """What the client had been promised when the disks stopped, by the numbers of their log.

    Raises `HarnessError` when the marks are not the ledger's first lines: then nobody can tell.
    """
    marks = [
        recording.payload(event) for event in recording.events[: cut + 1] if event.kind is Kind.MARK
    ]
    keeper = bench.keeper
    assert keeper is not None
    keeper.wait_until(lambda: keeper.heard >= len(marks), deadline_s=_HEARD_DEADLINE_S)
    lines = (bench.folder / LEDGER).read_bytes().splitlines(keepends=True)
    heard = [line for line in lines if not line.startswith(b'{"event":"cut"')]
    if heard[: len(marks)] != marks:
        raise HarnessError(
            "the marks in the shelf's log are not the first lines of the ledger",
            hint=f"compare {bench.folder / LEDGER} with {bench.shelf.recording}",
        )
    before = parse_ledger(b"".join(marks))
    return {"marks": len(marks), "promised": before.promised}
