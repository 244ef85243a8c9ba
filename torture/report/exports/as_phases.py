"""The phases of the cuts, the writes that they could lose, and the audits: tables in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median

from torture.choices.matrix.cells import Cell
from torture.choices.matrix.durability import flushed_data_sync_of
from torture.facts.axes.sync import Sync
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.phase import Phase
from torture.facts.stats.rates import Rate, in_words, rate_of
from torture.facts.stats.sequential import sequential_rate_of
from torture.files import write_whole
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import Origin, TrialRecord
from torture.report.exports.protocol import ExportFormat
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.tables import EXPORT_SCHEMA
from torture.report.figures.wording import rate_in_words
from torture.report.reading.store import Store
from torture.report.reading.text import escaped, markdown_table

_LEGEND = """\
A cut's **phase** is the step of ZFS's write path in which the cut fell. It is read from the recording
of the NAS's disks up to the cut, not from the cut's aim. `results/README.md` defines each phase.
**Could**: cuts of cells that can reach the phase. With sync=disabled or an asynchronous export ZFS
writes no intent log. Intervals are exact, 95 %."""
_RISKS: dict[str, Callable[[CutDocument], bool]] = {
    "something unflushed, in flight or being acknowledged": lambda cut: bool(cut.is_at_risk),
    "a write that no flush covered": lambda cut: any(disk.unflushed for disk in cut.disks.values()),
    "a write in flight": lambda cut: any(disk.in_flight for disk in cut.disks.values()),
    "nothing that could have been lost (empty)": lambda cut: cut.is_empty,
}


def export_phases(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `phases.md`."""
    records = [record for _, record in store.lines() if record.origin is Origin.LIVE]
    with_phase = [record for record in records if record.cut.phase in set(Phase)]
    parts = [
        [f"<!-- export schema {EXPORT_SCHEMA}: made by tools/report, not by hand -->"],
        ["# Where the cuts fell"],
        [_LEGEND] if with_phase else ["No record has a phase."],
        *([_phases(with_phase), _risks(with_phase)] if with_phase else []),
        *([_kept(records)] if any(record.cut.policies for record in records) else []),
        *([_audits(records, cell_figures(store.tallies()))] if records else []),
        *([[f"- {escaped(note)}" for note in store.notes]] if store.notes else []),
    ]
    text = "\n\n".join("\n".join(part) for part in parts) + "\n"
    return (write_whole(folder / "phases.md", text.encode()),)


def _phases(records: Sequence[TrialRecord]) -> list[str]:
    fell = Counter(record.cut.phase for record in records)
    could = {phase: sum(_can_come_to(phase, record) for record in records) for phase in Phase}
    return markdown_table(
        ("phase", "could", "fell there"),
        [
            (phase, str(could[phase]), in_words(rate_of(fell[phase], could[phase])))
            for phase in Phase
            # older audits do not know this phase
            if fell[phase] or phase is not Phase.ACKNOWLEDGED
        ],
    )


def _can_come_to(phase: Phase, record: TrialRecord) -> bool:
    if not phase.is_of_the_log or record.cut.phase == phase:
        return True
    try:
        return flushed_data_sync_of(Cell.parse(record.cell)) is not Sync.DISABLED
    except ValueError:
        return False


def _risks(records: Sequence[TrialRecord]) -> list[str]:
    cuts = [record.cut for record in records if record.cut.is_at_risk is not None]
    return markdown_table(
        ("what the cut found", "cuts"),
        [
            (what, in_words(rate_of(sum(map(is_so, cuts)), len(cuts))))
            for what, is_so in _RISKS.items()
        ],
    )


def _kept(records: Sequence[TrialRecord]) -> list[str]:
    """A row per guarantee and policy: a rate over all would depend on the draw as much as on the NAS."""
    columns = ("theory", "what the disks kept", "cuts", "lost acknowledged data", "lost the pool")
    alike: dict[tuple[str, str], list[TrialRecord]] = {}
    for record in records:
        if record.is_conclusive and (policies := record.cut.policies):
            alike.setdefault((record.guarantee, policies), []).append(record)
    rows = [
        (
            *map(escaped, named),
            str(len(own)),
            in_words(rate_of(sum(record.is_loss for record in own), len(own))),
            in_words(rate_of(sum(r.verdict is Verdict.POOL_LOST for r in own), len(own))),
        )
        for named, own in sorted(alike.items())
    ]
    return markdown_table(columns, rows)


def _audits(records: Sequence[TrialRecord], cells: Sequence[CellFigures]) -> list[str]:
    """A row per guarantee of today's code: the audits of its cells' cuts, and these cuts' losses."""
    columns = ("theory", "cuts", "lost acknowledged data", "acknowledgements audited", "writes",
               "transaction groups", "uncovered", "audit took, half of them, longest")  # fmt: skip
    rows = []
    for guarantee in sorted({figures.guarantee for figures in cells}):
        alike = [figures for figures in cells if figures.guarantee == guarantee]
        names = {figures.cell for figures in alike}
        own = [record for record in records if record.cell in names]
        loss = _together([figures.loss for figures in alike])
        audits = [record.cut.audited for record in own]
        took_ms = [ms for record in own if (ms := record.cut.audit.took_ms) is not None]
        rows.append(
            (
                escaped(guarantee),
                str(loss.trials),
                rate_in_words(loss, sum(figures.unresolved for figures in alike)),
                _sum(audit.acknowledgements for audit in audits),
                _sum(audit.completions for audit in audits),
                _sum(audit.txgs for audit in audits),
                _sum(audit.broken for audit in audits),
                f"{median(took_ms):.0f} ms, {max(took_ms)} ms" if took_ms else "-",
            )
        )
    return markdown_table(columns, rows)


def _together(rates: Sequence[Rate]) -> Rate:
    of = sequential_rate_of if any(rate.is_sequential for rate in rates) else rate_of
    return of(sum(rate.events for rate in rates), sum(rate.trials for rate in rates))


def _sum(counts: Iterable[int | None]) -> str:
    return f"{sum(count or 0 for count in counts):,}"


EXPORT = ExportFormat(name="phases", write=export_phases)
