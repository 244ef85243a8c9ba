"""The records of one or several runs, each trial once, and queries for the report's figures."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Self

import duckdb
from msgspec.structs import replace

from torture.errors import HarnessError
from torture.facts.evidence.documents import FLOAT_MAX, strict_json
from torture.files import whole_file
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE, RunDocument, agreed
from torture.records.record.trials import Origin, TrialRecord
from torture.records.record.trials_file import UnreadableLineError, read_line
from torture.report.reading.counting_rules import count_once, drop_voided, make_views
from torture.report.reading.loading import (
    Breach,
    Case,
    CellInfo,
    LoadFigure,
    Loss,
    RollbackBin,
    connect,
    load_runs,
    make_tables,
    normalised,
)
from torture.report.reading.remarks import Remark, Remarks, notes_on_runs
from torture.report.reading.runs import RunInfo, find_run, find_runs
from torture.report.reading.tally import (
    WORTH,
    Audited,
    CellTally,
    FirstTry,
    Spread,
    TrialKind,
    Worth,
    survey_kinds,
    surveys_of,
)
from torture.report.reading.trial_notes import (
    accelerators,
    kernels,
    notes_on_accelerators,
    notes_on_confirmations,
    notes_on_kernels,
    notes_on_lower_bounds,
    notes_on_manifests,
    notes_on_older_rules,
    notes_on_repeats,
    notes_on_states,
    notes_on_versions,
    qemus,
    zfs_versions,
)

_DECADES_MAX = math.floor(math.log10(FLOAT_MAX))
_WORST_FIRST = (
    "broke_guarantee DESC, badness DESC, rollback_ms DESC NULLS LAST, "
    "lost / greatest(acknowledged, 1) DESC, trial"
)


class Store:
    """Records in tables. Use `open`; it is a context manager.

    - `trials`: the number of live trials.
    - `zfs_versions`, `kernels`, `qemus`: the versions of OpenZFS, Linux and hypervisors' QEMUs, the
      most frequent first.
    - `accelerators`: those of its trials that are known.
    - `notes`: sentences for people about anything unusual in the files and records.
    - `unreadable_lines`: whole lines that are no records; they are left out.
    - `notes_on_files`: the notes without those about the records' own content.
    - `sql` has the view `trials`; results/README.md has its columns, under `trials.csv`.
    """

    def __init__(
        self,
        *,
        sql: duckdb.DuckDBPyConnection,
        runs: tuple[RunInfo, ...],
        notes_on_files: tuple[str, ...],
        unreadable_lines: int,
        cells: dict[str, CellInfo],
        resources: ExitStack,
    ) -> None:
        self.sql = sql
        self.runs = runs
        self.notes_on_files = notes_on_files
        self.unreadable_lines = unreadable_lines
        self.notes = (
            *notes_on_files,
            *notes_on_versions(sql),
            *notes_on_kernels(sql),
            *notes_on_states(sql),
            *notes_on_accelerators(sql),
            *notes_on_manifests(sql),
            *notes_on_confirmations(sql),
            *notes_on_older_rules(sql),
            *notes_on_lower_bounds(sql),
            *notes_on_repeats(sql),
            *(note for kind in survey_kinds() for note in kind.notes(self._rows)),
        )
        self.zfs_versions, self.kernels = tuple(zfs_versions(sql)), tuple(kernels(sql))
        self.qemus = tuple(qemus(sql))
        self.accelerators = tuple(accelerators(sql))
        self._cells = cells
        self._resources = resources
        (self.trials,) = self._rows("SELECT count(*) FROM live")[0]

    @classmethod
    def open(cls, runs: Sequence[Path]) -> Self:
        """Read the runs, from the oldest to the newest; each path is one for `find_runs`.

        Raises `HarnessError` when there is no run, or one cannot be read.
        """
        found = {run.folder: run for path in runs for run in find_runs(path)}
        # sorting is stable: runs without a time stay in the order of their paths, behind all others
        ordered = tuple(sorted(found.values(), key=lambda run: run.begun_s))
        if not ordered:
            raise HarnessError("no run was named", hint="name one, e.g. results/latest")
        with ExitStack() as resources:
            sql = resources.enter_context(connect())
            make_tables(sql)
            make_views(sql)
            remarks = Remarks()
            cells = load_runs(sql, ordered, remarks)
            voided = drop_voided(sql, ordered)
            dropped = count_once(sql)
            return cls(
                sql=sql,
                runs=ordered,
                notes_on_files=(
                    *notes_on_runs(ordered),
                    *remarks.sentences(),
                    *voided,
                    *dropped.notes,
                ),
                unreadable_lines=remarks.count(Remark.UNREADABLE),
                cells=cells,
                resources=resources.pop_all(),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the memory and the temporary folder."""
        self._resources.close()

    def tallies(self) -> tuple[CellTally, ...]:
        """The outcomes of every cell's live trials, and its surveys, sorted by name."""
        counts: dict[str, dict[TrialKind, int]] = {}
        of_kind = ", ".join(
            f"live.{name}"
            for name in ("verdict", "is_loss", "broke_guarantee", "is_empty", "is_confirmation")
        )
        for cell, verdict, *truths, first_verdict, is_first_loss, count in self._rows(
            f"SELECT live.cell, {of_kind}, first.verdict, first.is_loss, count(*) FROM live "
            "LEFT JOIN first_tries AS first ON first.counts = live.place GROUP BY ALL"
        ):
            kind = TrialKind(Verdict(verdict), *truths)
            if first_verdict is not None:
                first = FirstTry(is_first_loss, Verdict(first_verdict).is_corruption)
                kind = kind._replace(first=first)
            counts.setdefault(cell, {})[kind] = count
        worth = ", ".join(f"median(live.{name}) FILTER (live.badness >= 0)" for name in WORTH)
        rows = self._rows(
            "SELECT judged.cell, arg_max(judged.guarantee, judged.place), "
            "coalesce(bool_or(is_sequential), false), "
            "median(live.acknowledged_before_cut / (live.load_ms / 1000)) "
            "FILTER (live.badness >= 0 AND live.load_ms > 0), "
            "min(live.rollback_ms), median(live.rollback_ms), max(live.rollback_ms), "
            "coalesce(sum(live.acknowledged) "
            "FILTER (live.badness >= 0 AND NOT live.is_confirmation), 0), "
            f"coalesce(sum(live.acknowledged_in_outage), 0), {worth} "
            "FROM judged LEFT JOIN live USING (place) LEFT JOIN runs ON runs.source = live.source "
            "GROUP BY judged.cell ORDER BY judged.cell"
        )
        surveys = surveys_of(self._rows)
        return tuple(
            CellTally(
                cell=cell,
                axes=self._cells[cell].axes,
                guarantee=guarantee,
                counts=counts.get(cell, {}),
                is_sequential=is_sequential,
                acknowledged_per_s=per_s,
                rollback_ms=None
                if least is None
                else Spread(least=least, median=median, most=most),
                checked=checked,
                acknowledged_in_outage=in_outage,
                worth=Worth(**dict(zip(WORTH, medians, strict=True))),
                surveys=surveys.get(cell, ()),
            )
            for (
                cell,
                guarantee,
                is_sequential,
                per_s,
                least,
                median,
                most,
                checked,
                in_outage,
                *medians,
            ) in rows
        )

    def breaches(self) -> tuple[Breach, ...]:
        """The cuts and surveys that broke their guarantee, sorted by cell and trial."""
        rows = self._rows(
            "SELECT cell, trial, origin, badness, coalesce(audit_broken, 0) > 0, "
            "unfounded > 0 FROM judged WHERE broke_guarantee ORDER BY cell, trial"
        )
        return tuple(Breach(*row) for row in rows)

    def audited(self) -> Audited:
        """The totals of all live trials' audits."""
        columns = ("audited", "audited_completions", "audited_txgs", "audit_broken")
        sums = ", ".join(f"coalesce(sum({column}), 0)" for column in columns)
        (row,) = self._rows(f"SELECT {sums} FROM live")
        return Audited(*row)

    def rollbacks(self, *, bins_per_decade: int = 6) -> tuple[RollbackBin, ...]:
        """The rollbacks of conclusive trials, in bins of equal width on a logarithmic scale.

        Bins begin at whole powers of ten; the first one, from 0 to 1 ms, has all shorter times. Bins
        without a trial are left out. Sorted by cell, then time.
        """
        (most_ms,) = self._rows("SELECT coalesce(max(rollback_ms), 0) FROM live")[0]
        edges = [0.0]
        while edges[-1] <= most_ms and edges[-1] < FLOAT_MAX:
            decades = (len(edges) - 1) / bins_per_decade
            edges.append(10.0**decades if decades <= _DECADES_MAX else FLOAT_MAX)
        rows = self._rows(
            "WITH edges AS (SELECT unnest(?::DOUBLE[]) AS low_ms, unnest(?::DOUBLE[]) AS high_ms) "
            "SELECT cell, low_ms, high_ms, count(*) FROM live "
            "ASOF JOIN edges ON live.rollback_ms >= edges.low_ms "
            "GROUP BY cell, low_ms, high_ms ORDER BY cell, low_ms",
            [edges[:-1], edges[1:]],
        )
        return tuple(
            RollbackBin(cell=cell, low_ms=low, high_ms=high, trials=trials)
            for cell, low, high, trials in rows
        )

    def load_figures(self) -> tuple[LoadFigure, ...]:
        """The figures of loads, over conclusive trials; sorted by cell, then name."""
        rows = self._rows(
            "WITH each AS (SELECT cell, unnest(map_entries(figures::JSON::MAP(VARCHAR, DOUBLE))) "
            "AS figure FROM live WHERE badness >= 0 AND figures <> '{}') "
            "SELECT cell, figure.key, median(figure.value), count(*) FROM each "
            "GROUP BY ALL ORDER BY ALL"
        )
        return tuple(
            LoadFigure(cell=cell, name=name, median=median, trials=trials)
            for cell, name, median, trials in rows
        )

    def cases(self, *, most: int, most_per_cell: int = 3) -> tuple[Case, ...]:
        """The worst cuts and surveys: those that broke their guarantee, then by verdict and loss.

        Inconclusive trials, replays, reruns and intact trials are no cases. An intact trial with an
        acknowledgement while there was no NAS is one.
        """
        rows = self._rows(
            "SELECT source, line_begin, line_bytes, trial, broke_guarantee FROM ("
            "SELECT source, line_begin, line_bytes, trial, broke_guarantee, badness, rollback_ms, "
            f"lost, acknowledged, row_number() OVER (PARTITION BY cell ORDER BY {_WORST_FIRST}) AS rank "
            "FROM judged WHERE badness > 0 OR is_loss OR broke_guarantee OR acknowledged_in_outage > 0"
            f") WHERE rank <= ? ORDER BY {_WORST_FIRST} LIMIT ?",
            [most_per_cell, most],
        )
        lines = self._lines(
            [(source, begin, size, trial) for source, begin, size, trial, _ in rows]
        )
        return tuple(
            Case(
                record=self._with_todays_guarantee(record),
                run=self.runs[row[0]],
                broke_guarantee=row[4],
            )
            for row, (_, record) in zip(rows, lines, strict=True)
        )

    def losses(self, *, most: int) -> tuple[int, tuple[Loss, ...]]:
        """The number of cuts and surveys that lost something or broke their guarantee, and the worst.

        Their order is that of `cases`; a cell has as many as it has losses.
        """
        lossy = "FROM judged WHERE badness > 0 OR is_loss OR broke_guarantee"
        ((count,),) = self._rows(f"SELECT count(*) {lossy}")
        rows = self._rows(
            "SELECT source, trial, cell, seed, verdict, coalesce(cut_phase, ''), "
            "coalesce(acknowledged, 0), coalesce(lost, 0), rollback_ms, broke_guarantee, "
            f"split_part(coalesce(reasons, ''), '\n', 1) {lossy} ORDER BY {_WORST_FIRST} LIMIT ?",
            [most],
        )
        names = [own for own in Loss.__dataclass_fields__ if own != "run"]
        return count, tuple(
            Loss(run=self.runs[source], **dict(zip(names, values, strict=True)))
            for source, *values in rows
        )

    def lines(
        self, *, only: str = "true", has_others: bool = False
    ) -> Iterator[tuple[bytes, TrialRecord]]:
        """The line of each record that counts, byte for byte, by cell and index, and the record.

        `only` is a condition of SQL. With `has_others` void records come, too, and the first conclusive
        record of a trial before a later one that counts. The record of a replay or rerun names its run,
        even if its line does not. Raises `HarnessError` when a file has changed meanwhile.
        """
        records = "counted"
        if has_others:
            others = "SELECT * EXCLUDE (counts) FROM first_tries UNION ALL SELECT * FROM voided"
            records = f"(SELECT * FROM counted UNION ALL {others})"
        rows = self._rows(
            f"SELECT source, line_begin, line_bytes, trial FROM {records} WHERE {only} "
            'ORDER BY cell, "index" NULLS LAST, trial, origin, origin_run, place'
        )
        return self._lines(rows)

    def _lines(
        self, places: Sequence[tuple[int, int, int, str]]
    ) -> Iterator[tuple[bytes, TrialRecord]]:
        with ExitStack() as stack:
            files: dict[int, BinaryIO] = {}
            for source, begin, size, trial in places:
                file = self.runs[source].layout.trials_file
                try:
                    if source not in files:
                        files[source] = stack.enter_context(file.open("rb"))
                    files[source].seek(begin)
                    raw = files[source].read(size)
                    record = read_line(raw).record
                    is_same = record.trial == trial
                except (OSError, UnreadableLineError):
                    is_same = False
                if not is_same:
                    raise HarnessError(
                        f"{file} has changed while it was read", hint="make the report again"
                    )
                run = record.identity(run=self.runs[source].name).run
                yield raw, replace(record, origin_run=run)

    def _with_todays_guarantee(self, record: TrialRecord) -> TrialRecord:
        info, guarantee = normalised(record, self._cells)
        return replace(
            record, guarantee=guarantee, axes=info.axes if info.is_known else record.axes
        )

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        return self.sql.execute(query, list(values)).fetchall()


def write_merged(store: Store, folder: Path) -> Path:
    """Write a run with every trial of the store once, its line byte for byte, by cell and index.

    Of a trial whose later try counts there are two lines, so that a report of the merged run is the same.
    So do void trials have their lines: a rerun would else stand for them.
    Only the line of a replay or rerun is rewritten: it also names its original run. The merged `run.json`
    has the fields that all runs agree on, `merged` (their names) and `notes` (the store's). Evidence is
    not copied. An existing merged run is replaced. Raises `HarnessError` when another run is there, or
    the folder cannot be written.
    """
    _must_be_free(store, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(folder / TRIALS_FILE) as partial, partial.open("wb") as file:
            for line, record in store.lines(has_others=True):
                file.write(_with_its_run(line, record) + b"\n")
        merged_document(folder.resolve().name, store.runs, store.notes_on_files).write(folder)
    except OSError as error:
        raise HarnessError(f"no merged run in {folder}: {error}", hint="df -h") from error
    return folder


def _with_its_run(line: bytes, record: TrialRecord) -> bytes:
    """The line of a replay or rerun, with the name of its run; other lines unchanged."""
    if record.origin == Origin.LIVE:
        return line
    return json.dumps(strict_json(line) | {"origin_run": record.origin_run}).encode()


def merged_document(name: str, runs: Sequence[RunInfo], notes: Sequence[str]) -> RunDocument:
    """The `run.json` of several runs: each field has its value if all runs agree.

    `cells` are the union. `until` stays if only one run has it, since the intervals must allow for it.
    `begun` is the earliest. `void` has all void trials.
    """
    documents = [run.document for run in runs]
    same = agreed(documents)
    options = same.options
    lists = [document.options.get("cells") for document in documents]
    if any(isinstance(cells, list) for cells in lists):
        named = [cell for cells in lists if isinstance(cells, list) for cell in cells]
        options["cells"] = sorted({cell for cell in named if isinstance(cell, str)})
    if until := [document.options["until"] for document in documents if document.is_sequential]:
        options["until"] = until[0]
    return replace(
        same,
        run=name,
        merged=tuple(run.name for run in runs),
        notes=tuple(notes),
        void={trial: why for document in documents for trial, why in document.voided.items()},
        begun=next((document.begun for document in documents if document.begun), ""),
        options=options,
    )


def _must_be_free(store: Store, folder: Path) -> None:
    if not (folder / TRIALS_FILE).exists():
        return
    there = find_run(folder)
    if there.document.merged is None or there.folder in {run.folder for run in store.runs}:
        raise HarnessError(f"{folder} already holds a run", hint="name another folder")
