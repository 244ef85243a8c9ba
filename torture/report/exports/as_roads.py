"""The table of all transports, in Markdown: prediction, outcome and price of each set-up on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from torture.choices.matrix.axes import CHOICES, TRANSPORT
from torture.facts.stats.rates import bound_in_words, in_words
from torture.files import write_whole
from torture.report.exports._transports import TransportRow, transport_rows
from torture.report.exports.protocol import ExportFormat
from torture.report.figures.answer import answer
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.sensitivity import measured_sensitivity
from torture.report.figures.tables import EXPORT_SCHEMA
from torture.report.figures.wording import (
    cell_in_words,
    choice_in_words,
    common_in_words,
    defaults_in_words,
    duration_in_words,
    latency_in_words,
    rate_in_words,
    speed_in_words,
    varying_axes,
)
from torture.report.reading.runs import RunInfo
from torture.report.reading.store import Store
from torture.report.reading.text import escaped, markdown_table

_COLUMNS = (
    "road", "on", "theory", "cuts", "lost or damaged", "lost acknowledged data", "rolled back", "damaged",
    "seen from",
    "durable/s", "sync p50, p99", "outage", "reconnect", "against theory",
)  # fmt: skip
_Key = TypeVar("_Key")
_LEFT = ("road", "on", "theory", "against theory")

_LEGEND = """\
A row is a set-up with its load (column **road**). Theory does not distinguish the choices in **on**
(filesystems, roots), so their cuts count together. **Theory** was written down before any cut.

**Cuts** are conclusive ones. Rates are of these, with exact 95 % intervals. Where inconclusive cuts
may have lost something, two more rates follow: all of them counted as safe, and all as lost. An
empty cut, which could have taken nothing, is in none of these numbers. **Damaged** is worse than
consistent but old. **Lost or damaged** is either, as on the page. **Seen from**: the cuts would have
shown a loss of this frequency with 95 % probability. Rarer losses are possible.

**Durable/s**: operations acknowledged before the cut, per second of the writers' own work.
**Sync**: the writers' waits in fsync, fdatasync and writes through O_DSYNC, as the client timed
them. **Outage**: from the cut until the NAS offers its volume again. **Reconnect**: from there to
the client's next acknowledgement. These four are medians over conclusive trials. The machines are
emulated: of speeds and times only ratios mean anything.

**Planted**: faults in a cell that is sound without them. Where the completions of the client's
disk are recorded, the audit sees each dropped flush. For files over NFS and SMB it has only the
load's acknowledgements, and fewer cuts show the fault."""
_SEQUENTIAL = """\
Some cells stopped at their answer, or may have: the intervals allow for that, and say so."""


def export_roads(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `roads.md`."""
    sections = transport_rows(store)
    every = [row for _, rows in sections for row in rows]
    axes = [row.axes for row in every]
    varying = varying_axes(axes)
    parts = [
        [f"<!-- export schema {EXPORT_SCHEMA}: made by tools/report, not by hand -->"],
        ["# Rates of each transport"],
        [_LEGEND],
        [_SEQUENTIAL] if any(row.figures.loss.is_sequential for row in every) else [],
        [f"- **{group.sentence}**" for group in answer(cell_figures(store.tallies()))],
        [_in_common(axes, varying)],
        *(part for name, rows in sections for part in _section(name, rows, varying)),
        [] if sections else ["There are no trials."],
        ["## Runs"],
        [f"- {_run_in_words(run)}" for run in store.runs],
        [f"- {escaped(note)}" for note in store.notes],
    ]
    text = "\n\n".join("\n".join(part) for part in parts if any(part)) + "\n"
    return (write_whole(folder / "roads.md", text.encode()),)


def _in_common(axes: Sequence[Mapping[str, str]], varying: Sequence[str]) -> str:
    common = common_in_words([_shown(own) for own in axes], varying)
    usual = defaults_in_words(varying)
    sentences = (
        f"All rows: {common}." if common else "",
        f"Unless a row says otherwise: {usual}." if usual else "",
    )
    return " ".join(sentence for sentence in sentences if sentence)


def _section(name: str, rows: Sequence[TransportRow], varying: Sequence[str]) -> list[list[str]]:
    known = {choice.name: choice for choice in TRANSPORT.choices}
    title = known[name].words if name in known else escaped(name)
    explained = known[name].explained if name in known else ""
    return [
        [f"## {title or 'No known transport'}"],
        [f"{explained}."] if explained else [],
        markdown_table(_COLUMNS, [_values(row, varying) for row in rows], left=_LEFT),
        _planted_in_words(name),
    ]


def _planted_in_words(transport: str) -> list[str]:
    """In how many cuts planted faults were seen on this transport."""
    faults = measured_sensitivity().of_transport(transport)
    seen = [f"{fault.words}, {in_words(fault.rate)}" for fault in faults]
    return [f"Planted faults, as seen by the cuts: {'; '.join(seen)}."] if seen else []


def _values(row: TransportRow, varying: Sequence[str]) -> list[str]:
    figures, worth = row.figures, row.figures.worth
    said = {axis: choice for axis, choice in row.axes.items() if axis != TRANSPORT.field}
    back = figures.rollback_ms
    syncs = [latency_in_words(ms) for ms in (worth.sync_p50_ms, worth.sync_p99_ms)]
    against = f"**{row.comparison}**" if figures.is_worse else row.comparison
    if figures.acknowledged_in_outage:
        against += f"; {figures.acknowledged_in_outage} acknowledged without a NAS"
    return [
        cell_in_words(_shown(said), [axis for axis in varying if axis != TRANSPORT.field]) or "-",
        ", ".join(
            choice_in_words(choice) for choice in _shown(dict(enumerate(row.pooled))).values()
        ),
        escaped(figures.guarantee) or "-",
        _cuts_in_words(figures),
        rate_in_words(figures.harm, figures.unresolved),
        rate_in_words(figures.loss, figures.unresolved),
        rate_in_words(row.rolled_back, figures.unresolved)
        + (f", up to {duration_in_words(back.most)}" if back is not None else ""),
        rate_in_words(figures.corruption, figures.unresolved),
        "-" if row.detectable_from is None else bound_in_words(row.detectable_from),
        speed_in_words(worth.durable_per_s) or "-",
        ", ".join(words for words in syncs if words) or "-",
        latency_in_words(worth.outage_ms) or "-",
        latency_in_words(worth.reconnect_ms) or "-",
        against,
    ]


def _cuts_in_words(figures: CellFigures) -> str:
    """E.g. `30 (and 10 inconclusive)`; empty cuts are listed separately."""
    others = ((figures.unresolved, "inconclusive"), (figures.empty, "empty"))
    named = [f"{count} {what}" for count, what in others if count]
    return f"{figures.conclusive}" + (f" (and {', '.join(named)})" if named else "")


def _shown(axes: Mapping[_Key, str]) -> dict[_Key, str]:
    """Known choices as they are, unknown ones escaped for Markdown."""
    return {axis: choice if choice in CHOICES else escaped(choice) for axis, choice in axes.items()}


def _run_in_words(run: RunInfo) -> str:
    """E.g. `20261122-084359-2ba9: OpenZFS 2.3.9, kernel 6.12, tcg`, as far as `run.json` has it."""
    document = run.document
    nas = document.images.get("nas")
    packages = {} if nas is None else nas.packages
    known = (
        ("OpenZFS", packages.get("zfs", "")),
        ("kernel", packages.get("kernel", "")),
        ("machines by", document.accelerator.kind),
        ("begun", document.begun),
    )
    said = ", ".join(escaped(f"{what} {value}") for what, value in known if value)
    return f"{escaped(run.name)}: {said or 'without a description'}"


EXPORT = ExportFormat(name="roads", write=export_roads)
