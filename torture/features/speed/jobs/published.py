"""Published tables of practitioners about ZFS storage for virtual machines: `published.toml` has them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any


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
    rows = tuple(
        PublishedRow(
            words=row["words"],
            theirs=tuple(row["theirs"]),
            ours=tuple(_ours_of(said, row["ours"])) if "ours" in row else (),
            ours_words=row.get("ours_words", ""),
        )
        for row in said["rows"]
    )
    return PublishedTable(
        name=said["name"],
        words=said["words"],
        summary=said["summary"],
        columns=tuple(column["words"] for column in said["columns"]),
        rows=rows,
        why=tuple(said["why"]),
        sweeps=tuple(_sweep(sweep, rows) for sweep in said.get("sweeps", ())),
    )


def _ours_of(table: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Ours | None]:
    """The measurement of a row in each column; None where the column has no job."""
    for place, column in enumerate(table["columns"]):
        words = table["all_ours"] | column | row
        job = words["jobs"][place] if "jobs" in words else words.get("job")
        yield _ours(words | {"job": job}) if job else None


def _ours(words: Mapping[str, Any]) -> Ours:
    over = words.get("over")
    return Ours(
        cell=words["cell"],
        job=words["job"],
        kind=FigureKind(words["kind"]),
        link=words.get("link", ""),
        device=words.get("device", ""),
        over=None if over is None else _ours({**words, "over": None, **over}),
    )


def _sweep(said: Mapping[str, Any], rows: tuple[PublishedRow, ...]) -> Sweep:
    """A picture with its own curves, or with one for each measured row."""
    kind = FigureKind(said["kind"])
    if "curves" in said:
        curves = tuple(
            Curve(
                words=curve["words"],
                ours=tuple(
                    Ours(cell=curve["cell"], job=job, kind=kind, link=curve["link"])
                    for job in said["jobs"]
                    if job not in curve.get("lacks", ())
                ),
            )
            for curve in said["curves"]
        )
    else:
        curves = tuple(
            Curve(
                words=row.words,
                ours=tuple(replace(first, job=job, kind=kind) for job in said["jobs"]),
            )
            for row in rows
            if (first := row.measured) is not None
        )
    return Sweep(words=said["words"], swept=Swept(said["swept"]), kind=kind, curves=curves)


TABLES = tuple(
    _table(said)
    for said in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["table"]
)
R1, R2, R3, R4, R5, R6 = TABLES
