"""The oracles' conclusion from the moment that explains every observation, and its words."""

from __future__ import annotations

from dataclasses import replace

from torture.facts.evidence.ledger import Done, Failed, Ledger
from torture.oracles.verdict.judgement import Findings
from torture.oracles.verdict.verdicts import Verdict

_REASONS_MAX = 12


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
