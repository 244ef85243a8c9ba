"""Where the cuts fell, what they could have taken, and what was audited of them: tables in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median

from torture.axes.sync import Sync
from torture.evidence.cut_document import CutDocument
from torture.evidence.phase import Phase
from torture.files import write_whole
from torture.matrix.cells import Cell
from torture.matrix.durability import acknowledged_sync_of
from torture.record.trials import Origin, TrialRecord
from torture.report.exports.protocol import ExportFormat
from torture.report.figures.tables import EXPORT_SCHEMA
from torture.report.figures.wording import rate_in_words
from torture.report.reading.store import Store
from torture.report.reading.text import escaped, markdown_table
from torture.stats.rates import in_words, rate_of

_LEGEND = """\
A cut's **phase** is told from the log of the NAS's disks up to it, and not from what it took aim at;
results/README.md says what each is. **Could**: cuts of cells that come to it. Where nobody is answered
by the intent log (sync=disabled, an asynchronous export) none is written. Exact 95 % intervals."""
_RISKS: dict[str, Callable[[CutDocument], bool]] = {
    "something unflushed, in flight or being acknowledged": lambda cut: bool(cut.is_at_risk),
    "a write that no flush covered": lambda cut: any(disk.unflushed for disk in cut.disks.values()),
    "a write in flight": lambda cut: any(disk.in_flight for disk in cut.disks.values()),
    "nothing that could have been lost (empty)": lambda cut: cut.is_empty,
}


def export_phases(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `phases.md`."""
    records = [
        record
        for _, record in store.lines()
        if record.origin is Origin.LIVE and record.cut.phase in set(Phase)
    ]
    parts = [
        [f"<!-- export schema {EXPORT_SCHEMA}: made by tools/report, not by hand -->"],
        ["# Where the cuts fell"],
        [_LEGEND] if records else ["No record tells it."],
        *([_phases(records), _risks(records), _audits(records)] if records else []),
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
        ],
    )


def _can_come_to(phase: Phase, record: TrialRecord) -> bool:
    if not phase.is_of_the_log or record.cut.phase == phase:
        return True
    try:
        return acknowledged_sync_of(Cell.parse(record.cell)) is not Sync.DISABLED
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


def _audits(records: Sequence[TrialRecord]) -> list[str]:
    """A row a guarantee: what was audited of its cells' cuts, and what these lost."""
    columns = ("theory", "cuts", "lost acknowledged data", "acknowledgements audited", "writes",
               "transaction groups", "uncovered", "audit took, half of them, longest")  # fmt: skip
    rows = []
    for guarantee in dict.fromkeys(sorted(record.guarantee for record in records)):
        own = [record for record in records if record.guarantee == guarantee]
        conclusive = [record for record in own if record.is_conclusive]
        audits = [record.cut.audited for record in own]
        took_ms = [ms for record in own if (ms := record.cut.audit.took_ms) is not None]
        rows.append(
            (
                escaped(guarantee),
                str(len(conclusive)),
                rate_in_words(
                    rate_of(sum(record.is_loss for record in conclusive), len(conclusive)),
                    sum(not (record.is_conclusive or record.cut.is_empty) for record in own),
                ),
                _sum(audit.acknowledgements for audit in audits),
                _sum(audit.completions for audit in audits),
                _sum(audit.txgs for audit in audits),
                _sum(audit.broken for audit in audits),
                f"{median(took_ms):.0f} ms, {max(took_ms)} ms" if took_ms else "-",
            )
        )
    return markdown_table(columns, rows)


def _sum(counts: Iterable[int | None]) -> str:
    return f"{sum(count or 0 for count in counts):,}"


EXPORT = ExportFormat(name="phases", write=export_phases)
