"""Leaves out the records that do not count: other tries of a trial, and void trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import duckdb

from torture.records.record.counting import the_one_that_counts
from torture.records.record.trials import Origin
from torture.report.reading.loading import fill
from torture.report.reading.runs import RunInfo
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
    """Trials that were made several times; a copy of a record is no other try."""
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
    cut_ms: float | None
    trial_ms: int | None

    @property
    def of_try(self) -> tuple[float | None, int | None]:
        """Equal in all copies and judgements of one try, and different in another try."""
        return self.cut_ms, self.trial_ms


def drop_duplicates(sql: duckdb.DuckDBPyConnection) -> Dropped:
    """Keep one record per trial, by the rule of `torture.records.record.counting`.

    Where a later try counts, for its breach, the first conclusive one goes to the table `first_tries`.
    """
    identity = "trial, origin, origin_run, zfs, linux_nas, linux_client"
    sql.execute(
        f"SELECT {identity}, place, verdict, badness >= 0, broke_guarantee, cut_ms, trial_ms "
        f"FROM records SEMI JOIN (SELECT {identity} FROM records GROUP BY ALL HAVING count(*) > 1) "
        f"USING ({identity}) ORDER BY {identity}, place"
    )
    dropped: list[int] = []
    first_tries: list[tuple[int, int]] = []
    other_verdict = inconclusive = repeated = tries = 0
    for _, rows in groupby(_fetched(sql), key=lambda row: row[:6]):
        records = [_Duplicate(*row[6:]) for row in rows]
        counts = the_one_that_counts(records)
        first = next((record for record in records if record.is_conclusive), counts)
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
    if dropped:
        sql.execute("CREATE TEMP TABLE dropped (place BIGINT)")
        fill(sql, "dropped", {"place": "BIGINT"}, [dropped])
        if first_tries:
            columns = {"place": "BIGINT", "counts": "BIGINT"}
            sql.execute("CREATE TEMP TABLE dropped_first (place BIGINT, counts BIGINT)")
            fill(sql, "dropped_first", columns, zip(*first_tries, strict=True))
            sql.execute(
                "INSERT INTO first_tries SELECT records.*, first.counts FROM records "
                "JOIN dropped_first AS first ON first.place = records.place"
            )
            sql.execute("DROP TABLE dropped_first")
        sql.execute("DELETE FROM records WHERE place IN (SELECT place FROM dropped)")
        sql.execute("DROP TABLE dropped")
    return Dropped(
        records=len(dropped),
        other_verdict=other_verdict,
        inconclusive=inconclusive,
        repeated=repeated,
        tries=tries,
    )


def drop_voided(sql: duckdb.DuckDBPyConnection, runs: Sequence[RunInfo]) -> tuple[str, ...]:
    """Take the void trials out of all tables, in every run that has them; a sentence for each.

    A `run.json` voids trials of the run's own versions: the same trial of another ZFS or Linux counts.
    A merged run has no record of a void trial, and the sentence among its notes.
    """
    notes = []
    for source, run in enumerate(runs):
        for trial, reason in sorted(run.document.voided.items()):
            voided = sql.execute(
                f"DELETE FROM records WHERE trial = $trial AND origin = '{Origin.LIVE}' AND "
                "(zfs, linux_nas, linux_client) IN (SELECT (zfs, linux_nas, linux_client) "
                "FROM records WHERE trial = $trial AND source = $source) "
                "RETURNING verdict",
                {"trial": trial, "source": source},
            ).fetchall()
            if not voided and run.document.merged is not None:
                continue
            were = " and ".join(sorted({verdict for (verdict,) in voided}))
            notes.append(
                f"{printable(trial)} is void, and in no rate: {shortened(printable(reason), 300)} "
                f"(it was {were})"
                if voided
                else f"{printable(run.name)} voids {printable(trial)}, and has no record of it"
            )
    return tuple(notes)


def _fetched(sql: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while rows := sql.fetchmany(_BATCH):
        yield from rows
