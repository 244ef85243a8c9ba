"""The phases of the cuts, the writes that they could lose, and the audits: tables in Markdown."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Self

from torture.choices.matrix.cells import Cell
from torture.choices.matrix.durability import flushed_data_sync_of
from torture.facts.axes.sync import Sync
from torture.facts.evidence.cut_document import CutDocument
from torture.facts.evidence.phase import Phase
from torture.facts.stats.rates import counts_in_words, in_words, rate_of
from torture.facts.stats.sequential import sequential_rate_of, together
from torture.files import write_whole
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord
from torture.report.exports.protocol import ExportFormat
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.tables import EXPORT_SCHEMA
from torture.report.figures.wording import rate_in_words
from torture.report.reading.counted import IS_LIVE
from torture.report.reading.store import Store
from torture.report.reading.text import escaped, markdown_table

_LEGEND = """\
A cut's **phase** is the step of ZFS's write path in which the cut fell. It is read from the recording
of the NAS's disks up to the cut, not from the cut's aim. `results/README.md` defines each phase.
**Could**: cuts of cells that can reach the phase. With sync=disabled or an asynchronous export ZFS
writes no intent log. Rates of losses have intervals of 95 %. Those that allow for a run that stopped
at its answer say so. Shares of phases have none: they depend on the cuts' aims."""
_LOSSES = (("is_harm", "is_later_harm"), ("lost_pool", "is_later_pool"))
"""The fields of a cut that say whether it lost something, and whether only a later try did."""
_RISKS = (
    "something unflushed, in flight or being acknowledged",
    "a write that no flush covered",
    "a write in flight",
    "nothing that could have been lost (empty)",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cut:
    """The facts of a record for the tables: whole records of a long run do not fit into memory."""

    cell: str
    guarantee: str
    phase: Phase | None
    policies: str
    risks: tuple[bool, ...] | None
    """Whether it found each of `_RISKS`; None where the record does not say it."""
    is_conclusive: bool
    """Whether rates count it: a cut at the moment of a finding was not drawn."""
    is_harm: bool
    """Whether it lost or damaged data."""
    lost_pool: bool
    is_later_harm: bool
    is_later_pool: bool
    """Whether only a later try of the trial lost that: then no lower bound counts it."""
    audits: tuple[int | None, ...]
    """Acknowledgements, completions, transaction groups, and what was uncovered of them."""
    took_ms: float | None

    @classmethod
    def of(cls, record: TrialRecord, first_harms: Mapping[str, bool]) -> Self:
        """That of a record; `first_harms`: whether the first try did harm, where a later one counts."""
        audited = record.cut.audited
        is_later = record.trial in first_harms
        lost_pool = record.verdict is Verdict.POOL_LOST
        return cls(
            cell=sys.intern(record.cell),
            guarantee=sys.intern(record.guarantee),
            phase=Phase(record.cut.phase) if record.cut.phase in set(Phase) else None,
            policies=sys.intern(record.cut.policies),
            risks=_risks_of(record.cut),
            is_conclusive=record.is_conclusive and not record.cut.confirmed.is_made,
            is_harm=_is_harm(record.is_loss, record.verdict),
            lost_pool=lost_pool,
            is_later_harm=is_later and not first_harms[record.trial],
            is_later_pool=is_later and lost_pool,
            audits=(audited.acknowledgements, audited.completions, audited.txgs, audited.broken),
            took_ms=record.cut.audit.took_ms,
        )


def _is_harm(is_loss: bool, verdict: str) -> bool:
    return is_loss or Verdict(verdict).is_corruption


def _risks_of(cut: CutDocument) -> tuple[bool, ...] | None:
    if cut.is_at_risk is None:
        return None
    disks = cut.disks.values()
    return (
        cut.is_at_risk,
        any(disk.unflushed for disk in disks),
        any(disk.in_flight for disk in disks),
        cut.is_empty,
    )


def export_phases(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `phases.md`."""
    first_tries = store.sql.execute("SELECT trial, is_loss, verdict FROM first_tries").fetchall()
    first_harms = {trial: _is_harm(is_loss, verdict) for trial, is_loss, verdict in first_tries}
    cuts = [_Cut.of(record, first_harms) for _, record in store.lines(only=IS_LIVE)]
    with_phase = [cut for cut in cuts if cut.phase is not None]
    cells = cell_figures(store.tallies())
    parts = [
        [f"<!-- export schema {EXPORT_SCHEMA}: made by tools/report, not by hand -->"],
        ["# Where the cuts fell"],
        [_LEGEND] if with_phase else ["No record has a phase."],
        *([_phases(with_phase), _risks(with_phase)] if with_phase else []),
        *([_kept(cuts, cells)] if any(cut.policies for cut in cuts) else []),
        *([_audits(cuts, cells)] if cuts else []),
        *([[f"- {escaped(note)}" for note in store.notes]] if store.notes else []),
    ]
    text = "\n\n".join("\n".join(part) for part in parts) + "\n"
    return (write_whole(folder / "phases.md", text.encode()),)


def _phases(cuts: Sequence[_Cut]) -> list[str]:
    """Shares without intervals: reruns and stops decide which cuts count, and so how many fell where."""
    fell = Counter(cut.phase for cut in cuts)
    with_log = {cell for cell in {cut.cell for cut in cuts} if _writes_a_log(cell)}
    could = {
        phase: sum(
            not phase.is_of_the_log or cut.phase is phase or cut.cell in with_log for cut in cuts
        )
        for phase in Phase
    }
    return markdown_table(
        ("phase", "could", "fell there"),
        [
            (phase, str(could[phase]), counts_in_words(rate_of(fell[phase], could[phase])))
            for phase in Phase
            # older audits do not know this phase
            if fell[phase] or phase is not Phase.ACKNOWLEDGED
        ],
    )


def _writes_a_log(cell: str) -> bool:
    try:
        return flushed_data_sync_of(Cell.parse(cell)) is not Sync.DISABLED
    except ValueError:
        return False


def _risks(cuts: Sequence[_Cut]) -> list[str]:
    found = [cut.risks for cut in cuts if cut.risks is not None]
    return markdown_table(
        ("what the cut found", "cuts"),
        [
            (what, counts_in_words(rate_of(sum(risks[place] for risks in found), len(found))))
            for place, what in enumerate(_RISKS)
        ],
    )


def _kept(cuts: Sequence[_Cut], cells: Sequence[CellFigures]) -> list[str]:
    """A row per guarantee and policy: a rate over all would depend on the draw as much as on the NAS."""
    is_sequential = any(figures.harm.is_sequential for figures in cells)
    of = sequential_rate_of if is_sequential else rate_of
    columns = ("theory", "what the disks kept", "cuts", "lost or damaged", "lost the pool")
    alike: dict[tuple[str, str], list[_Cut]] = {}
    for cut in cuts:
        if cut.is_conclusive and cut.policies:
            alike.setdefault((cut.guarantee, cut.policies), []).append(cut)
    rows = [
        (
            *map(escaped, named),
            str(len(own)),
            *(
                in_words(of(_count(own, lost), len(own), later=_count(own, later)))
                for lost, later in _LOSSES
            ),
        )
        for named, own in sorted(alike.items())
    ]
    return markdown_table(columns, rows)


def _audits(cuts: Sequence[_Cut], cells: Sequence[CellFigures]) -> list[str]:
    """A row per guarantee of today's code: the audits of its cells' cuts, and these cuts' losses."""
    columns = ("theory", "cuts", "lost or damaged", "acknowledgements audited", "writes",
               "transaction groups", "uncovered", "audit took, half of them, longest")  # fmt: skip
    rows = []
    for guarantee in sorted({figures.guarantee for figures in cells}):
        alike = [figures for figures in cells if figures.guarantee == guarantee]
        names = {figures.cell for figures in alike}
        own = [cut for cut in cuts if cut.cell in names]
        harm = together([figures.harm for figures in alike])
        took_ms = [cut.took_ms for cut in own if cut.took_ms is not None]
        rows.append(
            (
                escaped(guarantee),
                str(harm.trials),
                rate_in_words(harm, sum(figures.unresolved for figures in alike)),
                *(_sum(cut.audits[place] for cut in own) for place in range(4)),
                f"{median(took_ms):.0f} ms, {max(took_ms)} ms" if took_ms else "-",
            )
        )
    return markdown_table(columns, rows)


def _count(cuts: Iterable[_Cut], field: str) -> int:
    return sum(getattr(cut, field) for cut in cuts)


def _sum(counts: Iterable[int | None]) -> str:
    return f"{sum(count or 0 for count in counts):,}"


EXPORT = ExportFormat(name="phases", write=export_phases)
