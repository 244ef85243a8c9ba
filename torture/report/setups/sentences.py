"""The answer for a set-up in words: the same ones on the page and in its exports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torture.choices.matrix.cells import DEFAULTS, TRANSPORT
from torture.facts.axes.sync import Sync
from torture.facts.stats.comparison import SIGNIFICANT, one_sided
from torture.facts.stats.rates import high_in_words, interval_in_words
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.trials import Remedy
from torture.report.figures.answer import CUTS_TO_DETECT, checked_in_words, tone_of
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.wording import choice_in_words, duration_in_words, explained_in_words
from torture.report.setups.answers import Answer, Setting, owed

_SAFE_LOGS = ("plp", "mirror")
_THEORY = {
    Guarantee.SAFE: "by theory nothing confirmed is lost",
    Guarantee.MAY_GO_OFFLINE: "by theory nothing confirmed is lost, but the disk may go offline",
    Guarantee.ROLLS_BACK: "by theory the disk may be a few seconds old",
    Guarantee.LOSES: "by theory confirmed writes may be lost or damaged",
    Guarantee.MAY_LOSE_POOL: "by theory the pool may be lost",
}
_REMEDIES = {
    Remedy.WAIT: "waiting",
    Remedy.LOG_IN: "unmounting, attaching the disk anew and mounting it",
    Remedy.RESTART: "a restart of the client",
    Remedy.REPAIR: "a repair by fsck",
}
_NOT_MEASURED = "not measured"


def event_in_words(answer: Answer) -> str:
    """E.g. `the NAS alone loses power, the VM lives on`; of two cells of an event, the one meant."""
    happening = answer.happening
    if len(happening.changes) == 1:
        return happening.words
    return f"{choice_in_words(answer.change['event'])}, the VM lives on"


def lead_in_words(answer: Answer) -> str:
    """The words before the outcome: what was measured in place of the set-up; may be empty."""
    theory = owed(answer)
    said = _THEORY[theory] if theory is not None else "the suite has no such trial"
    figures = answer.figures
    if figures is None:
        return f"{_NOT_MEASURED}; {said}"
    if not answer.differing:
        return ""
    differing = ", ".join(
        _other(axis, figures.axes.get(axis) or DEFAULTS.get(axis, "")) for axis in answer.differing
    )
    if answer.is_own:
        return f"measured with {differing}: "
    return f"{_NOT_MEASURED}; {said}. The nearest that was measured has {differing}: "


def _other(axis: str, choice: str) -> str:
    """The choice in words; a transport by its server, since several have the same protocol."""
    words = choice_in_words(choice)
    server, _, _ = explained_in_words(choice).partition(";")
    is_named = axis == TRANSPORT.field and server and not server.startswith("the same")
    return f"{words} by {server}" if is_named else words


def outcome_in_words(answer: Answer, *, is_safe: bool) -> str:
    """E.g. `safe: nothing lost in 29 cuts (14,210 operations checked; at most 12 %)`.

    Only a setting that no measured event harms is called safe (`is_safe`).
    """
    figures = answer.figures
    if figures is None:
        return ""
    parts = []
    harm = figures.harm
    if harm.events:
        parts.append(_loss_in_words(figures))
    if answer.offline:
        dead = f"the disk is dead until someone acts, in {answer.offline} of {_cuts(harm.trials)}"
        parts.append(dead if parts else f"{dead}; nothing confirmed is lost")
    if parts:
        return "; ".join(parts)
    counted = f"({checked_in_words(figures)}; at most {high_in_words(harm)} of cuts)"
    if harm.trials < CUTS_TO_DETECT:
        return f"nothing lost in {_cuts(harm.trials)} {counted}, too few to call it safe"
    safe = "safe: " if is_safe else ""
    return f"{safe}nothing lost in {_cuts(harm.trials)} {counted}"


def _loss_in_words(figures: CellFigures) -> str:
    harm, back = figures.harm, ""
    if figures.rollback_ms is not None:
        back = f"up to {duration_in_words(figures.rollback_ms.most)} of "
    counted = f"in {harm.events} of {_cuts(harm.trials)} [{interval_in_words(harm)}]"
    if not figures.corruption.events:
        return f"you lose {back}what was confirmed, {counted}"
    return f"you lose confirmed writes, or they are damaged, {counted}"


def _cuts(count: int) -> str:
    return f"{count} cut" + ("" if count == 1 else "s")


def tone(answer: Answer) -> str:
    """The colour of an outcome."""
    if answer.figures is None:
        return "unknown"
    return "back" if answer.offline and not answer.is_harmed else tone_of(answer.figures)


def return_in_words(answer: Answer, remedies: Mapping[str, Mapping[str, int]]) -> str:
    """The remedy after this event; empty where nothing was lost or dead.

    `remedies` has the counted remedies of each cell.
    """
    figures = answer.figures
    if figures is None:
        return ""
    seen = remedies.get(figures.cell, {})
    parts = [f"{_REMEDIES[Remedy(name)]} ({_cuts(count)})" for name, count in seen.items()]
    if answer.offline and not parts:
        parts.append("a new mount, or a restart of the VM")
    if answer.is_harmed:
        parts.append(_restored(figures))
    return "; ".join(parts)


def _restored(figures: CellFigures) -> str:
    gone = {verdict for verdict, count in figures.verdicts.items() if count}
    if gone & {Verdict.POOL_LOST, Verdict.SPLIT_BRAIN}:
        return "only a backup, where the pool is lost"
    if gone & {Verdict.UNREPAIRABLE, Verdict.UNAVAILABLE}:
        return "only a backup, where fsck fails"
    if figures.corruption.events:
        return "nothing brings the lost writes back; fsck only makes the filesystem consistent"
    return "nothing brings the lost writes back; the disk is consistent, and older"


def advice_in_words(setting: Setting, alike: Mapping[tuple[str, str], Setting]) -> str:
    """The best setting, by the measured ones of the same set-up, NAS and pool.

    `alike` has them by sync and SLOG.
    """
    parts = []
    if setting.is_harmed:
        parts.append(_safer(setting, alike))
    elif setting.cuts == 0:
        parts.append(f"{_NOT_MEASURED}; see the theory of each event")
    else:
        parts.append(f"keep {_sync(setting)}: no cut of {setting.cuts} lost anything in any event")
        standard = alike[Sync.STANDARD, setting.slog.name]
        if setting.sync.name == Sync.ALWAYS and standard.cuts and not standard.is_harmed:
            parts.append(f"with sync=standard no cut of {standard.cuts} did, either")
    if setting.setup.lasting:
        parts.append(setting.setup.lasting)
    return "; ".join(parts)


def _safer(setting: Setting, alike: Mapping[tuple[str, str], Setting]) -> str:
    harmed = {answer.happening.name for answer in setting.answers if answer.is_harmed}
    for sync, slog, words in _ways(setting):
        other = alike.get((sync, slog))
        if other is None or other.is_harmed or not _is_better(setting, other):
            continue
        evidence = f"no cut of {other.cuts} lost anything then, in any event"
        ends = "; or end the VM before its NAS is back" if harmed == {"nas"} else ""
        if setting.on.name == "extent":
            ends = "; a zvol instead helps by itself only where the VM dies with its NAS"
        return f"{words}: {evidence}{ends}"
    if not _loses_by_theory(setting):
        cuts = f"{setting.harm.events} of {_cuts(setting.cuts)}"
        why = "although by theory none does, and no measured setting prevents it"
        return f"keep {_sync(setting)}: {cuts} lost something, {why}"
    return "no measured setting of this set-up is better: keep backups"


def _sync(setting: Setting) -> str:
    return f"sync={setting.sync.name}"


def _loses_by_theory(setting: Setting) -> bool:
    """Whether theory expects a loss that was seen."""
    kept = (Guarantee.SAFE, Guarantee.MAY_GO_OFFLINE)
    return any(answer.is_harmed and owed(answer) not in kept for answer in setting.answers)


def _is_better(setting: Setting, other: Setting) -> bool:
    """Whether theory or enough cuts say so; a rare loss against theory may be missing by chance."""
    if not other.cuts:
        return False
    return _loses_by_theory(setting) or one_sided(other.harm, setting.harm).p < SIGNIFICANT


def _ways(setting: Setting) -> Sequence[tuple[str, str, str]]:
    """Settings to try, the smallest change first: sync, SLOG, words."""
    ways: list[tuple[str, str, str]] = []
    sync, slog = setting.sync.name, setting.slog.name
    if sync == Sync.DISABLED:
        ways.append((Sync.STANDARD, slog, "set sync=standard"))
    if sync != Sync.ALWAYS:
        ways.append((Sync.ALWAYS, slog, "set sync=always"))
    elif slog not in _SAFE_LOGS:
        better = "take a SLOG with power-loss protection, or mirror it"
        ways += [(sync, other, better) for other in _SAFE_LOGS]
        ways.append((sync, "noslog", "remove the SLOG"))
    if sync != Sync.ALWAYS and slog not in _SAFE_LOGS:
        both = "set sync=always, and take a SLOG with power-loss protection, or mirror it"
        ways += [(Sync.ALWAYS, other, both) for other in _SAFE_LOGS]
    return ways


def remarks(setting: Setting) -> tuple[str, ...]:
    """How the set-up's product does it, and in what the measurement differs."""
    setup = setting.setup
    said = [f"The product's own way: {setup.source}."]
    if setup.is_model:
        said[0] = f"A model of {setup.group} was measured, not its own code: {setup.source}."
    differs = "; ".join(filter(None, (setup.differs, setting.on.differs)))
    return (*said, f"Here it differs: {differs}.") if differs else tuple(said)
