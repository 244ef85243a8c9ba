"""Published tables of practitioners about ZFS storage for virtual machines: `published.toml` has them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from torture.facts.evidence.documents import strictly


class FigureKind(StrEnum):
    """A figure of a job, and its unit."""

    MS = "ms"
    MIB_PER_S = "MiB/s"
    MB_PER_S = "MB/s"
    PER_S = "per second"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ours:
    """The figure of a job of a cell; a ratio where it is `over` another one."""

    cell: str
    job: str
    kind: FigureKind
    link: str = ""
    device: str = ""
    """The class of a log device that is measured alone."""
    over: Ours | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedRow:
    """A line of a table: a text and a measurement for each column."""

    words: str
    theirs: tuple[str, ...]
    ours: tuple[Ours | None, ...] = ()
    """Empty where nothing like it is measured."""
    ours_words: str = ""
    """The set-up of ours, where it differs."""

    @property
    def measured(self) -> Ours | None:
        """The first figure of ours; None where nothing like it is measured."""
        return next((one for one in self.ours if one is not None), None)


class Swept(StrEnum):
    """The quantity that grows along a picture's axis."""

    THREADS = "threads"
    BLOCK_KIB = "KiB of a write"


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """A line of a picture: one set-up, with a figure for each job."""

    words: str
    ours: tuple[Ours, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweep:
    """A picture; curves of one job each are drawn as bars."""

    words: str
    swept: Swept
    kind: FigureKind
    curves: tuple[Curve, ...]

    @property
    def is_bars(self) -> bool:
        """Whether nothing is swept: there is one job."""
        return all(len(curve.ours) == 1 for curve in self.curves)


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedTable:
    """A table, and the pictures of our figures; `why` explains how ours may differ."""

    name: str
    words: str
    summary: str
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    why: tuple[str, ...]
    sweeps: tuple[Sweep, ...]


def _table(said: Mapping[str, Any]) -> PublishedTable:
    rows = [
        row | {"ours": [*_ours_of(said, row["ours"])] if "ours" in row else []}
        for row in said["rows"]
    ]
    own = {
        "columns": [column["words"] for column in said["columns"]],
        "rows": rows,
        "sweeps": [sweep | {"curves": _curves(sweep, rows)} for sweep in said.get("sweeps", ())],
    }
    return strictly(PublishedTable, {**said, **own})


def _ours_of(table: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[dict[str, Any] | None]:
    """The measurement of a row in each column; None where the column has no job."""
    for place, column in enumerate(table["columns"]):
        words = table["all_ours"] | column | row
        job = words["jobs"][place] if "jobs" in words else words.get("job")
        ours = words | {"job": job, "over": None}
        yield ours | ({"over": ours | words["over"]} if "over" in words else {}) if job else None


def _curves(said: Mapping[str, Any], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The curves of a picture: its own, or one for each measured row."""
    if "curves" in said:
        return [curve | {"ours": _jobs_of(said, curve)} for curve in said["curves"]]
    return [
        row | {"ours": _jobs_of(said, next(filter(None, row["ours"])))}
        for row in rows
        if any(row["ours"])
    ]


def _jobs_of(said: Mapping[str, Any], ours: Mapping[str, Any]) -> list[dict[str, Any]]:
    jobs = [job for job in said["jobs"] if job not in ours.get("lacks", ())]
    return [{**ours, "job": job, "kind": said["kind"]} for job in jobs]


TABLES = tuple(
    _table(said)
    for said in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["table"]
)
R1, R2, R3, R4, R5, R6, R7 = TABLES
