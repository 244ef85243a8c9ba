"""A trial's end in words, and the reason of its verdict: the things read back, the broken rule."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from torture.facts.evidence.folder import Evidence
from torture.facts.evidence.ledger import Begin, Cut, Done, End, Event, Failed, Hello
from torture.oracles.verdict.guarantee import Guarantee
from torture.oracles.verdict.observations import Observation, Windows, conflict_in
from torture.records.record.trials import TrialRecord

_WIDTH = 100
_NUMBERS_MAX = 8
_LINES_MAX = 30
_CHARACTERS_MAX = 8000
"""Records hold these texts: a hostile guest must not fill them."""


def explanation_of(
    evidence: Evidence, record: TrialRecord, observations: Sequence[Observation]
) -> str:
    """The whole explanation of a record that was just made of the evidence."""
    sections = (
        _headline(record),
        _layers(record),
        _cut(record),
        _audit(record),
        *(part.in_words() for part in record.parts),
        _data(evidence, observations),
        _ledger(evidence, observations),
    )
    text = "\n\n".join("\n".join(lines) for lines in map(list, sections) if lines) + "\n"
    return text if len(text) <= _CHARACTERS_MAX else text[:_CHARACTERS_MAX] + "...\n"


def _wrapped(text: str, *, indent: int = 0) -> str:
    pad = " " * indent
    return textwrap.fill(
        text, _WIDTH, initial_indent=pad, subsequent_indent=pad + "  ", break_on_hyphens=False
    )


def _headline(record: TrialRecord) -> Iterator[str]:
    guarantee = Guarantee(record.guarantee)
    yield record.trial
    yield f"verdict: {record.verdict}; theory: {guarantee}"
    is_worse = record.breaks(guarantee)
    yield "This is worse than theory guarantees." if is_worse else "Theory allows this."


def _layers(record: TrialRecord) -> Iterator[str]:
    """Each layer's own verdict, and the reasons."""
    judgement = record.judgement
    layers = judgement.parts.items()
    yield "layers: " + ", ".join(f"{name} {verdict or 'not judged'}" for name, verdict in layers)
    yield f"{judgement.lost} of {judgement.acknowledged} acknowledged operations are lost."
    for reason in record.reasons:
        yield _wrapped(f"- {reason}", indent=2)


def _cut(record: TrialRecord) -> Iterator[str]:
    cut = record.cut
    if cut.log_seq is None:
        return
    event = cut.confirmed.event if cut.confirmed.is_made else cut.log_seq
    yield f"the cut: event {event} of the recording, phase {cut.phase or 'unknown'}"
    for serial, disk in cut.disks.items():
        yield (
            f"  disk {serial} ({disk.persistence}, {disk.policy}): {disk.unflushed} writes completed "
            f"and not flushed, {disk.in_flight} in flight; {disk.survived} survived, {disk.torn} torn"
        )


def _audit(record: TrialRecord) -> Iterator[str]:
    found = record.cut.audited
    if not found.broken:
        return
    yield f"the audit: {found.broken} promises of ZFS were broken before the cut"
    for finding in found.findings:
        yield _wrapped(f"- {finding}", indent=2)
    yield "  docs/audit.md has each promise and its source."


def _data(evidence: Evidence, observations: Sequence[Observation]) -> Iterator[str]:
    if not observations:
        return
    events = evidence.ledger.events
    yield "what was read back, and when a crash would explain it:"
    for one in observations:
        yield _wrapped(f"- {one.seen}", indent=2)
        yield _wrapped(_moments_in_words(one.windows, events), indent=6)
        if one.breaks:
            numbers = ", ".join(map(str, one.breaks[:_NUMBERS_MAX]))
            yield _wrapped(f"It breaks the acknowledgement of operation {numbers}.", indent=6)
    for rule in dict.fromkeys(one.rule for one in observations):
        yield _wrapped(f"the rule {rule}: {rule.words} Source: {rule.source}.", indent=2)
    if pair := conflict_in(observations):
        seen = ", and ".join(repr(one.seen) for one in pair)
        yield _wrapped(f"No single moment explains both: {seen}.", indent=2)


def _moments_in_words(windows: Windows, events: Sequence[Event]) -> str:
    if not windows:
        return "No crash explains it."
    parts = []
    for window in windows:
        begin = f"after {_at(events, window.first - 1)}" if window.first else ""
        end = f"before {_at(events, window.last)}" if window.last < len(events) else ""
        parts.append(" and ".join(filter(None, (begin, end))) or "at any moment")
    return f"A crash explains it {', or '.join(parts)}."


def _at(events: Sequence[Event], place: int) -> str:
    return f"{_event_in_words(events[place])} (event {place})"


def _event_in_words(event: Event) -> str:
    match event:
        case Begin(what=what) if what:
            said = ", ".join(f"{name} {value}" for name, value in list(what.items())[:4])
            return f"operation {event.seq} begins: {said}"
        case Begin():
            blocks = ", ".join(map(str, event.blocks)) or "none"
            return (
                f"operation {event.seq} begins: {event.kind} of file {event.file}, blocks {blocks}"
            )
        case Done():
            return f"operation {event.seq} returns"
        case Failed():
            return f"operation {event.seq} fails: {event.call}, errno {event.errno}"
        case Cut():
            return "the cut"
        case End():
            return "the load's end"
        case Hello():
            return "the load's beginning"


def _ledger(evidence: Evidence, observations: Sequence[Observation]) -> Iterator[str]:
    """The ledger at the edges of the windows, and of the operations whose acknowledgements are broken."""
    events = evidence.ledger.events
    edges = {
        place
        for one in observations
        for window in one.windows
        for place in (window.first - 1, window.last)
    }
    broken = {number for one in observations for number in one.breaks}
    shown = [
        (place, event)
        for place, event in enumerate(events)
        if place in edges
        or (isinstance(event, Begin | Done) and event.seq in broken)
        or (isinstance(event, Cut) and observations)
    ]
    if shown:
        yield "the ledger there:"
    for place, event in shown[:_LINES_MAX]:
        yield f"  event {place:5}  {event.t_ms:10.1f} ms  {_event_in_words(event)}"


def next_commands(place: str, *, has_recordings: bool) -> str:
    """The commands that look further into a trial; `place` is its folder, quoted for a shell.

    `has_recordings`: the folder still has the recordings of the NAS's disks.
    """
    of_recordings = (
        f"  tools/replay {place}  # recover and check these very disks again",
        f"  tools/view {place}  # serve these disks over NBD",
    )
    live = f"  tools/replay --live {place}  # run the trial again from its seed"
    guide = "  docs/debugging.md has the way from here to a cause."
    again = of_recordings if has_recordings else ()
    return "\n".join(("next:", *again, live, guide)) + "\n"


def outcome_in_short(record: TrialRecord) -> str:
    """The verdict and the amount of the loss, on a line."""
    return f"{record.verdict}, {record.lost} of {record.acknowledged} lost"


def outcome_in_full(record: TrialRecord) -> tuple[str, ...]:
    """The reasons of the verdict, or the machinery's error, and the breach of the guarantee."""
    reasons = record.reasons or ((record.error,) if record.error else ())
    # a record of another version may have a guarantee that this version does not know
    is_known = record.guarantee in frozenset(Guarantee)
    breaches = breaches_in_words(record, Guarantee(record.guarantee)) if is_known else ()
    return (*reasons, *breaches)


def breaches_in_words(record: TrialRecord, guarantee: Guarantee) -> tuple[str, ...]:
    """Each way in which the record breaks the guarantee; empty where it keeps it."""
    return tuple(_breaches(record, guarantee)) if record.breaks(guarantee) else ()


def _breaches(record: TrialRecord, guarantee: Guarantee) -> Iterator[str]:
    audit = record.cut.audited
    if audit.is_broken:
        times = "once" if audit.broken == 1 else f"{audit.broken} times"
        yield (
            f"the audit of the NAS's disks failed {times}: promised data was not on them. "
            f"This cut was {record.verdict}; a cut at such a moment loses that data"
        )
    if guarantee is Guarantee.SAFE and record.absence.unfounded:
        count = record.absence.unfounded
        yield f"{count} acknowledgements came while the NAS had no power, without stable storage"
    states = [one for one in record.verdicts_beside if guarantee.is_broken_by(one)]
    if states:
        yield f"crash states of its recording were {', '.join(states)}"
    is_worse = guarantee.is_broken_by(record.verdict) or not (
        audit.is_broken or record.absence.unfounded or states
    )
    if is_worse:
        yield f"the cell is guaranteed to be {guarantee} at worst, and this trial was {record.verdict}"
