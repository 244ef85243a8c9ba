"""The gate: which records count, for the page, the terminal, every export and every comparison.

No other module reads the table `records`. The others read these views, each a part of the one before:

- `counted`: each trial once, and no void one.
- `judged`: of these, the trials that say something about their cell: drawn cuts, and surveys by
  features. A planted fault, a replay or a rerun says nothing about its cell.
- `live`: the drawn cuts, which rates count. Each kind of survey has a view of its name, too.
- `trials`: `counted` with each trial's axes and run, for exports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import duckdb

from torture.records.record.counting import by_load, latest_judgements, the_one_that_counts
from torture.records.record.trials import Origin
from torture.report.reading.runs import RunInfo
from torture.report.reading.tally import survey_kinds
from torture.report.reading.text import printable, shortened

_BATCH = 5000
"""How many rows are fetched at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dropped:
    """Records of trials for which another record counts."""

    records: int
    other_verdict: int
    """The conclusive ones with another verdict than the record that counts."""
    inconclusive: int
    repeated: int = 0
    """Trials that were made several times; a copy of a record, or another judgement, is no other try."""
    tries: int = 0
    """The tries of these trials, in all."""

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence, if there is one."""
        if not self.records:
            return ()
        are = " is" if self.records == 1 else "s are"
        were = "was" if self.inconclusive == 1 else "were"
        return (
            f"{self.records:,} record{are} of trials with several records, and each trial "
            f"counts once; {self.inconclusive:,} of them {were} inconclusive, and "
            f"{self.other_verdict:,} had another verdict than the record that counts{self._tries}",
        )

    @property
    def _tries(self) -> str:
        if not self.repeated:
            return ""
        were = "1 trial was" if self.repeated == 1 else f"{self.repeated:,} trials were"
        return (
            f"; {were} made several times, with {self.tries:,} tries in all: the first conclusive "
            "try counts, or the first that broke its guarantee"
        )


class _Duplicate(NamedTuple):
    place: int
    verdict: str
    is_conclusive: bool
    is_breach: bool
    load: str
    scored_s: int
    cut_ms: float | None
    trial_ms: int | None

    @property
    def of_try(self) -> tuple[float | None, int | None]:
        return self.cut_ms, self.trial_ms


def make_views(sql: duckdb.DuckDBPyConnection) -> None:
    """Create the views.

    The table `first_tries` has a trial's first conclusive record where a later one counts, and the
    latter's place.
    """
    surveys = {kind.name: kind.origin for kind in survey_kinds()}
    drawn = ", ".join(f"'{origin}'" for origin in (Origin.LIVE, *surveys.values()))
    views = {
        "counted": "SELECT * FROM records",
        "judged": f"SELECT * FROM counted WHERE origin IN ({drawn}) AND fault = ''",
        "live": f"SELECT * FROM judged WHERE origin = '{Origin.LIVE}'",
        **{
            name: f"SELECT * FROM judged WHERE origin = '{origin}'"
            for name, origin in surveys.items()
        },
        "trials": "SELECT runs.run, counted.* EXCLUDE (line_begin, line_bytes), "
        "cells.* EXCLUDE (cell), runs.is_sequential "
        "FROM counted JOIN cells USING (cell) JOIN runs USING (source)",
    }
    for name, query in views.items():
        sql.execute(f"CREATE TEMP VIEW {name} AS {query}")


def count_once(sql: duckdb.DuckDBPyConnection) -> Dropped:
    """Keep one record per trial, by the rule of `torture.records.record.counting`.

    Where a later try counts, for its breach, the first conclusive one goes to the table `first_tries`.
    """
    identity = "trial, origin, origin_run, zfs, linux_nas, linux_client"
    sql.execute(
        f"SELECT {identity}, place, verdict, badness >= 0, broke_guarantee, load_asked, scored_s, "
        f"cut_ms, trial_ms FROM records SEMI JOIN "
        f"(SELECT {identity} FROM records GROUP BY ALL HAVING count(*) > 1) "
        f"USING ({identity}) ORDER BY {identity}, place"
    )
    dropped: list[int] = []
    first_tries: list[tuple[int, int]] = []
    other_verdict = inconclusive = repeated = tries = 0
    same = (list(rows) for _, rows in groupby(_fetched(sql), key=lambda row: row[:6]))
    for records in (
        own for rows in same for own in by_load([_Duplicate(*row[6:]) for row in rows])
    ):
        latest = latest_judgements(records)
        counts = the_one_that_counts(latest)
        first = next((record for record in latest if record.is_conclusive), counts)
        if counts.is_conclusive and first.of_try != counts.of_try:
            first_tries.append((first.place, counts.place))
        own_tries = len({record.of_try for record in records})
        repeated += own_tries > 1
        tries += own_tries if own_tries > 1 else 0
        for record in records:
            if record is not counts:
                dropped.append(record.place)
                inconclusive += not record.is_conclusive
                other_verdict += record.is_conclusive and record.verdict != counts.verdict
    if first_tries:
        sql.execute(
            "INSERT INTO first_tries SELECT records.*, first.counts FROM records JOIN "
            "(SELECT unnest(?::BIGINT[]) AS place, unnest(?::BIGINT[]) AS counts) AS first "
            "ON first.place = records.place",
            [list(places) for places in zip(*first_tries, strict=True)],
        )
    sql.execute("DELETE FROM records WHERE place IN (SELECT unnest(?::BIGINT[]))", [dropped])
    return Dropped(
        records=len(dropped),
        other_verdict=other_verdict,
        inconclusive=inconclusive,
        repeated=repeated,
        tries=tries,
    )


def drop_voided(sql: duckdb.DuckDBPyConnection, runs: Sequence[RunInfo]) -> tuple[str, ...]:
    """Move the void trials to the table `voided`, from every run that has them; a sentence for each.

    A `run.json` voids trials of the run's own versions: the same trial of another ZFS or Linux counts.
    A merged run of an older suite has no record of a void trial: it voids those of all versions.
    """
    notes = []
    versions = "(zfs, linux_nas, linux_client)"
    every = "(SELECT * FROM records UNION ALL SELECT * FROM voided)"
    of_run = f"SELECT {versions} FROM {every} WHERE trial = $trial AND source = $source"
    for source, run in enumerate(runs):
        is_merged = run.document.merged is not None
        for trial, reason in sorted(run.document.voided.items()):
            said = {"trial": trial, "source": source}
            has_record = sql.execute(of_run, said).fetchone() is not None
            is_void = "trial = $trial"
            if has_record or not is_merged:
                is_void += f" AND {versions} IN ({of_run})"
            else:
                del said["source"]
            sql.execute(f"INSERT INTO voided SELECT * FROM records WHERE {is_void}", said)
            voided = sql.execute(
                f"DELETE FROM records WHERE {is_void} RETURNING verdict", said
            ).fetchall()
            if not voided and (has_record or is_merged):
                continue
            were = " and ".join(sorted({verdict for (verdict,) in voided}))
            sentence = (
                f"{printable(trial)} is void, and in no rate: {shortened(printable(reason), 300)} "
                f"(it was {were})"
                if voided
                else f"{printable(run.name)} voids {printable(trial)}, and has no record of it"
            )
            if sentence not in run.document.notes:
                notes.append(sentence)
    return tuple(notes)


def _fetched(sql: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while rows := sql.fetchmany(_BATCH):
        yield from rows
