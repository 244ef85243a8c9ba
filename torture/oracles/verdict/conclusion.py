"""The oracles' conclusion from the moment that explains every observation, and its words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torture.facts.evidence.ledger import Done, Failed, Ledger
from torture.oracles.verdict.verdicts import Verdict

_REASONS_MAX = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Conclusion:
    """A verdict, the length of its rollback if there is one, and its first words."""

    verdict: Verdict
    rollback_ms: float | None = None
    first_of_all: tuple[str, ...] = ()


def conclude(
    ledger: Ledger, moment: int | None, *, last: int, cut_ms: float | None, otherwise: str
) -> Conclusion:
    """The conclusion from the latest moment at which one crash explains everything.

    `last`: the place in the ledger of the last event that may not be gone. `otherwise`: the reason
    why no moment explains everything, empty if other words give it.
    """
    if moment is None:
        first_of_all = (otherwise,) if otherwise else ()
        return Conclusion(verdict=Verdict.CORRUPTED, first_of_all=first_of_all)
    if moment > last:
        return Conclusion(verdict=Verdict.INTACT)
    back_ms = _rollback_ms(ledger, moment, cut_ms)
    gone = f"everything is as one crash {back_ms:.0f} ms earlier would have left it"
    return Conclusion(verdict=Verdict.ROLLED_BACK, rollback_ms=back_ms, first_of_all=(gone,))


def reasons_in_words(
    conclusion: Conclusion, reasons: Sequence[str], failures: Iterable[Failed], *, noun: str
) -> tuple[str, ...]:
    """The first reasons, the number of others, and every `noun` that failed in the client."""
    reported = [*conclusion.first_of_all, *reasons]
    more = len(reported) - _REASONS_MAX
    return (
        *reported[:_REASONS_MAX],
        *([f"and {more} more"] if more > 0 else []),
        *(
            f"{noun} {failure.seq} failed in the client: {failure.call}, errno {failure.errno}"
            for failure in failures
        ),
    )


def _rollback_ms(ledger: Ledger, moment: int, cut_ms: float | None) -> float:
    """From the first event that is gone to the cut, or to a last acknowledgement that came later."""
    last_ms = max((event.t_ms for event in ledger.events if isinstance(event, Done)), default=0.0)
    return max(0.0, max(last_ms, cut_ms or 0.0) - ledger.events[moment].t_ms)
