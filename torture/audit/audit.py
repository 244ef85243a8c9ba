"""The audit: a recording's log held against what ZFS promises at every uberblock and acknowledgement.

A cut meets one moment of thousands. A flush that is missing once in twenty is seen here at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from torture.audit.commits import Commits
from torture.audit.completions import Completions, Durable, due_writes
from torture.audit.coverage import Coverage
from torture.audit.extents import Extents
from torture.audit.labels import Labels, is_probe
from torture.audit.logged import Logged
from torture.audit.phases import Phase, PhaseTracker
from torture.axes.sync import Sync
from torture.evidence.audit_document import AuditDocument
from torture.evidence.ledger import Begin, Done, parse_ledger
from torture.recording.events import Event, Kind, Recording
from torture.recording.intent_log import log_blocks_in
from torture.recording.roles import OF_A_TXG, Role, role_of, txg_of

_FINDINGS_TOLD_MAX = 5
_LATELY_MS = 1_000


class Invariant(StrEnum):
    """What must hold."""

    TXG_IS_DURABLE = "txg-is-durable"
    """When an uberblock is submitted, every write of its transaction group, and of all before it, is
    covered by a flush of its disk (OpenZFS `module/zfs/vdev_label.c`, `vdev_config_sync`: "flush the
    write cache of every disk that's been written to in this transaction group").
    """
    UBERBLOCKS_ASCEND = "uberblocks-ascend"
    """A disk's uberblocks are written in the order of their transaction groups."""
    LABELS_TAKE_TURNS = "labels-take-turns"
    """Labels are covered before the uberblock behind them is written, and uberblocks before the labels
    behind them (`torture.audit.labels`)."""
    ACKNOWLEDGED_IS_DURABLE = "acknowledged-is-durable"
    """Between an operation's beginning and its acknowledgement a block of the ZIL was written and
    covered, or a transaction group committed; and all blocks of the ZIL that hold what it wrote are
    covered (`module/zfs/zil.c`, `zil_commit`: on stable storage when it returns).
    """
    EXTENT_IS_KEPT = "extent-is-kept"
    """What a transaction group wrote is not overwritten or trimmed by the next two
    (`torture.audit.extents`)."""
    COMPLETED_IS_DURABLE = "completed-is-durable"
    """What the client's disk completed is durable (`torture.audit.completions`)."""
    TXG_IS_IN_TIME = "txg-is-in-time"
    """Where a client is acknowledged something, a transaction group is written soon
    (`torture.audit.commits.LATE_MS`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """An invariant that was broken: at which event, and which submissions were not covered.

    Of a request of the client, where it wrote; else None.
    """

    invariant: Invariant
    event: int
    uncovered: tuple[int, ...] = ()
    offset_bytes: int | None = None
    until: int | None = field(default=None, compare=False)
    """Of a request of the client the last event at which it still did not hold; else None."""

    def in_words(self) -> str:
        """E.g. `acknowledged-is-durable at event 1401: 4 writes not covered, first 1391`."""
        text = f"{self.invariant} at event {self.event}"
        if self.offset_bytes is not None:
            return f"{text}: what was written at byte {self.offset_bytes} of the client's disk"
        if not self.uncovered:
            return text
        return f"{text}: {len(self.uncovered)} writes not covered, first {self.uncovered[0]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """What was looked at, and what was found."""

    acknowledged_at: tuple[int, ...]
    """The marks with which a durable operation was acknowledged, by number."""
    completions: int | None
    """Writes of the client that had to be durable; None where its disk told nothing."""
    txgs: int
    findings: tuple[Finding, ...]
    waived: int
    """Of the invariants that were waived: how often one did not hold."""
    phase: Phase
    """Of the cut."""
    under_way: int | None
    """Durable operations begun and not acknowledged at the cut; None where no load keeps a ledger."""
    acknowledged_lately: int | None
    """Durable operations acknowledged within `_LATELY_MS` before it; None likewise."""
    uncommitted_ms: int | None
    """As `torture.audit.commits.Commits.uncommitted_ms` at the cut."""

    @property
    def acknowledgements(self) -> int:
        """Durable operations that were acknowledged."""
        return len(self.acknowledged_at)

    def as_document(self, *, took_ms: int) -> AuditDocument:
        """For `cut.json`."""
        return AuditDocument(
            acknowledgements=self.acknowledgements,
            completions=self.completions,
            txgs=self.txgs,
            broken=len(self.findings),
            findings=tuple(finding.in_words() for finding in self.findings[:_FINDINGS_TOLD_MAX]),
            waived=self.waived or None,
            under_way=self.under_way,
            acknowledged_lately=self.acknowledged_lately,
            uncommitted_ms=self.uncommitted_ms,
            took_ms=took_ms,
        )


def audit(
    recording: Recording,
    *,
    cut: int,
    sync: Sync,
    completed_sync: Sync | None = None,
    completions: Completions | None = None,
    waived: Collection[Invariant] = frozenset(),
) -> Audit:
    """Audit the events up to and with `cut`, and what the client's disk completed by then.

    `waived`: what the cell breaks by its own settings, which is counted only.
    `sync`: unless it is disabled, an acknowledgement means that the ZIL, or a txg, is durable.
    `completed_sync`: the same of what the client's disk completed, where that is not the same.
    Writes that ZFS makes before their transaction group syncs (indirect blocks of the ZIL, `dmu_sync`)
    would be taken for those of the one before: volumes whose writes become such are not to be audited.
    Raises what `Recording.payload` raises.
    """
    auditor = _Auditor(recording=recording, sync=sync)
    for event in recording.events[: cut + 1]:
        auditor.hear(event)
    audited_writes = (
        None
        if completions is None
        else auditor.hear_completions(completions, sync=completed_sync or sync, cut=cut)
    )
    held = [finding for finding in auditor.findings if finding.invariant not in waived]
    since_ns = recording.events[cut].time_ns - _LATELY_MS * 1_000_000
    return Audit(
        acknowledged_at=tuple(auditor.acknowledged_at),
        completions=audited_writes,
        txgs=len(auditor.txgs),
        findings=tuple(held),
        waived=len(auditor.findings) - len(held),
        phase=auditor.phases.phase,
        under_way=auditor.under_way if auditor.has_ledger else None,
        acknowledged_lately=auditor.acknowledged_since(since_ns) if auditor.has_ledger else None,
        uncommitted_ms=auditor.commits.uncommitted_ms(recording.events[cut]),
    )


@dataclass(kw_only=True)
class _Auditor:
    """The state of an audit, event by event."""

    recording: Recording
    sync: Sync
    has_ledger: bool = False
    acknowledged_at: list[int] = field(default_factory=list)
    txgs: set[int] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    _writes: dict[Role, Coverage] = field(
        default_factory=lambda: {role: Coverage() for role in Role}
    )
    phases: PhaseTracker = field(init=False)
    commits: Commits = field(init=False)
    logged: Logged = field(default_factory=Logged)
    extents: Extents = field(default_factory=Extents)
    labels: Labels = field(init=False)
    _txg_by_disk: dict[int | None, int] = field(default_factory=dict)
    _begun: dict[int, int] = field(default_factory=dict)
    """Durable operations under way: the number of the mark that announced each."""

    def __post_init__(self) -> None:
        self.phases = PhaseTracker(writes=self._writes)
        self.commits = Commits(uberblocks=self._writes[Role.UBERBLOCK])
        self.labels = Labels(
            labels=self._writes[Role.LABEL], uberblocks=self._writes[Role.UBERBLOCK]
        )

    @property
    def under_way(self) -> int:
        """Durable operations begun and not acknowledged."""
        return len(self._begun)

    def acknowledged_since(self, time_ns: int) -> int:
        """Durable operations acknowledged at this time of the log or later."""
        events = self.recording.events
        return sum(events[done].time_ns >= time_ns for done in self.acknowledged_at)

    def hear(self, event: Event) -> None:
        """One event."""
        role = None
        if self.commits.hear(event):
            self._find(Invariant.TXG_IS_IN_TIME, event)
        match event.kind:
            case Kind.WRITE_SUBMIT:
                role = self._hear_write(event)
            case Kind.MARK:
                self._hear_mark(event)
            case Kind.TRIM_SUBMIT | Kind.ZERO_SUBMIT:
                self.extents.hear_trim(event)
            case _:
                for coverage in self._writes.values():
                    coverage.hear(event)
        self.phases.hear(event, role=role)

    def _hear_write(self, event: Event) -> Role:
        payload = self.recording.payload(event)
        role = role_of(payload)
        if role is Role.UBERBLOCK:
            self._hear_uberblock(event, txg_of(payload))
        elif role is Role.LABEL:
            if early := self.labels.hear_label(event):
                self._find(Invariant.LABELS_TAKE_TURNS, event, early)
        elif self._is_probe(event):
            return role
        elif role in OF_A_TXG:
            self.commits.hear_write_of_txg(event)
            self.extents.hear_write(event)
        elif role is Role.ZIL:
            self.logged.hear_zil(event, payload)
            self.extents.hear_log(event)
            if not all(block.is_whole for block in log_blocks_in(payload)):
                self.extents.is_blind = True
        self._writes[role].submit(event)
        return role

    def _is_probe(self, event: Event) -> bool:
        disk = event.disk
        return disk is not None and is_probe(event, disk_bytes=self.recording.disks[disk].size)

    def _hear_uberblock(self, event: Event, txg: int) -> None:
        if txg < self._txg_by_disk.get(event.disk, 0):
            self._find(Invariant.UBERBLOCKS_ASCEND, event)
        self._txg_by_disk[event.disk] = txg
        if late := self.labels.hear_uberblock(event):
            self._find(Invariant.LABELS_TAKE_TURNS, event, late)
        self.commits.hear_uberblock(event, is_copy=txg in self.txgs)
        if txg in self.txgs:
            return  # its copies in the other labels
        self.txgs.add(txg)
        for taking in self.extents.hear_uberblock(txg):
            self._find(Invariant.EXTENT_IS_KEPT, taking)
        uncovered = [write for of in OF_A_TXG for write in self._writes[of].uncovered]
        if uncovered:
            self._find(Invariant.TXG_IS_DURABLE, event, sorted(uncovered))

    def _hear_mark(self, event: Event) -> None:
        self.has_ledger = True
        for heard in parse_ledger(self.recording.payload(event)).events:
            if isinstance(heard, Begin) and heard.kind.is_durable:
                self._begun[heard.seq] = event.seq
            elif isinstance(heard, Done) and heard.seq in self._begun:
                begun = self._begun.pop(heard.seq)
                self._hear_acknowledged(event, operation=heard.seq, begun=begun)

    def _hear_acknowledged(self, event: Event, *, operation: int, begun: int) -> None:
        self.acknowledged_at.append(event.seq)
        self.commits.hear_acknowledgement()
        if self.sync is Sync.DISABLED:
            return
        uncovered = self._writes[Role.ZIL].uncovered
        if own := set(self.logged.blocks_of(operation)).intersection(uncovered):
            self._find(Invariant.ACKNOWLEDGED_IS_DURABLE, event, sorted(own))
            return
        durable = max(self._writes[role].latest for role in (Role.ZIL, Role.UBERBLOCK))
        if durable < begun:
            self._find(Invariant.ACKNOWLEDGED_IS_DURABLE, event, uncovered)

    def hear_completions(self, completions: Completions, *, sync: Sync, cut: int) -> int:
        """What the client's disk completed by the cut; returns how many writes had to be durable."""
        durable, events = self._durable(), self.recording.events
        count = 0
        cut_ns = events[cut].time_ns
        for due in due_writes(completions.requests, sync=sync, cut_ns=cut_ns):
            count += 1
            if not durable.keeps(due, error_ns=completions.error_ns):
                kept_ns = durable.since_ns(due.write, error_ns=completions.error_ns)
                at = bisect_right(events, due.due_ns, hi=cut + 1, key=_time_ns) - 1
                until = cut if kept_ns is None else bisect_left(events, kept_ns, key=_time_ns) - 1
                self.findings.append(
                    Finding(
                        invariant=Invariant.COMPLETED_IS_DURABLE,
                        event=at,
                        offset_bytes=due.write.offset_bytes,
                        until=max(at, min(until, cut)),
                    )
                )
        return count

    def _durable(self) -> Durable:
        durable, events = Durable(), self.recording.events
        for role, coverage in self._writes.items():
            for submission, at in coverage.covered_at.items():
                submitted_ns, covered_ns = events[submission].time_ns, events[at].time_ns
                if role is Role.UBERBLOCK:
                    durable.hear_uberblock(submitted_ns=submitted_ns, covered_ns=covered_ns)
                else:  # what was merged with others may not look like a block of the log
                    payload = self.recording.payload(events[submission])
                    durable.hear_log(payload, submitted_ns=submitted_ns, covered_ns=covered_ns)
        return durable

    def _find(self, invariant: Invariant, event: Event, uncovered: Collection[int] = ()) -> None:
        self.findings.append(
            Finding(invariant=invariant, event=event.seq, uncovered=tuple(uncovered))
        )


def _time_ns(event: Event) -> int:
    return event.time_ns
