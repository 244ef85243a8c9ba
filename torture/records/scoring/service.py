"""From a trial's ledger: the speed of its cell, and the acknowledgements in the time without a NAS.

The ledger's order and the host's clock date an acknowledgement. An answer from before the cut may
reach the client after it. A sync without anything left to flush needs no NAS at all: QEMU then asks
none (`bdrv_co_flush` in its `block/io.c`). The latest of these acknowledgements in 751 trials with a
surviving client came 257 ms after the cut. This includes a think time of its operation.

Two kinds are left. The first **began** after the cut and was acknowledged before the NAS was
published again: no NAS can have stored it. The second began before the cut and was acknowledged
`ON_THE_WAY_MS` after it or later. It has waited for an answer that never came: the client itself
ended its flush. It may still be true where every completed write is stored without a flush, as with
sync=always.
"""

from __future__ import annotations

import errno
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from torture.facts.axes.sync import Sync
from torture.facts.evidence.cut_document import LinkFailure
from torture.facts.evidence.folder import Evidence, Step
from torture.facts.evidence.ledger import Begin, Cut, Done, Event, Failed, Ledger
from torture.records.record.trials import Absence, Remedy, Speed

ON_THE_WAY_MS = 2_000
"""For this time after a cut, an acknowledgement may have been on its way, on a busy host too."""
_LINES_MAX = 20


def speed_of(evidence: Evidence) -> Speed:
    """The speed up to the cut; empty where the load does not report the time of its operations."""
    before, _ = _parted(evidence)
    begun = {event.seq: event for event in before if isinstance(event, Begin)}
    ended = [event for event in before if isinstance(event, Done) and event.seq in begun]
    work_ms = [event.work_ms for event in ended if _is_time(event.work_ms)]
    waited_ms = (
        math.fsum(event.sync_ms)
        for event in ended
        if begun[event.seq].kind.is_durable and event.sync_ms
    )
    syncs_ms = sorted(ms for ms in waited_ms if _is_time(ms))
    durable = sum(begun[event.seq].kind.is_durable for event in ended)
    writers = len({begun[event.seq].writer for event in ended})
    total_ms = math.fsum(ms for ms in work_ms if ms is not None)
    is_measured = len(work_ms) == len(ended) and total_ms > 0
    return Speed(
        durable_per_s=round(writers * durable / total_ms * 1000, 3) if is_measured else None,
        sync_p50_ms=_nearest_rank(syncs_ms, 0.5),
        sync_p99_ms=_nearest_rank(syncs_ms, 0.99),
    )


def absence_of(evidence: Evidence, *, sync: Sync) -> Absence:
    """The known facts about the time without a NAS.

    `sync`: that of the writes that the client's disk completed
    (`torture.choices.matrix.cell_terms.completed_sync_of`).
    """
    cut = evidence.cut
    before, after = _parted(evidence)
    found, unfounded, counted = list[Done](), 0, Absence()
    if cut.link is not None and not cut.link.has_other_path:
        found, unfounded = _through_a_dead_link(before, cut.link, sync=sync)
        counted = Absence(
            acknowledged_in_outage=len(found), unfounded=unfounded, lines=_lines_of(found)
        )
    if cut.t_ms is None or cut.publishing_ms is None or cut.published_ms is None:
        return counted
    outage_ms = round(max(0.0, cut.published_ms - cut.t_ms), 3)
    if cut.confirmed.is_made:
        # the client was taken for dead: later acknowledgements do not count
        return replace(counted, outage_ms=outage_ms)
    begun = {event.seq: event for event in before if isinstance(event, Begin)}
    begun_there: dict[int, Begin] = {}
    back: Done | None = None
    for event in after:
        match event:
            case Cut():
                break
            case Begin():
                begun_there[event.seq] = event
            case Done(t_ms=t_ms, seq=seq):
                operation = begun_there.get(seq) or begun.get(seq)
                if operation is None or not operation.kind.is_durable:
                    continue
                if t_ms >= cut.publishing_ms:
                    back = back or event
                elif seq in begun_there or t_ms - cut.t_ms >= ON_THE_WAY_MS:
                    found.append(event)
                    unfounded += seq in begun_there or sync is not Sync.ALWAYS
            case _:
                pass
    return Absence(
        outage_ms=outage_ms,
        reconnect_ms=None if back is None else round(max(0.0, back.t_ms - cut.published_ms), 3),
        acknowledged_in_outage=len(found),
        unfounded=unfounded,
        lines=_lines_of(found),
    )


def _through_a_dead_link(
    events: Sequence[Event], link: LinkFailure, *, sync: Sync
) -> tuple[list[Done], int]:
    """The acknowledgements while the NAS's link was down, and how many of them are unfounded.

    An operation counts as begun there if it began when nothing was on the way any more. Where another
    path was left, the audit alone asks for their flushes.
    """
    if link.down_ms is None or link.up_ms is None:
        return [], 0
    silent_ms = link.down_ms + ON_THE_WAY_MS
    begun = {event.seq: event for event in events if isinstance(event, Begin)}
    found = [
        event
        for event in events
        if isinstance(event, Done)
        and silent_ms <= event.t_ms < link.up_ms
        and event.seq in begun
        and begun[event.seq].kind.is_durable
    ]
    began_there = sum(begun[event.seq].t_ms >= silent_ms for event in found)
    return found, began_there if sync is Sync.ALWAYS else len(found)


def _lines_of(found: Sequence[Done]) -> tuple[int, ...]:
    return tuple(event.line for event in found[:_LINES_MAX])


def absence_in_words(absence: Absence) -> Iterator[str]:
    """Remarks that a reader of the trial must see; none where all is as it should be."""
    if not absence.acknowledged_in_outage:
        return
    one = absence.acknowledged_in_outage == 1
    lines = ", ".join(str(line) for line in absence.lines)
    vouched = absence.acknowledged_in_outage - absence.unfounded
    rest = f"; {vouched} may have been stored before it, without a flush" if vouched else ""
    yield (
        f"{absence.acknowledged_in_outage} operation{' was' if one else 's were'} acknowledged "
        f"while no NAS could answer (line{'' if one else 's'} {lines} of the ledger){rest}"
    )


def _parted(evidence: Evidence) -> tuple[Sequence[Event], Sequence[Event]]:
    """The ledger before the first cut and after it; all of it is before a cut that it lacks."""
    events = evidence.ledger.events
    place = next((at for at, event in enumerate(events) if isinstance(event, Cut)), len(events))
    return events[:place], events[place + 1 :]


def _is_time(ms: float | None) -> bool:
    return ms is not None and math.isfinite(ms) and ms >= 0


def _nearest_rank(ascending: Sequence[float], share: float) -> float | None:
    if not ascending:
        return None
    return round(ascending[max(0, math.ceil(share * len(ascending)) - 1)], 3)


_OFFLINE = frozenset(
    {
        errno.EACCES,
        errno.EAGAIN,
        errno.EBADF,
        errno.EIO,
        errno.EREMOTEIO,
        errno.EROFS,
        errno.ESTALE,
        errno.ETIMEDOUT,
        errno.EHOSTDOWN,
        errno.ENODEV,
        errno.ENOSPC,
    }
)
"""The errors of a call whose disk is gone, or whose filesystem shut itself down."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FailedWriters:
    """Writers of a client that lived on, whose last event after the cut is a failure.

    `first` is the earliest failure. A writer stops at its first failed call.
    """

    count: int
    of: int
    """The number of writers, by the load; at least the number of those that began something."""
    first: Failed | None

    def are_offline(self, *, gives_up: bool) -> bool:
        """Whether the disk or mount failed under all of them, rather than one call of one.

        `gives_up`: the client's patience may end. Then each call has its own end, and one will do.
        """
        is_of_disk = self.first is not None and self.first.errno in _OFFLINE
        return is_of_disk and (gives_up or self.count == self.of)

    @property
    def in_words(self) -> str:
        """E.g. `1 of 3 writers failed for good: errno 17 in open`; empty where none did."""
        if self.first is None:
            return ""
        how = f"errno {self.first.errno} in {self.first.call}"
        return f"{self.count} of {self.of} writers failed for good: {how}"


CAME_BACK = {
    Remedy.WAIT: "came back by itself",
    Remedy.LOG_IN: "came back after an unmount, a new login and a mount",
    Remedy.RESTART: "came back as a new client attached it",
    Remedy.REPAIR: "came back after a repair",
}


def remedy_of(evidence: Evidence, writers: FailedWriters) -> Remedy:
    """The first remedy that worked, for a client whose disk was dead; older trials tried two."""
    if writers.count < writers.of:
        return Remedy.WAIT
    for step, remedy in ((Step.REMEDY_WAIT, Remedy.WAIT), (Step.REMEDY_LOG_IN, Remedy.LOG_IN)):
        tried = evidence.output(step)
        if tried is not None and tried.exit_code == 0:
            return remedy
    return Remedy.RESTART if evidence.output(Step.FS_REPAIR) is None else Remedy.REPAIR


def with_offline(
    absence: Absence, evidence: Evidence, writers: FailedWriters, *, gives_up: bool
) -> Absence:
    """The absence with the client's loss of its disk; unchanged where the disk was not lost."""
    if not writers.are_offline(gives_up=gives_up) or writers.first is None:
        return absence
    link = evidence.cut.link
    since_ms = evidence.cut.t_ms if link is None or link.down_ms is None else link.down_ms
    after_ms = None if since_ms is None else round(max(0.0, writers.first.t_ms - since_ms), 3)
    return replace(absence, offline_ms=after_ms, remedy=remedy_of(evidence, writers))


def failed_writers(ledger: Ledger, *, before_cut: bool = False) -> FailedWriters:
    """The ledger's writers whose last event failed after the first cut; or `before_cut`, too."""
    writer_of: dict[int, int] = {}
    last: dict[int, Failed | None] = {}
    is_cut = before_cut
    for event in ledger.events:
        match event:
            case Cut():
                is_cut = True
            case Begin():
                writer_of[event.seq] = event.writer
                last[event.writer] = None
            case Done():
                last[writer_of.get(event.seq, -1)] = None
            case Failed() if is_cut:
                last[writer_of.get(event.seq, -1)] = event
            case _:
                pass
    failed = [event for event in last.values() if event is not None]
    return FailedWriters(
        count=len(failed),
        of=max(ledger.writers, len(set(writer_of.values()))),
        first=min(failed, key=lambda event: event.t_ms, default=None),
    )
