"""Data from before the load: durable since then, so each cut has to leave them as they were."""

from __future__ import annotations

from torture.facts.evidence.ledger import Hello, Ledger
from torture.oracles.verdict.blocks.readback import Readback
from torture.oracles.verdict.judgement import Findings, together
from torture.oracles.verdict.verdicts import Verdict

_ERRNO = "errno"


def not_as_before(ledger: Ledger, readback: Readback, *, ignores_errors: bool) -> tuple[str, ...]:
    """The places, in words, where data from before the load are not as they were.

    Older loads made no files before. `ignores_errors`: errors of reading prove nothing in this trial.
    """
    hello = next((event for event in ledger.events if isinstance(event, Hello)), None)
    made = hello.before if hello is not None else 0
    is_due = readback.mode == "raw" or made > 0
    return tuple(
        one.in_words
        for one in readback.beside
        if is_due and not (ignores_errors and one.state.startswith(_ERRNO))
    )


def with_data_from_before(found: Findings, broken: tuple[str, ...]) -> Findings:
    """The findings of the load's own data together with these; each place counts as a lost operation."""
    if not broken:
        return found
    return together(
        (
            found,
            Findings(
                verdict=Verdict.CORRUPTED,
                acknowledged=len(broken),
                lost=len(broken),
                foreign=len(broken),
                reasons=(f"not as before the load: {'; '.join(broken)}",),
            ),
        )
    )
