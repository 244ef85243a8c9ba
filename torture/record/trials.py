"""The record of a trial: one JSON object, one line of `trials.jsonl`. Documented in results/README.md."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from torture.verdict.verdicts import Verdict

SCHEMA = 2
SCHEMAS_READ = (1, 2)
"""Schema 1 called the guarantee `promise`; all else is the same."""
TRIALS_FILE = "trials.jsonl"


class Origin(StrEnum):
    """Where a trial's verdict comes from; only a live trial is one of those that a run drew."""

    LIVE = "live"
    """A load and a cut, drawn from the run's seed."""
    REPLAY = "replay"
    """The recording of an earlier trial, recovered and checked again."""
    RERUN = "rerun"
    """An earlier trial again from its seed: the same load and planned cut, its microseconds its own."""


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
    cut: dict[str, Any] = field(default_factory=dict)
    """What `cut.json` says: the plan, the moment, and what the disks were doing."""
    acknowledged: int = 0
    """Durable operations the client was told are done."""
    lost: int = 0
    """Of those, the ones that are not there."""
    verdicts: dict[str, str | None] = field(default_factory=dict)
    """`pool`, `filesystem`, `data`, each on its own; None where there was nothing to score."""
    found: dict[str, int] = field(default_factory=dict)
    """Blocks and names `missing`, `torn`, `stale`, `foreign`; and `torn_in_flight`, which is allowed."""
    rollback_ms: float | None = None
    """How much acknowledged time is gone; None when nothing is, or when what is left is no past."""
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
    schema: int = SCHEMA

    @property
    def is_loss(self) -> bool:
        """Whether something acknowledged is not there, whatever the verdict; no if inconclusive."""
        return self.verdict is not Verdict.INCONCLUSIVE and self.lost > 0

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` takes it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The record of `as_json`'s data; unknown fields are ignored, missing ones have defaults.

        Raises `ValueError` or `KeyError` when it is no record.
        """
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        if "promise" in data:
            known.setdefault("guarantee", data["promise"])
        known["verdict"] = Verdict(data["verdict"])
        known["origin"] = Origin(data.get("origin", Origin.LIVE))
        known["reasons"] = tuple(data.get("reasons", ()))
        try:
            return cls(**known)
        except TypeError as error:
            raise ValueError(str(error)) from error


def append_record(path: Path, record: TrialRecord) -> None:
    """Add a line and make it durable; a line that a crash cut off before is closed first."""
    line = json.dumps(record.as_json(), separators=(",", ":")) + "\n"
    with path.open("ab+") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                line = "\n" + line
        file.write(line.encode())
        file.flush()
        os.fsync(file.fileno())


@dataclass(frozen=True, kw_only=True, slots=True)
class Records:
    """The readable records of a file, and how many lines were not."""

    records: tuple[TrialRecord, ...]
    unreadable_lines: int


def read_records(path: Path) -> Records:
    """Every readable record, in order; a missing file has none. The last of equal trials counts."""
    found: dict[str, TrialRecord] = {}
    unreadable = 0
    lines = path.read_bytes().splitlines() if path.exists() else []
    for line in lines:
        if not line.strip():
            continue
        try:
            record = TrialRecord.from_json(json.loads(line))
        except (ValueError, KeyError, TypeError):
            unreadable += 1
            continue
        found[record.trial] = record
    return Records(records=tuple(found.values()), unreadable_lines=unreadable)
