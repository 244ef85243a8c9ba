"""Whether an experiment was seen where it is, by which check and in how many cuts, and not elsewhere.

Whether a cell that must lose loses: else its setting may not be in effect.

Pure, over plain records. An intact cut says something only if acknowledged operations were at risk.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from torture.choices.experiments.protocol import Experiment, Fault, KnownBug, Side, Sight
from torture.choices.matrix.cell_terms import is_log_on_data_disks, must_lose
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import GONE, AuditDocument
from torture.facts.stats.rates import Rate, interval_in_words, rate_of
from torture.oracles.verdict.guarantee import Guarantee, Verdict, is_too_safe
from torture.records.record.trials import TrialRecord

CONFIDENCE = 0.95
_NEARLY_ALWAYS = 0.99


@dataclass(frozen=True, kw_only=True, slots=True)
class Detection:
    """The results of an experiment's trials on one of its sides."""

    cell: str
    zfs: str
    """The version that its NAS ran."""
    cuts: int
    """The trials that count. Inconclusive ones of a planted fault are among those that did not see
    it. Of a known bug they count where a check found something."""
    detected: int
    """Of these, the trials that show it."""
    by: dict[Sight, int]
    """For each check, the number of trials in which it found something; with a sign, of those that
    show it."""
    otherwise: int
    """The number of others in which a check found something: another thing is wrong there."""
    lost: int
    """The number of trials that lost something acknowledged."""
    inconclusive: int
    errors: tuple[str, ...]
    """The causes of the inconclusive trials, each once."""
    confirmed: int
    """The number of trials in which a cut of its own confirmed a finding of the audit."""
    confirmed_lost: int
    """Of these, the trials that then lost something: a check other than the audit found something."""
    without_risk: int
    """The number of further cuts that saw nothing, as the fault had nothing acknowledged to take."""
    predicted_by: Sight
    predicted_cuts: int

    @property
    def rate(self) -> Rate:
        """The rate of cuts that show it, with its interval."""
        return rate_of(self.detected, self.cuts)

    @property
    def is_as_predicted(self) -> bool:
        """Whether the predicted check saw it, and at least the predicted number of cuts can be needed."""
        return self.by[self.predicted_by] > 0 and self.rate.high >= share_for(self.predicted_cuts)

    @property
    def rate_in_words(self) -> str:
        """E.g. `5 of 5 [47-100 %]`."""
        return f"{self.detected} of {self.cuts} [{interval_in_words(self.rate)}]"

    @property
    def seen_in_words(self) -> str:
        """E.g. `audit 6, data 4`."""
        said = [f"{sight} {self.by[sight]}" for sight in Sight if self.by[sight]]
        if self.otherwise:
            said.append(f"something else {self.otherwise}")
        return ", ".join(said) or "nothing"

    def as_json(self) -> dict[str, Any]:
        """The counts as plain data, with the interval."""
        counts = {one.name: getattr(self, one.name) for one in fields(self)}
        return counts | {"low": self.rate.low, "high": self.rate.high}


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """An experiment's side that must show it, and the control; theory is that of a planted fault."""

    experiment: Experiment
    affected: Detection
    cleared: Detection | None = None

    @property
    def is_clear(self) -> bool:
        """Whether cuts of the control have results, and none of them shows it."""
        return self.cleared is None or (self.cleared.cuts > 0 and self.cleared.detected == 0)

    @property
    def objection(self) -> str:
        """Why the outcome is not as predicted; empty where it is."""
        affected, cleared = self.affected, self.cleared
        if not affected.detected:
            return f"not seen in {affected.cuts} cuts; {affected.errors}"
        if not affected.is_as_predicted:
            return f"seen by {affected.seen_in_words}, {affected.rate_in_words}"
        if cleared is None:
            return ""
        if not self.is_clear:
            return f"{cleared.rate_in_words}, {cleared.seen_in_words}; {cleared.errors}"
        return f"cleared of this, and a finding: {cleared.seen_in_words}" * bool(cleared.otherwise)

    @property
    def share_of_silence(self) -> float:
        """The probability that the control's cuts would have shown it, if it were there.

        By the lower bound of the affected side's rate.
        """
        silent = 0 if self.cleared is None else self.cleared.cuts
        return float(1 - (1 - self.affected.rate.low) ** silent)

    @property
    def silence_in_words(self) -> str:
        """E.g. `at least 97 %`, rounded down."""
        if self.share_of_silence > _NEARLY_ALWAYS:
            return f"more than {_NEARLY_ALWAYS * 100:g} %"
        return f"at least {int(self.share_of_silence * 100)} %"

    def as_json(self) -> dict[str, Any]:
        """The outcome as plain data, with the intervals."""
        own = self.experiment
        plain = {"name": own.name, "words": own.words, **self.affected.as_json()}
        if isinstance(own, Fault):
            plain |= {"layer": own.layer, "bound_to": sorted(own.bound_to)}
            plain["amounts_to"] = dict(own.amounts_to)
        else:
            plain["source"] = own.source
        if self.cleared is not None:
            plain["cleared"] = self.cleared.as_json()
            plain["would_have_been_seen"] = self.share_of_silence
        return plain


def detect(
    experiment: Experiment, records: Sequence[TrialRecord], side: Side | None = None
) -> Detection:
    """Count the trials of a side, the affected one unless another is named.

    A known bug is shown by any finding with its sign. A planted fault is shown where the guarantee of
    its cell broke, or a setting was not in effect. An empty cut shows only a fault that empties cuts:
    a load that stalls.

    Raises `ValueError` for a disturbance, which has nothing to see.
    """
    if experiment.seen_by is None:
        raise ValueError(f"{experiment.name} is harmless")
    side = side or experiment.affected
    judged = [(seen_by(record), record) for record in records]
    if isinstance(experiment, Fault):
        judged = [one for one in judged if one[0] or is_lie_at_risk(one[1]) is not False]
        cuts = len(judged)
    else:
        cuts = sum(bool(seen) or record.is_conclusive for seen, record in judged)
    shown = [seen for seen, record in judged if _shows(experiment, seen, record)]
    counted = shown if isinstance(experiment, KnownBug) else [seen for seen, _ in judged]
    confirmed = [seen for seen, record in judged if record.cut.confirmed.is_made]
    versions = sorted({record.zfs for record in records if record.zfs}) or [side.version]
    errors = (record.error for record in records if record.error and not record.is_conclusive)
    return Detection(
        cell=side.chosen_cell.name,
        zfs=", ".join(versions),
        cuts=cuts,
        detected=len(shown),
        by={sight: sum(sight in seen for seen in counted) for sight in Sight},
        otherwise=sum(bool(seen) for seen, _ in judged) - sum(map(bool, counted)),
        lost=sum(record.is_loss for _, record in judged),
        inconclusive=sum(not record.is_conclusive for _, record in judged),
        errors=tuple(dict.fromkeys(error.splitlines()[0] for error in errors)),
        confirmed=len(confirmed),
        confirmed_lost=sum(bool(seen - {Sight.AUDIT}) for seen in confirmed),
        without_risk=len(records) - len(judged),
        predicted_by=experiment.seen_by,
        predicted_cuts=experiment.cuts,
    )


def _shows(experiment: Experiment, seen: frozenset[Sight], record: TrialRecord) -> bool:
    if isinstance(experiment, Fault):
        is_emptied = experiment.seen_by is Sight.EMPTY and Sight.EMPTY in seen
        broke = record.breaks(Guarantee(record.guarantee))
        return broke or Sight.SETTINGS in seen or is_emptied
    return bool(seen) and any(experiment.sign in reason for reason in ("", *record.reasons))


def seen_by(record: TrialRecord) -> frozenset[Sight]:
    """The checks that found something against a trial."""
    said = {Sight.AUDIT} if record.cut.audited.is_broken else set()
    said |= {
        sight
        for sight in (Sight.POOL, Sight.FILESYSTEM, Sight.DATA)
        if record.judgement.parts[sight] not in (None, Verdict.INTACT)
    }
    if record.absence.unfounded:
        said.add(Sight.OUTAGE)
    if any(part.shows_loss for part in record.parts):
        said.add(Sight.REPLAY)
    if record.cut.not_in_effect:
        said.add(Sight.SETTINGS)
    if record.cut.is_empty and record.cut.is_stalled and not record.is_conclusive:
        said.add(Sight.EMPTY)
    return frozenset(said)


def cuts_for(share: float) -> int | None:
    """The number of cuts for 95 % confidence, if a cut sees it with this share; None: never."""
    if share <= 0:
        return None
    return 1 if share >= 1 else math.ceil(math.log(1 - CONFIDENCE) / math.log(1 - share))


def cuts_in_words(rate: Rate) -> str:
    """The number of cuts for 95 % confidence, if they see it at this rate: e.g. `1-9`."""
    least, most = cuts_for(rate.high), cuts_for(rate.low)
    return f"{least}-{most}" if most is not None else f"{least} or more"


def share_for(cuts: int) -> float:
    """The share of cuts that must see something for this number of cuts to suffice."""
    return float(1 - (1 - CONFIDENCE) ** (1 / cuts))


_LATELY_MS = 1_000
"""Older audits counted only the operations acknowledged so shortly before the cut."""


def is_at_risk(record: TrialRecord) -> bool | None:
    """Whether theory says that this cut took acknowledged operations, more likely than not.

    None where the cell need not lose, and where the record does not say it.
    """
    cell = _cell_of(record)
    if cell is None or not record.is_conclusive or record.cut.confirmed.is_made:
        return None
    return _has_something_in(record.cut.audit, window_ms=_window_ms(record.cut.view, cell))


def is_lie_at_risk(record: TrialRecord) -> bool | None:
    """Whether a log whose disks lie had an acknowledged operation to lose at the cut.

    None where a disk of the log does not lie, and where the record does not say it. An operation's
    names become durable later than its data, up to the acknowledgement: `logged_ms` is of the data.
    """
    try:
        disks = _log_disks(record.cut.view, Cell.parse(record.cell))
    except ValueError:
        return None
    lies_ms = [disk["lying_ms"] for disk in disks if "lying_ms" in disk]
    audit = record.cut.audit
    if not lies_ms or len(lies_ms) < len(disks) or audit.uncommitted is None:
        return None
    is_quiet = audit.acknowledged_lately == 0 and max(lies_ms) < _LATELY_MS
    if audit.uncommitted == 0 or is_quiet:
        return False
    return True if _has_something_in(audit, window_ms=min(lies_ms)) else None


def _cell_of(record: TrialRecord) -> Cell | None:
    try:
        cell = Cell.parse(record.cell)
    except ValueError:
        return None
    return cell if must_lose(cell) else None


def _window_ms(view: Mapping[str, Any], cell: Cell) -> float:
    """A cut takes only logged operations that became durable so shortly before it."""
    bounds = (
        min(disk.get("lying_ms", math.inf), disk.get("held_ms", math.inf))
        for disk in _log_disks(view, cell)
    )
    return min(bounds, default=math.inf)


def _log_disks(view: Mapping[str, Any], cell: Cell) -> list[Mapping[str, Any]]:
    """The states of the disks with the intent log, without those that are gone."""
    place = "data" if is_log_on_data_disks(cell) else "slog"
    disks: Mapping[str, Mapping[str, Any]] = view.get("disks", {})
    return [
        disk
        for serial, disk in disks.items()
        if serial.startswith(place) and disk.get("policy") != GONE
    ]


def _has_something_in(audit: AuditDocument, *, window_ms: float) -> bool | None:
    if audit.uncommitted is not None:
        if not audit.uncommitted or window_ms == math.inf:
            return audit.uncommitted > 0
        return None if audit.logged_ms is None else audit.logged_ms < window_ms
    since_ms = audit.uncommitted_ms
    # unknown where groups were written and none was committed
    is_wide = since_ms >= _LATELY_MS if since_ms is not None else bool(audit.txgs)
    if audit.acknowledged_lately is None or not is_wide or window_ms < _LATELY_MS:
        return None
    return audit.acknowledged_lately > 0


def too_safe_in_words(records: Iterable[TrialRecord]) -> str:
    """The sentence about the live trials of one cell that lose less than theory says; empty if none."""
    risky = [record for record in records if is_at_risk(record)]
    lost = sum(record.is_loss for record in risky)
    return said_of(risky[0].cell, at_risk=len(risky), lost=lost) if risky else ""


def said_of(cell: str, *, at_risk: int, lost: int) -> str:
    """The sentence about a cell with so many cuts at risk; empty if theory agrees."""
    if not is_too_safe(lost=lost, at_risk=at_risk):
        return ""
    return (
        f"{cell} loses less than theory says: none of {at_risk} cuts with acknowledged operations at "
        "risk lost one. Is the setting in effect?"
    )
