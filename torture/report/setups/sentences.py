"""The answer for a set-up in words: the same ones on the page and in its exports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torture.choices.matrix.cells import DEFAULTS, TRANSPORT
from torture.facts.axes.sync import Sync
from torture.facts.stats.comparison import SIGNIFICANT, one_sided
from torture.facts.stats.rates import high_in_words, interval_in_words
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.trials import Remedy
from torture.report.figures.answer import Standing, checked_in_words, standing_of, tone_of
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.wording import choice_in_words, duration_in_words, explained_in_words
from torture.report.setups.answers import Answer, Setting, beside

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
_DOUBTS = {
    Standing.TOO_FEW: ", too few to call it safe",
    Standing.OPEN: ", and inconclusive ones leave it open",
    Standing.NOT_SEEN: ", though theory expects a loss",
    Standing.WORSE: ", but a walk of crash states found a loss",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SaidAnswer:
    """An answer in words."""

    answer: Answer
    event: str
    lead: str
    """The measurement that stands in place of the set-up's own; may be empty."""
    outcome: str

    @property
    def sentence(self) -> str:
        """The answer without its event."""
        return self.lead + self.outcome


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """A setting in words."""

    setting: Setting
    answers: tuple[SaidAnswer, ...]
    advice: str
    remarks: tuple[str, ...]

    @property
    def worst(self) -> SaidAnswer:
        """Of its worst measured event."""
        return self.answers[self.setting.answers.index(self.setting.worst)]


def all_said(settings: Sequence[Setting]) -> tuple[Said, ...]:
    """Every setting in words, for the page and all exports."""
    families = beside(settings)
    return tuple(
        Said(
            setting=own,
            answers=tuple(
                SaidAnswer(
                    answer=answer,
                    event=event_in_words(answer),
                    lead=lead_in_words(answer),
                    outcome=outcome_in_words(answer, is_safe=own.is_safe),
                )
                for answer in own.answers
            ),
            advice=advice_in_words(own, families[own.family]),
            remarks=remarks(own),
        )
        for own in settings
    )


def event_in_words(answer: Answer) -> str:
    """E.g. `the NAS alone loses power, the VM lives on`; of two cells of an event, the one meant."""
    happening = answer.happening
    if len(happening.changes) == 1:
        return happening.words
    return f"{choice_in_words(answer.change['event'])}, the VM lives on"


def lead_in_words(answer: Answer) -> str:
    """The words before the outcome: what was measured in place of the set-up; may be empty."""
    theory = answer.guarantee
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
    """E.g. `safe: nothing lost in 29 cuts (14,210 operations checked; at most 12 % of cuts)`.

    Safe is what the page calls so, of the set-up's own cell, in a setting that no measured event harms
    (`is_safe`).
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
    standing = standing_of(figures)
    safe = "safe: " if is_safe and answer.is_own and standing is Standing.SAFE else ""
    return f"{safe}nothing lost in {_cuts(harm.trials)} {counted}{_DOUBTS.get(standing, '')}"


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
    if setting.is_harmed or setting.may_lose:
        parts.append(_safer(setting, alike))
    else:
        parts.append(f"keep {_sync(setting)}: {_evidence(setting)}")
        standard = alike[Sync.STANDARD, setting.slog.name]
        is_needless = not (standard.is_harmed or standard.may_lose)
        if setting.sync.name == Sync.ALWAYS and standard.cuts and is_needless:
            parts.append(f"with sync=standard no cut of {standard.cuts} did, either")
    if setting.setup.lasting:
        parts.append(setting.setup.lasting)
    return "; ".join(parts)


def _safer(setting: Setting, alike: Mapping[tuple[str, str], Setting]) -> str:
    harmed = {answer.happening.name for answer in setting.answers if answer.is_harmed}
    for sync, slog, words in _ways(setting):
        other = alike.get((sync, slog))
        if other is None or not _is_better(setting, other):
            continue
        ends = "; or end the VM before its NAS is back" if harmed == {"nas"} else ""
        if setting.on.name == "extent":
            ends = "; a zvol instead helps by itself only where the VM dies with its NAS"
        return f"{words}: {_evidence(other)}{ends}"
    if not setting.may_lose:
        cuts = f"{setting.harm.events} of {_cuts(setting.cuts)}"
        why = "although by theory none does, and no measured setting prevents it"
        return f"keep {_sync(setting)}: {cuts} lost something, {why}"
    return "no setting of this set-up is better, as far as was measured: keep backups"


def _sync(setting: Setting) -> str:
    return f"sync={setting.sync.name}"


def _evidence(setting: Setting) -> str:
    """Of a setting that loses nothing."""
    if not setting.cuts:
        return f"by theory nothing is lost; {_NOT_MEASURED}"
    return f"no cut of {setting.cuts} lost anything, in any event"


def _is_better(setting: Setting, other: Setting) -> bool:
    """Whether theory or enough cuts say so; a rare loss against theory may be missing by chance."""
    if other.is_harmed or other.may_lose:
        return False
    if setting.may_lose:
        return True
    return other.cuts > 0 and one_sided(other.harm, setting.harm).p < SIGNIFICANT


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
