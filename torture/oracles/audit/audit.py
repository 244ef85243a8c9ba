"""The audit checks a recording against ZFS's invariants at every uberblock and acknowledgement.

A cut tests one moment of thousands. The audit tests all of them, so it detects a flush that is missing
once in twenty.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter

from torture.facts.axes.sync import Sync
from torture.facts.recording.events import Event, Kind, RecordedDisk, Recording
from torture.facts.recording.intent_log import TXG_ROLES, Role, root_in
from torture.oracles.audit.at_risk import AtRisk, Returned, at_risk_in, returns_in
from torture.oracles.audit.commits import LATE_MS, Commits, Coverage, Groups, PhaseTracker
from torture.oracles.audit.disk_writes import DiskWrite, disk_writes_in, missing_links
from torture.oracles.audit.durable import Completions, durable_in, overdue_in
from torture.oracles.audit.extents import Extents
from torture.oracles.audit.invariants import Audit, Finding, Invariant
from torture.oracles.audit.log_contents import Contents, Logged
from torture.oracles.audit.operations import Acknowledged, Operations
from torture.oracles.audit.pointed_data import Pointed, disks_in, find_pointed, places_of
from torture.oracles.audit.vdevs.labels import Labels, Trims, is_partition_table, is_probe
from torture.oracles.audit.vdevs.members import Members


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditTerms:
    """The terms; by default those of a zvol on disks of which each holds whole blocks."""

    sync: Sync
    """Unless disabled, an acknowledgement means that the ZIL, or a transaction group, is durable."""
    completed_sync: Sync | None = None
    """The level for completed block requests; None: the same."""
    waived: Mapping[Invariant, int] = field(default_factory=dict)
    """Invariants that the cell's own settings break, and the event from which on they do. From there
    the audit only counts their violations."""
    whole_on: Collection[str] | None = None
    """The disks that each hold whole data blocks at one place. Empty where blocks are split over disks;
    None: all disks."""
    writes_once: bool = True
    """Whether the client's filesystem writes no second copy of its data
    (`torture.choices.filesystems.protocol`). Only then must every log block with these data be
    covered."""
    names_are_volatile: bool = False
    """Whether an acknowledgement covers only the blocks that it names."""
    length_shows_metadata: bool = True
    """Whether a write's length distinguishes metadata from data (`intent_log.Role`)."""
    only_groups_write: bool = True
    """Whether only transaction groups and the ZIL write, and no resilver. Then a committed group vouches
    for everything before its first write, otherwise before its uberblock."""
    early_roles: Collection[Role] = ()
    """The roles of writes that may come before their group: their group is undecided."""
    late_ms: int = LATE_MS
    """How long after an acknowledgement a group may begin (`torture.oracles.audit.commits`)."""


def audit(
    recording: Recording, *, cut: int, terms: AuditTerms, completions: Completions | None = None
) -> Audit:
    """Audit the events up to and including `cut`, and the client's requests completed by then.

    Raises what `Recording.payload` raises.
    """
    whole_on = terms.whole_on
    if whole_on is None:
        whole_on = [disk.name for disk in recording.disks]
    disk_writes = disk_writes_in(recording, cut=cut, is_split=not whole_on)
    pointed = find_pointed(recording, disk_writes, whole_on=whole_on)
    early = {seq for seq, written in disk_writes.items() if written.role in terms.early_roles}
    undecided = pointed.undecided | (early - pointed.born_in.keys())
    pointed = replace(pointed, undecided=undecided)
    auditor = _Auditor(
        recording=recording,
        terms=terms,
        groups=Groups(only_groups_write=terms.only_groups_write),
        whole_disks=disks_in(recording, whole_on),
        returns=returns_in(recording, cut=cut),
        operations=Operations(names_are_volatile=terms.names_are_volatile),
        disk_writes=disk_writes,
        pointed=pointed,
    )
    for event in recording.events[: cut + 1]:
        auditor.hear(event)
    audited_writes = None if completions is None else auditor.hear_completions(completions, cut=cut)
    operations = auditor.operations
    # a recording without a saved state begins with the pool's creation
    loaded = next((event.seq for event in recording.events if event.kind is Kind.MARK), 0)
    held = [
        finding
        for finding in auditor.findings
        if finding.event < terms.waived.get(finding.invariant, math.inf)
    ]
    return Audit(
        acknowledged_at=tuple(one.acknowledged for one in operations.acknowledged),
        completions=audited_writes,
        txgs=len(auditor.groups.txgs),
        findings=tuple(held),
        waived=len(auditor.findings) - len(held),
        phase=auditor.phases.phase,
        under_way=operations.under_way if operations.has_ledger else None,
        at_risk=auditor.at_risk(cut) if operations.has_ledger else None,
        uncommitted_ms=auditor.commits.uncommitted_ms(recording.events[cut]),
        layout_changes=auditor.members.in_words(recording.disks, since=loaded),
    )


@dataclass(kw_only=True)
class _Auditor:
    """The state of an audit; it takes the events one by one."""

    recording: Recording
    terms: AuditTerms
    groups: Groups
    whole_disks: list[int]
    disk_writes: dict[int, DiskWrite]
    pointed: Pointed
    returns: dict[int, Returned]
    operations: Operations
    findings: list[Finding] = field(default_factory=list)
    _writes: dict[Role, Coverage] = field(
        default_factory=lambda: {role: Coverage() for role in Role}
    )
    _pointed_writes: Coverage = field(default_factory=Coverage)
    """Writes that hold only data that the intent log points to."""
    phases: PhaseTracker = field(init=False)
    commits: Commits = field(init=False)
    logged: Logged = field(default_factory=Logged)
    contents: Contents = field(default_factory=Contents)
    extents: Extents = field(default_factory=Extents)
    members: Members = field(init=False)
    labels: Labels = field(init=False)
    trims: Trims = field(init=False)
    _txg_by_disk: dict[int | None, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.phases = PhaseTracker(
            writes=self._writes,
            pointed=self._pointed_writes,
            length_shows_metadata=self.terms.length_shows_metadata,
        )
        uberblocks = self._writes[Role.UBERBLOCK]
        self.commits = Commits(uberblocks=uberblocks, late_ms=self.terms.late_ms)
        self.labels = Labels(labels=self._writes[Role.LABEL], uberblocks=uberblocks)
        self.trims = Trims(labels=self.labels)
        self.members = Members(known=(*self._coverages, self.trims, self.extents))

    @property
    def _coverages(self) -> tuple[Coverage, ...]:
        return *self._writes.values(), self._pointed_writes

    def at_risk(self, cut: int) -> AtRisk:
        """The acknowledged operations that a cut now may take."""
        return at_risk_in(
            self.recording,
            self.operations.acknowledged,
            cut=cut,
            committed=self.groups.begun_by(self._writes[Role.UBERBLOCK].latest),
            logged=self.logged,
            coverages=self._coverages,
        )

    def hear(self, event: Event) -> None:
        """Audit one event."""
        role = None
        if self.commits.hear(event):
            self._find(Invariant.TXG_IS_IN_TIME, event)
        match event.kind:
            case Kind.WRITE_SUBMIT:
                role = self._hear_write(event)
            case Kind.MARK:
                self._hear_mark(event)
            case Kind.TRIM_SUBMIT | Kind.ZERO_SUBMIT if event.disk not in self.members.outside:
                self._hear_trim(event)
            case _:
                for coverage in self._coverages:
                    coverage.hear(event)
        self.phases.hear(event, role=role)

    def _hear_write(self, event: Event) -> Role | None:
        """The write's role; None for data that the intent log points to and for a partition table."""
        written = self.disk_writes[event.seq]
        role = written.role
        if self.members.hear(event, written.change):
            return None
        if role is Role.UBERBLOCK:
            self._hear_uberblock(event, written.txg or 0)
        elif role is Role.LABEL:
            if early := self.labels.hear_label(event):
                self._find(Invariant.LABELS_TAKE_TURNS, event, early)
        elif self._is_of(event, is_probe):
            return role
        elif self._is_of(event, is_partition_table):
            return None
        elif (txg := self.pointed.born_in.get(event.seq)) is not None:
            if self.extents.hear_pointed(event, txg):
                self._find(Invariant.EXTENT_IS_KEPT, event)
            self._pointed_writes.submit(event)
            return None
        elif role in TXG_ROLES:
            is_first = event.seq not in self.pointed.undecided and self.groups.hear_write(event)
            if is_first and (late := self._writes[Role.UBERBLOCK].uncovered):
                self._find(Invariant.UBERBLOCK_IS_DURABLE, event, late)
            self.commits.hear_write_of_txg(event, is_metadata=role is Role.METADATA)
            if event.seq not in self.pointed.undecided:
                self.extents.hear_write(event)
        elif role is Role.ZIL:
            self._hear_log(event, written)
        self._writes[role].submit(event)
        return role

    def _hear_log(self, event: Event, written: DiskWrite) -> None:
        payload = self.recording.payload(event)
        if event.seq not in self.pointed.holding:
            self.logged.hear_zil(event, payload)
        self.extents.hear_log(event)
        self.trims.hear_log(event, written.log_blocks)
        if not all(block.is_whole for block in written.log_blocks):
            self.extents.is_blind = self.contents.is_blind = True
        self.contents.hear_zil(event, payload)
        for data in self.pointed.by_log.get(event.seq, ()):
            parts = (self.recording.events[number] for number in data.submissions or ())
            self.logged.hear_pointed(event, data, map(self.recording.payload, parts))

    def _hear_trim(self, event: Event) -> None:
        self.extents.hear_trim(event)
        if self._is_of(event, self.trims.hits_used_space):
            self._find(Invariant.TRIMMED_IS_FREE, event)

    def _is_of(self, event: Event, what: Callable[[Event, RecordedDisk], bool]) -> bool:
        disk = event.disk
        return disk is not None and what(event, self.recording.disks[disk])

    def _hear_uberblock(self, event: Event, txg: int) -> None:
        self.contents.hear_uberblock(event)
        if txg < self._txg_by_disk.get(event.disk, 0):
            self._find(Invariant.UBERBLOCKS_ASCEND, event)
        self._txg_by_disk[event.disk] = txg
        if late := self.labels.hear_uberblock(event):
            self._find(Invariant.LABELS_TAKE_TURNS, event, late)
        is_new = self.groups.hear_uberblock(event, txg)
        self.commits.hear_uberblock(event, is_copy=not is_new)
        if not is_new:
            return  # a copy of this uberblock in another label
        self.trims.hear_uberblock(txg)
        root = root_in(self.recording.payload(event))
        places = places_of(root.extents, self.whole_disks) if root and root.txg == txg else None
        for taking in self.extents.hear_uberblock(txg, places):
            self._find(Invariant.EXTENT_IS_KEPT, taking)
        uncovered = {write for role in TXG_ROLES for write in self._writes[role].uncovered}
        uncovered -= self.pointed.undecided
        born_in = self.pointed.born_in
        uncovered |= {write for write in self._pointed_writes.uncovered if born_in[write] <= txg}
        if uncovered:
            self._find(Invariant.TXG_IS_DURABLE, event, sorted(uncovered))

    def _hear_mark(self, event: Event) -> None:
        for one in self.operations.hear(event, self.recording.payload(event)):
            self.commits.hear_acknowledgement()
            self.phases.acknowledged_ns = event.time_ns
            if self.terms.sync is not Sync.DISABLED and not one.guarantees_nothing:
                self._hear_acknowledged(event, one)

    def _hear_acknowledged(self, event: Event, one: Acknowledged) -> None:
        is_data_known = self.terms.writes_once and one.guarantees_data
        if is_data_known and self.contents.lacks_some_of(one):
            self._find(Invariant.LOGGED_IS_WHOLE, event)
        uncovered = self._writes[Role.ZIL].uncovered
        own = self._uncovered_log_writes(one, uncovered=self._uncovered, now=event.seq)
        if own and is_data_known:
            self._find(Invariant.ACKNOWLEDGED_IS_DURABLE, event, own)
            return
        if one.guarantees_data and (missing := self._missing_before(one.number)):
            self._find(Invariant.LOG_CHAIN_IS_WHOLE, event, missing)
        durable = max(self._writes[role].latest for role in (Role.ZIL, Role.UBERBLOCK))
        if durable < one.begun or (is_data_known and self.contents.lacks_all_of(one)):
            self._find(Invariant.ACKNOWLEDGED_IS_DURABLE, event, uncovered)
        elif is_data_known and (late := self._uncovered_at_return(one)):
            self._find(Invariant.RETURNED_IS_DURABLE, event, late)

    @property
    def _uncovered(self) -> frozenset[int]:
        return frozenset(number for coverage in self._coverages for number in coverage.uncovered)

    def _uncovered_log_writes(
        self, one: Acknowledged, *, uncovered: Collection[int], now: int
    ) -> tuple[int, ...]:
        """The `uncovered` writes at `now` in which the log holds, or points to, an operation's data."""
        own = {number for number in self.logged.blocks_of(one.number) if number <= now}
        own.intersection_update(uncovered)
        own.update(self.logged.not_on_disk(one.number, uncovered=uncovered, now=now))
        return tuple(sorted(own))

    def _uncovered_at_return(self, one: Acknowledged) -> tuple[int, ...]:
        """The writes of an operation that were submitted, but not covered, when its call returned."""
        returned = self.returns.get(one.number)
        if returned is None:
            return ()
        events = self.recording.events
        uberblocks = self._writes[Role.UBERBLOCK].covered_at.items()
        if any(
            self.groups.begun_by(write) > one.begun and events[at].time_ns <= returned.latest_ns
            for write, at in uberblocks
        ):
            return ()
        late = set(self._uncovered)
        for coverage in self._coverages:
            late.update(coverage.covered_since(returned.latest_ns, events))
        now = bisect_right(events, returned.earliest_ns, key=attrgetter("time_ns")) - 1
        writes = self._uncovered_log_writes(one, uncovered=late, now=now)
        return tuple(write for write in writes if write <= now)

    def _missing_before(self, operation: int) -> tuple[int, ...]:
        """The uncovered log blocks that replay must pass before it reaches this operation's blocks."""
        committed = self.disk_writes.get(self._writes[Role.UBERBLOCK].latest)
        return missing_links(
            self.disk_writes,
            holding=self.logged.blocks_of(operation),
            uncovered=self._writes[Role.ZIL].uncovered,
            covered=self._writes[Role.ZIL].covered_at,
            committed_txg=(committed.txg or 0) if committed else 0,
        )

    def hear_completions(self, completions: Completions, *, cut: int) -> int:
        """Audit the requests that the client completed by the cut; returns how many writes were due."""
        sync = self.terms.completed_sync or self.terms.sync
        durable = durable_in(
            self.recording,
            self.disk_writes,
            self.pointed,
            self._coverages,
            groups=self.groups,
        )
        count, overdue = overdue_in(completions, durable, self.recording.events, sync=sync, cut=cut)
        self.findings += overdue
        return count

    def _find(self, invariant: Invariant, event: Event, uncovered: Collection[int] = ()) -> None:
        self.findings.append(
            Finding(invariant=invariant, event=event.seq, uncovered=tuple(uncovered))
        )
