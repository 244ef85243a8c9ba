"""The record of a trial: one JSON object, one line of `trials.jsonl`. Documented in results/README.md.

It also has the rules that distinguish the records of several trials; `counting` chooses among those of
one.

The promises of a client's disk or mount, as its kernel shows them, and those of the NAS's volume.

A disk's are in `queue` of sysfs (Linux Documentation/ABI/stable/sysfs-block), a mount's are its options.
A transport asks for those of its protocol (`Attachment.advertised_script`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self, TypeVar

from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.documents import (
    COUNT_MAX,
    SEED_MAX,
    Count,
    Document,
    Measure,
    Meta,
    Name,
    Seed,
    defstruct,
    field,
    replace,
)
from torture.facts.evidence.folder import AdministrationDocument, Part, part_kinds
from torture.oracles.verdict.guarantee import COMMIT_SLACK_MS, ROLLBACK_MS_MAX, Guarantee, Verdict
from torture.oracles.verdict.judgement import Judgement
from torture.records.record.run_document import RunLayout
from torture.records.tasks import drawn_origins
from torture.shell import QUEUE

_OF_PROTOCOL = re.compile(r"(nvme|smb|hypervisor)_[a-z_]+")

MOUNT = (
    "vers",
    "rsize",
    "wsize",
    "hard",
    "soft",
    "sync",
    "cache",
    "resilienthandles",
    "persistenthandles",
)
"""The options of a mount by NFS (nfs(5)) or SMB (mount.cifs(8)) that promise something."""


class Advertised(Document, frozen=True, kw_only=True):
    """Name to value; empty where the trial did not ask."""

    client: dict[str, str] = field(default_factory=dict)
    """Of the client's disk or mount."""
    volume: dict[str, str] = field(default_factory=dict)
    """Of the zvol in the NAS; empty where it is no zvol."""

    def with_verifiers(self, seen: Mapping[str, Any]) -> Self:
        """With the write verifier of the server that came back; unchanged where none was `seen`.

        An NFS server that may have lost unstable writes needs another one (RFC 1813, 3.3.7).
        """
        before, after = seen.get("before"), seen.get("after")
        if not isinstance(before, list) or not isinstance(after, list) or not before or not after:
            return self
        verifier = "the same" if {*map(str, before)} & {*map(str, after)} else "another"
        return replace(self, client=self.client | {"write_verifier": verifier})


def parse_queue(line: str) -> dict[str, str]:
    """The values of `torture.shell.advertised_by`: a word a name, underscores for blanks."""
    return {name: value for name, value in _words_of(line) if name in QUEUE}


def parse_protocol(line: str) -> dict[str, str]:
    """The values of an `Attachment.advertised_script`, in the same form."""
    return {name: value for name, value in _words_of(line) if _OF_PROTOCOL.fullmatch(name)}


def _words_of(line: str) -> Iterator[tuple[str, str]]:
    pairs = (word.partition("=") for word in line.split())
    return ((name, value.replace("_", " ")) for name, _, value in pairs if value)


def parse_mount_options(line: str) -> dict[str, str]:
    """Of a mount's options those that promise something; one without a value is `yes`."""
    pairs = (option.partition("=") for option in line.strip().split(","))
    return {name: value or "yes" for name, _, value in pairs if name in MOUNT}


_Part = TypeVar("_Part", bound=Part)


class Speed(Document, frozen=True, kw_only=True):
    """The rate at which data became durable before the cut; None where no load reports it.

    Guests are emulated: only ratios of these figures mean anything.
    """

    durable_per_s: Measure | None = None
    """Durable operations in a second of the writers' own work. Waits for each other, for the ledger
    or on purpose are left out."""
    sync_p50_ms: Measure | None = None
    """The median wait of an operation in fsync, fdatasync and writes through O_DSYNC."""
    sync_p99_ms: Measure | None = None
    """The 99th percentile of the same, by nearest rank."""


class Remedy(StrEnum):
    """The first remedy that brought a dead disk back, in the order of an operator's tries."""

    WAIT = "wait"
    """The client's own filesystem or mount took a write again."""
    LOG_IN = "log in"
    """An unmount, a new login or connection, and a mount."""
    RESTART = "restart"
    """A client that had not seen the outage."""
    REPAIR = "repair"
    """fsck's repair, on such a client."""


class Absence(Document, frozen=True, kw_only=True):
    """The time without a NAS; an unknown figure is None."""

    outage_ms: Measure | None = None
    """From the cut until the client's device was published again."""
    reconnect_ms: Measure | None = None
    """From there to the next acknowledgement; only a client that lived has one."""
    offline_ms: Measure | None = None
    """From the cut, or from the link's end before it, until the first writer failed for good; only
    where all of them failed so."""
    remedy: Remedy | None = None
    """The remedy that brought a disk back on which all writers had failed."""
    acknowledged_in_outage: Count | None = None
    """Durable operations that were acknowledged in between, when no NAS can have stored anything."""
    unfounded: Count = 0
    """Of these, the operations for which nothing vouches (`torture.records.scoring.service`)."""
    lines: tuple[Annotated[int, Meta(ge=1, le=COUNT_MAX)], ...] = ()
    """The first of them in the ledger, by their lines."""


class Where(Document, frozen=True, kw_only=True):
    """The place of a trial; older records know none, and no record of a worker that died does."""

    host: str = ""
    """The host's name."""
    accelerator: str = ""
    """The emulator of the guests' processors: `kvm` or `tcg`."""
    processor: str = ""
    """The model of the host's processor."""
    qemu: str = ""
    """The version of QEMU."""
    images: dict[str, str] = field(default_factory=dict)
    """The images of NAS and client: the first 16 digits of each content's SHA-256."""
    linux_nas: str = ""
    """The release of the kernel that the NAS booted, with the hash of patches to its modules."""
    linux_client: str = ""
    """The release of the client's kernel."""


SCHEMA = 3
"""A file with a record of an older one is refused (`torture.records.record.trials_file`)."""


class Origin(StrEnum):
    """The source of a trial's verdict. Tasks of features have further ones (`records.tasks`)."""

    LIVE = "live"
    """A load and a cut, drawn from the run's seed."""
    REPLAY = "replay"
    """The recording of an earlier trial, recovered and checked again: no other cut."""
    PLANTED = "planted"
    """A fault was planted on purpose: the trial tests the instrument, and says nothing about its
    cell."""
    RERUN = "rerun"
    """An earlier trial again from its seed: the same load and planned cut, with its own
    microseconds. It was chosen for the end of the first one: counting it would bias the rates."""


def known_origins() -> frozenset[str]:
    """The core's, and those of features."""
    return frozenset({*Origin, *drawn_origins()})


OriginName = Annotated[str, Meta(extra_json_schema={"enum": sorted(known_origins())})]


class Identity(NamedTuple):
    """The mark of one trial, but for its load (`torture.records.record.counting.by_load`)."""

    trial: str
    origin: str
    run: str
    """The run that made a trial of which there may be several, e.g. a replay; else empty."""
    zfs: str
    """The version of ZFS. One seed draws the same trial for every version, and each of them counts
    alone."""
    linux_nas: str
    linux_client: str
    """The kernels, for the same reason."""


class CoreRecord(Document, frozen=True, kw_only=True):
    """The end of one trial."""

    trial: Name
    """Its name: cell, index, seed."""
    cell: Name
    """The cell's name."""
    axes: dict[str, str] = field(default_factory=dict)
    """Axis to choice."""
    seed: Seed = 0
    """Everything random in the trial is drawn from it."""
    guarantee: str = ""
    """Theory's guarantee for the cell: one of `torture.oracles.verdict.guarantee.Guarantee`."""
    judgement: Judgement
    """The judge's answer."""
    origin: OriginName = Origin.LIVE
    """Where the record comes from; a record that does not say it is live."""
    repeats: str = ""
    """The name of the trial that a replay or rerun repeats."""
    origin_run: str = ""
    """The run that made a replay or rerun; empty in the file of that run itself."""
    fault: str = ""
    """The fault that was planted (`torture.choices.experiments`); empty for none."""
    cut: CutDocument = CutDocument()
    """The cut, as `cut.json` has it."""
    writers: Count = 0
    """The number of the load's writers."""
    writers_failed: Count = 0
    """Of these, the writers that failed for good after the cut."""
    speed: Speed = Speed()
    """The speed of the cell before the cut."""
    absence: Absence = Absence()
    """The client's view of the time without the NAS."""
    administration: AdministrationDocument | None = None
    """The command on the pool at the cut; None where there was none."""
    timings: dict[str, Count] = field(default_factory=dict)
    """Stage to milliseconds, in order."""
    error: str | None = None
    """Why the verdict is `inconclusive`."""
    zfs: str = ""
    """The version of ZFS that the NAS ran; empty where a record does not say it."""
    advertised: Advertised = Advertised()
    """The promises of the client's disk or mount, and of the volume in the NAS."""
    where: Where = Where()
    """The host that ran it, and the machinery there."""
    explanation: str = ""
    """The reason of its verdict, as `tools/explain` prints it; empty where nothing happened."""
    machinery_failed: bool = False
    """Whether the trial did not reach its end; its evidence then says nothing."""
    dead_tries: Count = 0
    """The number of earlier tries that ended with their worker, or with their run, and said nothing."""
    has_manifest: bool = False
    """Whether it was judged against a manifest of its evidence; older trials have none."""
    schema: Count = SCHEMA
    """The schema of the line that was read. `as_json` writes the newest."""
    load_ms: Count = 0
    """The length of the load phase that was asked for; 0 in older records."""
    brought: dict[str, str] = field(default_factory=dict)
    """The SHA-256 of the user's file for each load that needs one."""
    engine_state: str = ""
    """The state of the suite that made it (`torture.trials.campaign.run`)."""
    scored_s: Count = 0
    """When it was judged, in seconds since 1970; 0 in older records."""

    def __post_init__(self) -> None:
        if self.seed > SEED_MAX:
            raise ValueError("the seed has more than 64 bits")
        if self.origin not in known_origins():
            raise ValueError(f"origin {self.origin!r} is unknown")

    def as_json(self) -> dict[str, Any]:
        """The record as plain data; `from_json` takes it back. Empty fields are left out."""
        return super().as_json() | {"schema": SCHEMA}

    @property
    def verdict(self) -> Verdict:
        """The worst of all parts."""
        return self.judgement.verdict

    @property
    def acknowledged(self) -> int:
        """Durable operations whose acknowledgement reached the client."""
        return self.judgement.acknowledged

    @property
    def lost(self) -> int:
        """Of these, the missing ones."""
        return self.judgement.lost

    @property
    def rollback_ms(self) -> float | None:
        """The length of lost acknowledged time; None without a loss, or when the rest is no past."""
        return self.judgement.findings.rollback_ms

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons of the verdict, in words."""
        return self.judgement.reasons

    @property
    def is_conclusive(self) -> bool:
        """Whether it says something about the data."""
        return self.verdict is not Verdict.INCONCLUSIVE

    @property
    def is_loss(self) -> bool:
        """Whether something acknowledged is missing, whatever the verdict; no if inconclusive.

        A loss whose data could not be judged counts, too: their number alone is unknown.
        """
        is_uncounted = self.verdict.is_loss and self.judgement.data is None
        return self.is_conclusive and (self.lost > 0 or is_uncounted)

    def with_reason(self, reason: str) -> Self:
        """The same record with one more reason, after the others."""
        reasons = (*self.reasons, reason)
        return replace(self, judgement=replace(self.judgement, reasons=reasons))

    def with_relative_paths(self, run: RunLayout) -> Self:
        """The same record, with paths relative to its run in all its words."""
        return replace(
            self,
            error=None if self.error is None else run.with_relative_paths(self.error),
            explanation=run.with_relative_paths(self.explanation),
            judgement=replace(
                self.judgement, reasons=tuple(map(run.with_relative_paths, self.reasons))
            ),
        )

    def breaks(self, guarantee: Guarantee) -> bool:
        """Whether it is worse than guaranteed, by its loss or by the audit of its recording.

        So is one of a feature's verdicts. The audit's invariants must hold in every cell. In a safe
        cell, an acknowledgement without anything that vouches for it is a breach, too. A slightly
        earlier cut would have lost it, and a cut meets one moment of thousands. Where a loss is
        allowed, so is a worthless acknowledgement.
        """
        # the audit is of the drawn cut, and an earlier one may have been recovered in its place
        is_drawn = not self.cut.confirmed.is_made
        uncommitted_ms = self.cut.audit.uncommitted_ms if is_drawn else None
        is_unfounded = guarantee is Guarantee.SAFE and self.absence.unfounded > 0
        return (
            self.cut.audited.is_broken
            or is_unfounded
            or (self.is_conclusive and any(map(guarantee.is_broken_by, self.verdicts_beside)))
            or guarantee.is_broken_by(
                self.verdict,
                self.rollback_ms,
                rollback_ms_max=(
                    ROLLBACK_MS_MAX if uncommitted_ms is None else uncommitted_ms + COMMIT_SLACK_MS
                ),
                pool=self.judgement.pool,
            )
        )

    @property
    def parts(self) -> tuple[Part, ...]:
        """The documents of features."""
        found = (getattr(self, kind.FIELD) for kind in part_kinds())
        return tuple(part for part in found if part is not None)

    def part(self, kind: type[_Part]) -> _Part | None:
        """A feature's document."""
        return next((part for part in self.parts if isinstance(part, kind)), None)

    @property
    def verdicts_beside(self) -> list[Verdict]:
        """Those that features show beside its own; another version's words are none."""
        shown = {verdict for part in self.parts for verdict in part.verdicts}
        return [verdict for verdict in Verdict if verdict in shown]

    @property
    def is_breach(self) -> bool:
        """Whether it breaks the guarantee that it names; another version's word cannot be broken."""
        is_known = self.guarantee in frozenset(Guarantee)
        return is_known and self.breaks(Guarantee(self.guarantee))

    @property
    def load(self) -> str:
        """Its load in words: the length, and the user's files; empty where it does not say the length."""
        files = (f"{load} {sha256}" for load, sha256 in sorted(self.brought.items()))
        return ", ".join([f"{self.load_ms} ms", *files]) if self.load_ms else ""

    @property
    def of_try(self) -> tuple[float | None, int | None]:
        """Equal in all copies and judgements of one try, and different in another try."""
        return self.cut.t_ms, self.trial_ms

    @property
    def trial_ms(self) -> int:
        """The time of all stages together."""
        return min(sum(self.timings.values()), 2**62)

    def identity(self, *, run: str = "") -> Identity:
        """The identity of its trial, for a record in the file of this run."""
        task = drawn_origins().get(self.origin)
        is_drawn = self.origin == Origin.LIVE or (task is not None and task.is_of_cell)
        made = "" if is_drawn else self.origin_run or run
        where = self.where
        return Identity(
            self.trial, self.origin, made, self.zfs, where.linux_nas, where.linux_client
        )


if TYPE_CHECKING:
    TrialRecord = CoreRecord
else:
    TrialRecord = defstruct(
        "TrialRecord",
        [(kind.FIELD, kind | None, None) for kind in part_kinds()],
        bases=(CoreRecord,),
        module=__name__,
        namespace={"__doc__": CoreRecord.__doc__},
        frozen=True,
        kw_only=True,
    )
    """With a field for each part of a feature."""


def needing_attention(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The inconclusive records of one cell that need a human's look.

    An empty cut needs none where another one was conclusive: it says nothing, and was drawn again. A
    load that stalled amid an operation may have met storage that hangs.
    """
    has_conclusive = any(record.is_conclusive for record in records)
    return [
        record
        for record in records
        if not record.is_conclusive and not (has_conclusive and _is_idle(record.cut))
    ]


def _is_idle(cut: CutDocument) -> bool:
    """Whether a cut was empty, with no operation that waits."""
    return cut.is_empty and not cut.audit.under_way
