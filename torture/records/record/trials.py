"""The record of a trial: one JSON object, one line of `trials.jsonl`. Documented in results/README.md.

Also what tells the records of several trials apart, and which of several of one trial counts.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from torture.choices.matrix.cells import with_axes_since
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.strict_json import strict_json
from torture.facts.evidence.typed import list_of_texts, number_of, object_of, text_of, whole_of
from torture.files import write_whole
from torture.oracles.verdict.guarantee import COMMIT_SLACK_MS, ROLLBACK_MS_MAX, Guarantee
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.administered_pool import Administered
from torture.records.record.run_layout import TRIALS_FILE_BEFORE, RunLayout
from torture.records.record.worth import Absence, Speed

_VERDICTS = frozenset(Verdict) - {Verdict.INCONCLUSIVE}
_COUNTS = ("seed", "acknowledged", "lost", "schema")
_TEXTS = ("fsck", "pool", "zfs")
_OBJECTS = ("verdicts", "found", "figures", "timings")
SCHEMA = 2
SCHEMAS_READ = (1, 2)
"""Schema 1 called the guarantee `promise`; all else is the same."""


class Origin(StrEnum):
    """Where a trial's verdict comes from; only a live trial is one of those that a run drew."""

    LIVE = "live"
    """A load and a cut, drawn from the run's seed."""
    REPLAY = "replay"
    """The recording of an earlier trial, recovered and checked again: no other cut."""
    PLANTED = "planted"
    """A fault was planted on purpose: it says what the instrument sees, and nothing of its cell."""
    RERUN = "rerun"
    """An earlier trial again from its seed: the same load and planned cut, its microseconds its own.
    It was chosen for how the first one ended, so that counting it would bend the rates."""


class Identity(NamedTuple):
    """What tells trials apart: records with the same identity are of one trial."""

    trial: str
    origin: Origin
    run: str
    """Of a replay or rerun the run it was made in, for a trial may have several; else empty."""
    zfs: str
    """The same seed draws the same trial for every version of ZFS, and each of them is one of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialRecord:
    """How one trial ended."""

    trial: str
    cell: str
    axes: dict[str, str]
    seed: int
    verdict: Verdict
    guarantee: str
    origin: Origin = Origin.LIVE
    repeats: str = ""
    """The name of the trial that a replay or rerun repeats."""
    origin_run: str = ""
    """The run that a replay or rerun was made in; empty in the file of that run itself."""
    fault: str = ""
    """The fault that was planted (`torture.choices.faults`); empty for none."""
    cut: CutDocument = field(default_factory=CutDocument)
    acknowledged: int = 0
    """Durable operations the client was told are done."""
    lost: int = 0
    """Of those, the ones that are not there."""
    verdicts: dict[str, str | None] = field(default_factory=dict)
    """`pool`, `filesystem`, `data`, each on its own; None where there was nothing to score."""
    found: dict[str, int] = field(default_factory=dict)
    """Blocks and names `missing`, `torn`, `stale`, `foreign`; and `torn_in_flight`, which is allowed.

    Of the load's `writers` those that `writers_failed` for good after the cut.
    """
    rollback_ms: float | None = None
    """How much acknowledged time is gone; None when nothing is, or when what is left is no past."""
    speed: Speed = field(default_factory=Speed)
    """What the cell was worth before the cut."""
    absence: Absence = field(default_factory=Absence)
    """What the client saw until the NAS was back."""
    administration: Administered | None = None
    """What was done to the pool when the cut came; None where nothing was."""
    figures: dict[str, float] = field(default_factory=dict)
    """What a load measured itself, by names of its own."""
    fsck: str = ""
    pool: str = ""
    reasons: tuple[str, ...] = ()
    timings: dict[str, int] = field(default_factory=dict)
    """Stage to milliseconds, in order."""
    error: str | None = None
    """Why the verdict is `inconclusive`."""
    zfs: str = ""
    """The version of ZFS that the NAS ran; empty in records of schema 1."""
    machinery_failed: bool = False
    """Whether the trial did not come to its end; its evidence then says nothing."""
    has_manifest: bool = False
    """Whether it was judged against a manifest of its evidence; older trials have none."""
    schema: int = SCHEMA

    @property
    def is_conclusive(self) -> bool:
        """Whether it says something about the data."""
        return self.verdict is not Verdict.INCONCLUSIVE

    @property
    def is_loss(self) -> bool:
        """Whether something acknowledged is not there, whatever the verdict; no if inconclusive."""
        return self.is_conclusive and self.lost > 0

    def told_within(self, run: RunLayout) -> Self:
        """The same, where its words name files of its run by their place in it."""
        return replace(
            self,
            error=None if self.error is None else run.told_within(self.error),
            reasons=tuple(map(run.told_within, self.reasons)),
        )

    def breaks(self, guarantee: Guarantee) -> bool:
        """Whether it is worse than guaranteed, by what was lost or by the audit of its log.

        What the audit holds against the NAS must hold in every cell, also where a loss is allowed. A cell
        that is safe is broken by an acknowledgement that nothing vouches for, too: had the cut come a
        little earlier it would have been a loss, and a cut meets one moment of thousands. Where a loss is
        allowed, so is an acknowledgement that was worth nothing.
        """
        uncommitted_ms = self.cut.audit.uncommitted_ms
        pool = self.verdicts.get("pool")
        is_unfounded = guarantee is Guarantee.SAFE and self.absence.unfounded > 0
        return (
            self.cut.audited.is_broken
            or is_unfounded
            or guarantee.is_broken_by(
                self.verdict,
                self.rollback_ms,
                rollback_ms_max=(
                    ROLLBACK_MS_MAX if uncommitted_ms is None else uncommitted_ms + COMMIT_SLACK_MS
                ),
                pool=Verdict(pool) if pool in _VERDICTS else None,
            )
        )

    def identity(self, *, run: str = "") -> Identity:
        """What tells its trial apart, read from the file of this run."""
        if self.origin is Origin.LIVE:
            return Identity(self.trial, self.origin, "", self.zfs)
        return Identity(self.trial, self.origin, self.origin_run or run, self.zfs)

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` takes it back."""
        plain = asdict(replace(self, cut=CutDocument(), administration=None)) | {
            "cut": self.cut.as_json(),
            "speed": self.speed.as_json(),
            "absence": self.absence.as_json(),
        }
        del plain["administration"]
        if self.administration is None:
            return plain
        return plain | {"administration": self.administration.as_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The record of `as_json`'s data; unknown fields are ignored, missing ones have defaults.

        Raises `ValueError` or `KeyError` when it is no record.
        """
        for name in ("trial", "cell"):
            if not isinstance(data[name], str):
                raise ValueError(f"{name} is no name")
        if any(name in data and whole_of(data, name) is None for name in _COUNTS):
            raise ValueError("a count is none")
        if data.get("rollback_ms") is not None and number_of(data, "rollback_ms") is None:
            raise ValueError("rollback_ms is no time")
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        known["cell"], known["axes"] = with_axes_since(data["cell"], object_of(data, "axes"))
        if "promise" in data:
            known.setdefault("guarantee", data["promise"])
        known["origin"] = Origin(data.get("origin", Origin.LIVE))
        known |= {name: text_of(data, name) for name in ("repeats", "origin_run", "fault")}
        known["speed"] = Speed.from_json(object_of(data, "speed"))
        known["absence"] = Absence.from_json(object_of(data, "absence"))
        known["administration"] = Administered.from_json(object_of(data, "administration"))
        known["cut"] = CutDocument.from_json(object_of(data, "cut"))
        known["verdict"] = Verdict(data["verdict"])
        known["has_manifest"] = data.get("has_manifest") is True
        known |= {name: text_of(data, name) for name in _TEXTS if name in data}
        known |= {name: object_of(data, name) for name in _OBJECTS if name in data}
        known["reasons"] = list_of_texts(data, "reasons")
        if len(known["reasons"]) != len(data.get("reasons", ())):
            raise ValueError("reasons are no texts")
        try:
            return cls(**known)
        except TypeError as error:
            raise ValueError(str(error)) from error


def not_told(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Those inconclusive of one cell that somebody has to look at.

    An empty cut is none of them where another one was conclusive: it says nothing, and was drawn again.
    """
    is_told = any(record.is_conclusive for record in records)
    return [
        record
        for record in records
        if not record.is_conclusive and not (is_told and record.cut.is_empty)
    ]


def _line_of(record: TrialRecord) -> str:
    return json.dumps(record.as_json(), separators=(",", ":")) + "\n"


def append_record(path: Path, record: TrialRecord) -> None:
    """Add a line and make it durable; a line that a crash cut off before is closed first."""
    line = _line_of(record)
    with path.open("ab+") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                line = "\n" + line
        file.write(line.encode())
        file.flush()
        os.fsync(file.fileno())


class _Judged(Protocol):
    @property
    def is_conclusive(self) -> bool: ...


_Record = TypeVar("_Record", bound=_Judged)


def the_one_that_counts(records: Sequence[_Record]) -> _Record:
    """Of records of one trial, from the earliest on: the last conclusive one, or else the last.

    Raises `IndexError` when there is none.
    """
    conclusive = [record for record in records if record.is_conclusive]
    return (conclusive or records)[-1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Records:
    """The readable records of a file, each trial once, and how many lines were not readable."""

    records: tuple[TrialRecord, ...]
    unreadable_lines: int

    @property
    def live(self) -> tuple[TrialRecord, ...]:
        """Those that the run drew, without what repeats an earlier trial."""
        return tuple(record for record in self.records if record.origin is Origin.LIVE)


def read_records(path: Path) -> Records:
    """Every trial's record that counts, in the order of their first ones; a missing file has none."""
    found: dict[Identity, list[TrialRecord]] = {}
    unreadable = 0
    for line, record in _lines_of(path):
        if record is None:
            unreadable += bool(line.strip())
        else:
            found.setdefault(record.identity(), []).append(record)
    return Records(
        records=tuple(the_one_that_counts(records) for records in found.values()),
        unreadable_lines=unreadable,
    )


def _lines_of(path: Path) -> Iterator[tuple[bytes, TrialRecord | None]]:
    """Every line with its end, and its record; None where it has none. A missing file has no line."""
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else []:
        try:
            yield line, TrialRecord.from_json(strict_json(line))
        except (ValueError, KeyError, TypeError):
            yield line, None


def rewrite_records(path: Path, records: Sequence[TrialRecord]) -> Path | None:
    """Put these records in the places of those that `read_records` gives, in their order.

    What is no record stays as it is, byte for byte, and so does the line of a record that is the same.
    The old file is kept beside it, under a name that nothing had, which is returned; None where nothing
    changed. Raises `OSError`.
    """
    places: list[bytes | Identity] = []
    found: dict[Identity, list[tuple[bytes, TrialRecord]]] = {}
    for line, record in _lines_of(path):
        if record is None:
            places.append(line)
            continue
        identity = record.identity()
        if identity not in found:
            places.append(identity)
        found.setdefault(identity, []).append((line, record))
    now = dict(zip(found, records, strict=True))
    content = b"".join(
        place if isinstance(place, bytes) else _rewritten(found[place], now[place])
        for place in places
    )
    old = path.read_bytes()
    if content == old:
        return None
    kept = write_whole(_free_name(path.with_name(TRIALS_FILE_BEFORE)), old)
    write_whole(path, content)
    return kept


def _rewritten(lines: Sequence[tuple[bytes, TrialRecord]], now: TrialRecord) -> bytes:
    counts = the_one_that_counts([record for _, record in lines])
    if now != counts:
        return _line_of(now).encode()
    line = next(line for line, record in lines if record is counts)
    return line if line.endswith((b"\n", b"\r")) else line + b"\n"


def _free_name(path: Path) -> Path:
    names = itertools.chain(
        [path], (path.with_name(f"{path.name}-{n}") for n in itertools.count(2))
    )
    return next(name for name in names if not name.exists())
