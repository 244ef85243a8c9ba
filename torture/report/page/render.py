"""The page: one file that needs no network, light or dark, on a phone and in print.

Evidence is hostile text: jinja2 escapes all of it. The page's policy allows only the page's own script,
and no request at all.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from torture.choices.administration.protocol import Outcome
from torture.choices.matrix.cells import IMAGE, TRANSPORT
from torture.facts.evidence.folder import RECORDINGS
from torture.facts.stats.rates import (
    bound_in_words,
    counts_in_words,
    high_in_words,
    in_words,
    interval_in_words,
)
from torture.records.record.run_document import RunDocument
from torture.report.figures.answer import (
    CUTS_TO_DETECT,
    NOT_INDEPENDENT,
    Theory,
    brief_in_words,
    configurations,
    fastest_safe,
    question_in_words,
    rest_in_words,
    theory_of,
    tone_of,
)
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.outages import HEAD as OUTAGE_COLUMNS
from torture.report.figures.outages import outage_cells
from torture.report.figures.pairs import axes_rank, compared, grid_of, neighbours
from torture.report.figures.sensitivity import measured_sensitivity
from torture.report.figures.tables import Fallen, administered_cuts, fallen_cuts, kept_by_disks
from torture.report.figures.wording import (
    AXIS_TITLES,
    audit_in_words,
    cell_in_words,
    choice_in_words,
    common_in_words,
    defaults_in_words,
    difference_in_words,
    duration_in_words,
    either_way_in_words,
    explained_in_words,
    latency_in_words,
    speed_in_words,
    varying_axes,
)
from torture.report.page import charts
from torture.report.page.evidence_excerpts import Timeline, ToolExcerpt, timeline_of, words_of
from torture.report.page.own_setup import own_setup
from torture.report.page.promises import advertised_values, known_findings
from torture.report.page.sections import Shown, sections
from torture.report.page.story import Incident, story_of
from torture.report.page.vega import PHONE, TEMPLATES, WIDE, Frame
from torture.report.reading.loading import Case
from torture.report.reading.runs import folder_in_words
from torture.report.reading.store import Store
from torture.report.setups import controls

CASES_MAX = 24
LOSSES_MAX = 500
_CHOICES_MAX = 12
_PAIRS_MAX = 150
_PICTURED_MAX = 100
"""A picture with more rows is longer than anyone reads, and the table has the same numbers."""
_CHECKERS = ("btrfs-progs", "e2fsprogs", "xfsprogs")
_PLAIN = re.compile(r"[a-z0-9.-]{1,120}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownCase:
    """A case, its timeline, its user's view, and excerpts of the tools' output."""

    case: Case
    timeline: Timeline
    story: tuple[Incident, ...]
    words: tuple[ToolExcerpt, ...]

    @property
    def has_recordings(self) -> bool:
        """Whether its disks can be recovered again."""
        return self.case.evidence is not None and (self.case.evidence / RECORDINGS).exists()


def render_page(store: Store) -> str:
    """The whole page of a store."""
    cells = cell_figures(store.tallies())
    axes = [figures.axes for figures in cells]
    varying = varying_axes(axes)
    ranked = sorted(cells, key=lambda figures: axes_rank(figures.axes))
    sensitivity = measured_sensitivity()
    losses_count, losses = store.losses(most=LOSSES_MAX)
    fastest = fastest_safe(cells)
    numbers = {figures.cell: place for place, figures in enumerate(ranked, start=1)}
    by_name = {figures.cell: figures for figures in cells}
    pairs = compared(neighbours(cells))
    shown = Shown(store=store, cells=ranked, sensitivity=sensitivity, numbers=numbers)
    fallen = fallen_cuts(store.sql)
    script, style = _text("page.js") + _text("own.js"), _text("style.css")
    values = [(own, own.values(shown)) for own in sections()]
    priced = [price for own, found in values for price in own.prices(found)]
    return _environment().get_template("page.html.j2").render(
        store=store,
        varying=varying,
        numbers=numbers,
        cells=ranked,
        common=common_in_words(axes, varying),
        usual=defaults_in_words(varying),
        grid=grid_of(cells),
        measured=_measured(store, len(cells)),
        not_measured=_not_measured(axes),
        planted=sensitivity.sentence,
        cuts_to_detect=CUTS_TO_DETECT,
        not_independent=NOT_INDEPENDENT,
        sections=[(own.template, found) for own, found in values],
        own=own_setup(store, cells, priced),
        controls=controls(),
        as_of=_as_of(store),
        choices=fastest[:_CHOICES_MAX],
        choices_more=max(0, len(fastest) - _CHOICES_MAX),
        is_emulated=_is_emulated(store),
        findings=known_findings(),
        advertised=advertised_values(store.sql),
        fallen=fallen,
        kept=kept_by_disks(store.sql),
        administered=administered_cuts(store.sql),
        outages=outage_cells(store.sql, ranked),
        outage_columns=OUTAGE_COLUMNS,
        losses=losses,
        losses_count=losses_count,
        audited=audit_in_words(store.audited()),
        sensitivity=sensitivity,
        safe=[figures for figures in cells if theory_of(figures) is Theory.SAFE],
        pictures=_pictures(store, ranked, varying, numbers, fallen),
        load_figures=[(by_name[figure.cell], figure) for figure in store.load_figures()],
        pairs=[pair for pair in pairs if pair.comparison.difference][:_PAIRS_MAX],
        pairs_compared=len(pairs),
        cases=[_shown(case) for case in store.cases(most=CASES_MAX)],
        versions=_versions(store),
        script=Markup(script),
        style=Markup(style),
        script_hash=_hash(script),
    )  # fmt: skip


@pass_context
def _configuration(context: Context, axes: Mapping[str, str]) -> str:
    return cell_in_words(axes, context["varying"])


@cache
def _environment() -> Environment:
    """One environment for all pages: compiling its templates takes as long as drawing a picture."""
    environment = Environment(
        loader=FileSystemLoader([TEMPLATES, *(own.folder for own in sections())]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "words": _configuration,
        "question": question_in_words,
        "brief": brief_in_words,
        "rest": lambda figures: rest_in_words(figures, measured_sensitivity()),
        "explained": explained_in_words,
        "folder": folder_in_words,
        "choice": choice_in_words,
        "duration": duration_in_words,
        "latency": latency_in_words,
        "speed": speed_in_words,
        "difference": difference_in_words,
        "percent": bound_in_words,
        "high": high_in_words,
        "rate": in_words,
        "counts": counts_in_words,
        "either_way": either_way_in_words,
        "interval": interval_in_words,
        "tone": tone_of,
        "anchor": anchor,
    }
    for section in sections():
        environment.filters |= section.filters
    environment.globals |= {"titles": AXIS_TITLES, "outcomes": tuple(Outcome)}
    return environment


def anchor(name: str) -> str:
    """A name as an HTML id, or as a part of an attribute's name: unchanged if plain, otherwise a hash.

    Escaping is not enough: a space in an attribute's name begins another attribute.
    """
    return name if _PLAIN.fullmatch(name) else hashlib.sha256(name.encode()).hexdigest()[:16]


def _pictures(
    store: Store,
    cells: Sequence[CellFigures],
    varying: Sequence[str],
    numbers: dict[str, int],
    fallen: Sequence[Fallen],
) -> dict[str, tuple[Markup, Markup]]:
    """Each picture for a wide page and for a phone; pictures without content are left out."""

    def long(figures: CellFigures) -> str:
        return f"{cell_in_words(figures.axes, varying)} ({numbers[figures.cell]})"

    def short(figures: CellFigures) -> str:
        choices = [figures.axes[axis] for axis in varying if figures.axes.get(axis)]
        return f"{' '.join(choices)} ({numbers[figures.cell]})"

    bins = store.rollbacks()
    back = {rollback.cell for rollback in bins}
    rolled = [figures for figures in cells if figures.cell in back]

    def both(draw: Callable[[charts.Named, Frame], str]) -> tuple[Markup, Markup]:
        return Markup(draw(long, WIDE)), Markup(draw(short, PHONE))

    pictures = {}
    is_short = len(cells) <= _PICTURED_MAX
    if cells and is_short:
        pictures["verdicts"] = both(lambda named, frame: charts.verdict_shares(cells, named, frame))
    if fallen:
        pictures["phases"] = both(lambda _, frame: charts.phases_of_cuts(fallen, frame))
    if is_short and any(figures.acknowledged_per_s for figures in cells):
        pictures["speed"] = both(lambda _, frame: charts.speed_against_loss(cells, numbers, frame))
    if bins and is_short:
        pictures["rollbacks"] = both(
            lambda named, frame: charts.rollback_times(
                bins, {figures.cell: named(figures) for figures in rolled}, frame
            )
        )
    return pictures


def _shown(case: Case) -> ShownCase:
    return ShownCase(
        case=case,
        timeline=timeline_of(case.record, case.evidence),
        story=() if case.evidence is None else story_of(case.record, case.evidence),
        words=() if case.evidence is None else words_of(case.evidence),
    )


def _is_emulated(store: Store) -> bool:
    return any(run.document.accelerator.kind == "tcg" for run in store.runs)


def _measured(store: Store, cells: int) -> str:
    """E.g. `320 power cuts of 32 configurations; OpenZFS 2.3.9; Linux 6.12; emulated machines`."""
    days = sorted(run.document.begun[:10] for run in store.runs if run.document.begun)
    cuts = f"{store.trials:,} power cut" + ("" if store.trials == 1 else "s")
    facts = (
        f"{cuts} of {configurations(cells)}",
        f"OpenZFS {', '.join(store.zfs_versions) or '?'}",
        f"Linux {', '.join(store.kernels) or '?'}",
        f"the hypervisor's QEMU {', '.join(store.qemus)}" if store.qemus else "",
        " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
        "emulated machines" if _is_emulated(store) else "",
        "rates have 95 % intervals",
    )
    return "; ".join(filter(None, facts)) + "."


def _as_of(store: Store) -> str:
    """E.g. `As of 2026-11-30, OpenZFS 2.3.9.`; empty without a date."""
    days = [run.document.begun[:10] for run in store.runs if run.document.begun]
    return f"As of {max(days)}, OpenZFS {', '.join(store.zfs_versions) or '?'}." if days else ""


def _not_measured(cells: Sequence[Mapping[str, str]]) -> str:
    """The products that readers ask for, and the way of a hypervisor's own NFS client."""
    transports = {axes.get(TRANSPORT.field, "") for axes in cells}
    traits = [choice.value.traits for choice in TRANSPORT.choices if choice.name in transports]
    said = "The NAS is a Debian with OpenZFS; TrueNAS, Proxmox VE and other products were not measured."
    if any(name.startswith("scst") for name in transports):
        said += " SCST, TrueNAS's iSCSI target, was measured on that Debian."
    has_mount = any(axes.get(IMAGE.field, "") not in ("", IMAGE.default) for axes in cells)
    if not has_mount and any(own.is_nfs and not own.gives_files for own in traits):
        said += " A VM's image over NFS was measured through libnfs only, not on a mount."
    return said


def _versions(store: Store) -> list[dict[str, Any]]:
    """The software and host of each run, as far as its `run.json` has them."""
    return [{"run": run} | _ran_on(run.document) for run in store.runs]


def _ran_on(document: RunDocument) -> dict[str, str]:
    nas, client = (
        image.packages if (image := document.images.get(name)) is not None else {}
        for name in ("nas", "client")
    )
    host = document.host
    checkers = [f"{name} {client[name]}" for name in _CHECKERS if name in client]
    return {
        "zfs": nas.get("zfs", "?"),
        "kernel": nas.get("kernel", "?"),
        "checkers": ", ".join(checkers) or "?",
        "host": f"{host.cores or '?'} cores, Linux {host.kernel or '?'}",
        "accelerator": document.accelerator.kind or "?",
    }


def _hash(text: str) -> str:
    """The hash of a script or style, as the page's policy allows it (CSP level 3, section 2.3.1)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _text(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
