"""The oracle of applications: whether every acknowledged transaction is there, once and whole.

The oracle turns each transaction, there or not, into the moments at which a crash could have left
it so (`moments.py`). A transaction that is there had begun. A missing one was not durable yet. If
the moment after everything explains them all, nothing is lost. If only an earlier one does, all
went back in time. The data are corrupted if no moment does, if a transaction is there in part, or
if the application's own checks complain. They are unrepairable if the application does not start:
its data are then out of reach. Whole data of another application beside it are not lost.

A lazy transaction (SQLite with synchronous=NORMAL, PostgreSQL with synchronous_commit=off) is
durable with the next durable one. Until then it may be gone, but only with all that came after it:
a replayed log has an end, not holes. Where all writers commit in one order, as to a server's log,
both rules hold for all transactions that began once it was done. A transaction under way beside it
may be before it in the log, or after it. Where each writer has its own log, both rules hold for
that writer's transactions: one log's end says nothing about another's. A durable transaction binds
all writers in any case, as they share the disk. No past without it has a transaction that any of
them began later.

An application may show that a transaction is half done. A crash leaves this state only while the
transaction is under way, or lazy and not durable yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

from torture.facts.evidence.documents import replace, strictly
from torture.facts.evidence.ledger import Begin, Done, Ledger, OperationKind
from torture.oracles.verdict.guarantee import UnreadableError, Verdict, read_whole
from torture.oracles.verdict.judgement import Findings, conclude, with_words
from torture.oracles.verdict.observations import Observations, Rule, Window, union

_COMPLAINTS_MAX = 5
_SETTLES = "settle"
"""A transaction with this key leaves nothing to find: it makes earlier transactions durable."""
_THE_ONE_ORDER = 0
_RULE = Rule.TRANSACTION
_NOUN = "transaction"


@dataclass(frozen=True, kw_only=True, slots=True)
class Unfinished:
    """An application's report of unfinished work: on this transaction, or on one that replaces it.

    Both transactions have the same `what`. `state` is the application's word for the work.
    `is_new`: a crash amid this transaction leaves it so. `is_old`: a crash amid the next of the
    same `what` leaves it so, and this one is there until the next has ended.
    """

    seq: int
    what: Mapping[str, Any]
    state: str
    is_new: bool
    is_old: bool

    @property
    def words(self) -> str:
        """The words for a sentence."""
        return f"{' '.join(str(value) for value in self.what.values())} is {self.state}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The state of an application after the cut.

    `whole`: transactions that are as they were written. `parts`: transactions that differ, and
    their difference. `unfinished`: its unfinished work. `complaints`: those of its own checks.
    `unchecked`: the reasons why some checks had no result. `refused`: the reason why it does not
    start or is unreadable, empty if there is none.
    """

    trial: int
    mode: str
    whole: frozenset[int]
    parts: Mapping[int, str]
    complaints: tuple[str, ...]
    refused: str
    unfinished: tuple[Unfinished, ...] = ()
    unchecked: tuple[str, ...] = ()


@dataclass(kw_only=True, slots=True)
class _Transaction:
    """A transaction of the ledger; `begun`, `done` and `durable` are places in it.

    `order`: the number of its order, in which each transaction vouches for all that were done
    before it began. `what`: its own description at that time.
    """

    order: int
    what: Mapping[str, Any]
    begun: int
    done: int | None = None
    durable: int | None = None


def parse_found(text: str) -> Found:
    """An application's read-back; raises `UnreadableError` for a cut-off or garbled one."""
    return read_whole(text, partial(strictly, Found))


def consult_transactions(
    ledger: Ledger, found: Found, *, has_one_order: bool, cut_ms: float | None
) -> Findings:
    """The fate of the ledger's acknowledgements; raises `UnreadableError` for an inconsistent ledger.

    `has_one_order`: whether a transaction that is there vouches for all that any writer had done
    before it began. If not, it vouches for its own writer's transactions.
    """
    transactions = _transactions_of(ledger, has_one_order=has_one_order)
    durable = {seq: one.durable for seq, one in transactions.items() if one.durable is not None}
    there = found.whole | found.parts.keys()
    halves = _halves(transactions, found, end=len(ledger.events))
    unfinished = {one.seq for one in found.unfinished}
    lost = durable.keys() - found.whole - (unfinished - found.parts.keys())
    lost |= durable.keys() & halves.keys()
    gone = lost - there - unfinished
    foreign = (there | unfinished) - transactions.keys()
    seen = _observed(transactions, found, end=len(ledger.events))
    reasons = _complaints(found)
    reasons += [f"transaction {seq} is damaged: {how}" for seq, how in sorted(found.parts.items())]
    reasons += [f"transaction {seq} is there, but never began" for seq in sorted(foreign)]
    is_broken = bool(reasons)
    reasons += [f"transaction {seq} is half there: {words}" for seq, words in halves.items()]
    counted = Findings(
        acknowledged=ledger.acknowledged,
        lost=len(lost),
        missing=len(gone),
        torn=len(found.parts),
        foreign=len(foreign),
        reasons=tuple(reasons),
    )
    if found.refused:  # the others are out of reach, but not necessarily gone
        counted = replace(counted, verdict=Verdict.UNREPAIRABLE)
        refusal = f"the application cannot be used: {found.refused}"
        return with_words(counted, refusal, ledger, noun=_NOUN)
    reasons += [f"transaction {seq} is gone" for seq in sorted(gone)]
    moment = seen.last_common()
    unexplained = "no single moment explains the present and the missing transactions"
    return conclude(
        ledger,
        None if is_broken else moment,
        replace(counted, reasons=tuple(reasons), observations=seen.telling),
        last=max(durable.values(), default=-1),
        cut_ms=cut_ms,
        otherwise=unexplained if moment is None else "",
        noun=_NOUN,
    )


def _observed(transactions: Mapping[int, _Transaction], found: Found, *, end: int) -> Observations:
    """Each transaction, there, missing or unfinished, and the moments of a crash that explains it."""
    seen = Observations(end=end)
    there = found.whole | found.parts.keys()
    unfinished = {one.seq for one in found.unfinished}
    last_there = {one.order: one.begun for seq, one in transactions.items() if seq in there}
    until = _undone_until(transactions, end=end)
    for seq, one in transactions.items():
        if one.done is not None and last_there.get(one.order, -1) > one.done:
            until[seq] = one.done  # without it there would be a hole
        if seq in there:
            seen.add(f"transaction {seq} is there", (Window(one.begun + 1, end),), rule=_RULE)
        elif seq not in unfinished:
            lost = () if one.durable is None else (seq,)
            window = Window(0, until[seq])
            seen.add(f"transaction {seq} is gone", (window,), rule=_RULE, breaks=lost)
    for half in found.unfinished:
        if half.seq in transactions:
            windows = _windows_of(half, transactions, there, until)
            seen.add(f"transaction {half.seq}: {half.words}", windows, rule=_RULE)
    return seen


def _halves(transactions: Mapping[int, _Transaction], found: Found, *, end: int) -> dict[int, str]:
    """Unfinished work, in words, that no crash leaves so, or none since the transaction was durable."""
    halves: dict[int, str] = {}
    there = found.whole | found.parts.keys()
    until = _undone_until(transactions, end=end)
    for one in sorted(found.unfinished, key=lambda one: one.seq):
        if one.seq not in transactions:
            continue
        windows = _windows_of(one, transactions, there, until)
        durable = transactions[one.seq].durable
        if not windows or (durable is not None and windows[-1].last <= durable):
            halves[one.seq] = one.words
    return halves


def _undone_until(transactions: Mapping[int, _Transaction], *, end: int) -> dict[int, int]:
    """The last moment at which a crash may leave each transaction undone, or half done."""
    return {seq: end if one.durable is None else one.durable for seq, one in transactions.items()}


def _windows_of(
    half: Unfinished,
    transactions: Mapping[int, _Transaction],
    there: Set[int],
    until: Mapping[int, int],
) -> tuple[Window, ...]:
    """When a crash leaves it so; a next one that is there is not half done."""
    ways = [half.seq] if half.is_new else []
    following = _next_of(half, transactions)
    if half.is_old and following is not None and following not in there:
        ways.append(following)
    return union(Window(transactions[seq].begun + 1, until[seq]) for seq in ways)


def _next_of(one: Unfinished, transactions: Mapping[int, _Transaction]) -> int | None:
    """The next transaction with the same description, if there is one."""
    begun = transactions[one.seq].begun
    later = (
        seq
        for seq, other in transactions.items()
        if other.begun > begun and one.what.items() <= other.what.items()
    )
    return next(later, None)


def _complaints(found: Found) -> list[str]:
    """The first complaints of its own checks: a reason for losses, before the losses."""
    more = len(found.complaints) - _COMPLAINTS_MAX
    shown = [f"its own check: {line}" for line in found.complaints[:_COMPLAINTS_MAX]]
    return shown + ([f"its own checks printed {more} more lines"] if more > 0 else [])


def _transactions_of(ledger: Ledger, *, has_one_order: bool) -> dict[int, _Transaction]:
    """All that leave something to find, by their number, with the place that made each durable."""
    transactions: dict[int, _Transaction] = {}
    begun: dict[int, tuple[Begin, _Transaction]] = {}
    waiting: list[_Transaction] = []
    for place, event in enumerate(ledger.events):
        if isinstance(event, Begin):
            order = _THE_ONE_ORDER if has_one_order else event.writer
            begun[event.seq] = event, _Transaction(order=order, what=event.what, begun=place)
            if _SETTLES not in event.what:
                transactions[event.seq] = begun[event.seq][1]
        elif isinstance(event, Done):
            if event.seq not in begun:
                raise UnreadableError(
                    f"the ledger ends transaction {event.seq}, which had not begun"
                )
            begin, own = begun[event.seq]
            own.done = place
            if begin.kind is OperationKind.LAZY_TRANSACTION:
                waiting.append(own)
                continue
            own.durable = place
            for one in waiting:
                if one.order == own.order and one.done is not None and one.done < own.begun:
                    one.durable = place
            waiting = [one for one in waiting if one.durable is None]
    return transactions
