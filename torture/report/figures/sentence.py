"""The answer for one cell, as a sentence."""

from __future__ import annotations

from torture.choices.matrix.axes import DEFAULTS
from torture.facts.stats.rates import high_in_words, interval_in_words
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.grid import unusual_choices
from torture.report.figures.sensitivity import Sensitivity
from torture.report.figures.wording import (
    choice_in_words,
    duration_in_words,
    either_way_in_words,
    explained_in_words,
)

_WOULD_BE_SEEN = "flush-dropped"
"""The planted fault of the sentence: a disk whose cache lies now and then is what people fear."""


def question_in_words(figures: CellFigures) -> str:
    """E.g. `Over iSCSI with sync=always, no SLOG, btrfs, the VM dies too`."""
    axes = figures.axes
    choices = [axes.get(axis, "") for axis in ("sync", "slog", "filesystem", "fate")]
    if axes.get("nfs_export") not in (None, DEFAULTS["nfs_export"]):
        choices.insert(0, axes["nfs_export"])
    words = [choice_in_words(one) for one in (*choices, *unusual_choices(axes)) if one]
    if explained := explained_in_words(axes.get("slog", "")):
        place = words.index(choice_in_words(axes["slog"]))
        words[place] += f" ({explained})"
    return f"Over {choice_in_words(axes.get('transport', '?'))} with {', '.join(words)}"


def answer_in_words(figures: CellFigures, sensitivity: Sensitivity) -> str:
    """The whole answer: `brief_in_words`, then `rest_in_words`."""
    parts = (brief_in_words(figures), rest_in_words(figures, sensitivity))
    return "; ".join(filter(None, parts)) + "."


def brief_in_words(figures: CellFigures) -> str:
    """E.g. `nothing acknowledged was lost in 42 cuts [at most 8.4 %]`; a breach of theory, too.

    The bound is that of the cell alone: the upper end of its 95 % interval.
    """
    harm = figures.harm
    if not harm.trials and figures.trials:
        return f"none of {figures.trials} cuts was conclusive"
    cuts = f"{harm.trials} cut" + ("" if harm.trials == 1 else "s")
    if not figures.trials:
        said = "no power cut was measured"
    elif not harm.events:
        said = f"nothing acknowledged was lost in {cuts} [at most {high_in_words(harm)}]"
    else:
        did = "damaged data or lost acknowledged writes"
        if not figures.corruption.events:
            did = "lost acknowledged writes"
        said = f"{harm.events} of {cuts} {did} [{interval_in_words(harm)}]"
        if figures.rollback_ms is not None:
            back = duration_in_words(figures.rollback_ms.most)
            is_all = not figures.corruption.events
            undamaged = f"; where nothing was damaged, up to {back} of writes were lost"
            said += f", up to {back} of them" if is_all else undamaged
    if figures.broken:
        said += f"; {figures.broken} worse than theory guarantees ({figures.guarantee})"
    elif figures.is_worse:
        lost = " and ".join(one.loss_in_words for one in figures.surveys)
        said += f", but {lost} lost something: worse than theory guarantees ({figures.guarantee})"
    return said


def rest_in_words(figures: CellFigures, sensitivity: Sensitivity) -> str:
    """How sure the brief answer is: inconclusive cuts, a fault's share, crash states; may be empty."""
    harm = figures.harm
    parts = []
    if harm.trials and (unresolved := either_way_in_words(harm, figures.unresolved)):
        parts.append(unresolved)
    if harm.trials and not harm.events and (seen := would_be_seen(figures, sensitivity)):
        parts.append(seen)
    parts += [survey.in_words for survey in figures.surveys]
    return "; ".join(parts)


def would_be_seen(figures: CellFigures, sensitivity: Sensitivity) -> str:
    """The share of runs with so many cuts that detect a lying cache; empty where not measured."""
    for fault in (*sensitivity.faults, *sensitivity.on_transports):
        if fault.name == _WOULD_BE_SEEN and (alike := fault.cuts_like([figures])):
            seen = fault.in_words(alike)
            return f'{seen} of such runs would have detected the planted fault "{fault.words}"'
    return ""
