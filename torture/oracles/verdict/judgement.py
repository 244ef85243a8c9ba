"""The judge's answer for a trial, that of an oracle for a part of it, and the state of the data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from torture.facts.evidence.documents import Count, Document, Measure, Number, field, replace
from torture.facts.evidence.ledger import Done, Failed, Ledger
from torture.oracles.verdict.guarantee import Verdict, answer_of, worst, worst_or_none
from torture.oracles.verdict.observations import Observation

_REASONS_MAX = 12


class Findings(Document, frozen=True, kw_only=True):
    """The state of the acknowledged data, with counts of the damaged blocks and names."""

    verdict: Verdict | None = None
    """None if no data were judged."""
    acknowledged: Count
    """Durable operations whose acknowledgement reached the client."""
    lost: Count
    """Of these, the operations whose effect is missing."""
    missing: Count = 0
    """Blocks and names that are not there."""
    torn: Count = 0
    """Blocks and names that are there in part."""
    stale: Count = 0
    """Blocks and names of an older generation."""
    foreign: Count = 0
    """Blocks and names with another's content."""
    torn_in_flight: Count = 0
    """Blocks and names that operations without an acknowledgement tore: allowed."""
    rollback_ms: Measure | None = None
    """The length of the rollback, if the rest is a past state. It runs from the first lost
    acknowledgement to the cut (to the last acknowledgement, if the client lived on)."""
    reasons: tuple[str, ...] = ()
    """In words."""
    figures: dict[str, Number] = field(default_factory=dict)
    """The load's own measurements, by names of its own."""
    observations: tuple[Observation, ...] = ()
    """The few that decide the verdict; none for an intact one. The record leaves them to its
    evidence."""


UNJUDGED = Findings(acknowledged=0, lost=0)
"""No data were judged."""
COUNTS = ("acknowledged", "lost", "missing", "torn", "stale", "foreign", "torn_in_flight")
"""The fields that are counts."""


def together(findings: Sequence[Findings]) -> Findings:
    """The fate of several loads' data: the worst verdict, with all losses counted.

    They rolled back together as far as the one that went back farthest.
    """
    if len(findings) == 1:
        return findings[0]
    verdict = worst(finding.verdict for finding in findings if finding.verdict is not None)
    back_ms = [finding.rollback_ms for finding in findings if finding.rollback_ms is not None]
    return Findings(
        verdict=verdict,
        rollback_ms=max(back_ms) if back_ms and verdict is Verdict.ROLLED_BACK else None,
        reasons=tuple(reason for finding in findings for reason in finding.reasons),
        figures={name: value for finding in findings for name, value in finding.figures.items()},
        **{name: sum(getattr(finding, name) for finding in findings) for name in COUNTS},
        observations=tuple(one for finding in findings for one in finding.observations),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PartFinding:
    """The known facts about the pool or filesystem; `summary` is for a table, `reasons` for a reader.

    `verdict`: the worst that is known; None where nothing is. `unknown`: why not more is known.
    `repaired`: a repair was run, and its result is what counts.
    """

    verdict: Verdict | None = None
    summary: str = ""
    reasons: tuple[str, ...] = ()
    repaired: bool = False
    unknown: tuple[str, ...] = ()


def all_known(*looks: Iterable[PartFinding]) -> PartFinding:
    """All findings of several looks as one: an unreadable look hides no finding of another.

    A look yields each finding as soon as it is known, and raises `UnreadableError` where it cannot go
    on. Its later findings may repeat the reasons of earlier ones. The last summary of each look counts.
    """
    found: list[PartFinding] = []
    unknown: list[str] = []
    summaries: list[str] = []
    for look in looks:
        seen: list[PartFinding] = []
        _, why = answer_of(partial(_keep_each, look, seen))
        found += seen
        unknown += (*(why for one in seen for why in one.unknown), *why)
        summaries += [one.summary for one in seen if one.summary][-1:]
    verdict = worst_or_none(one.verdict for one in found)
    return PartFinding(
        verdict=None if unknown and verdict is Verdict.INTACT else verdict,
        summary=", ".join(dict.fromkeys(summaries)),
        reasons=tuple(dict.fromkeys(reason for one in found for reason in one.reasons)),
        repaired=any(one.repaired for one in found),
        unknown=tuple(dict.fromkeys(unknown)),
    )


def _keep_each(look: Iterable[PartFinding], seen: list[PartFinding]) -> None:
    """Keep each finding at once: those before the end of a look that breaks off count, too."""
    for finding in look:
        seen.append(finding)


class Judgement(Document, frozen=True, kw_only=True):
    """The end of a trial, and its reasons.

    The verdict of a part is None if there was nothing to score (a raw disk has no filesystem).
    """

    verdict: Verdict
    """The worst of those of pool, filesystem and data."""
    pool: Verdict | None = None
    """None if there was nothing to score."""
    image: Verdict | None = None
    """That of a hypervisor's image; None if there was nothing to score."""
    filesystem: Verdict | None = None
    """None if there was nothing to score."""
    findings: Findings
    """The findings about the data. Their `reasons` are among those of the whole."""
    fsck: str = ""
    """The words for the filesystem's check."""
    pool_summary: str = ""
    """The words for the import."""
    administration: str = ""
    """The outcome of the administration: `done`, `undone`, `going on`, `in part`, `half`. It is
    empty if no NAS came back that could show it, or if there was no administration."""
    reasons: tuple[str, ...] = ()
    """In words."""

    @property
    def data(self) -> Verdict | None:
        """The verdict of the data alone."""
        return self.findings.verdict

    @property
    def acknowledged(self) -> int:
        """Durable operations whose acknowledgement reached the client."""
        return self.findings.acknowledged

    @property
    def lost(self) -> int:
        """Of these, the missing ones."""
        return self.findings.lost

    @property
    def parts(self) -> dict[str, Verdict | None]:
        """The verdict of each part; few trials have an image."""
        image = {} if self.image is None else {"image": self.image}
        return {"pool": self.pool, **image, "filesystem": self.filesystem, "data": self.data}


def conclude(
    ledger: Ledger,
    moment: int | None,
    found: Findings,
    *,
    last: int,
    cut_ms: float | None,
    otherwise: str,
    noun: str,
) -> Findings:
    """The findings with a verdict from the latest moment at which one crash explains everything.

    `last`: the place in the ledger of the last event that may not be gone. `otherwise`: the reason
    why no moment explains everything, empty if other words give it. `noun`: as for `with_words`.
    """
    if moment is None:
        return with_words(replace(found, verdict=Verdict.CORRUPTED), otherwise, ledger, noun=noun)
    if moment > last:
        return with_words(replace(found, verdict=Verdict.INTACT), "", ledger, noun=noun)
    back_ms = _rollback_ms(ledger, moment, cut_ms)
    found = replace(found, verdict=Verdict.ROLLED_BACK, rollback_ms=back_ms)
    gone = f"everything is as one crash {back_ms:.0f} ms earlier would have left it"
    return with_words(found, gone, ledger, noun=noun)


def with_words(found: Findings, first: str, ledger: Ledger, *, noun: str) -> Findings:
    """The findings with `first` above the first reasons, and with each `noun` that failed."""
    reported = [*filter(None, [first]), *found.reasons]
    more = len(reported) - _REASONS_MAX
    failures = tuple(
        f"{noun} {event.seq} failed in the client: {event.call}, errno {event.errno}"
        for event in ledger.events
        if isinstance(event, Failed)
    )
    rest = (f"and {more} more",) if more > 0 else ()
    return replace(found, reasons=(*reported[:_REASONS_MAX], *rest, *failures))


def _rollback_ms(ledger: Ledger, moment: int, cut_ms: float | None) -> float:
    """From the first event that is gone to the cut, or to a last acknowledgement that came later."""
    last_ms = max((event.t_ms for event in ledger.events if isinstance(event, Done)), default=0.0)
    return max(0.0, max(last_ms, cut_ms or 0.0) - ledger.events[moment].t_ms)
