"""The oracle: whether all acknowledged data are there, are old but consistent, or are damaged.

The oracle turns every observation (a name, a file's size, a sector) into a set of moments. At these
a crash could have left it (`history.py` has the rules). If the moment after everything is in all of
them, nothing acknowledged is lost. If another moment is in all of them, one crash at that moment
explains everything: rolled back. Otherwise old and new are mixed, or something is there that was
never written there: corrupted. Linear in the ledger and the read-back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain

from torture.facts.evidence.ledger import Hello, Ledger
from torture.oracles.verdict.blocks.contents import (
    BlockFinding,
    Damage,
    FileFinding,
    examine_file,
    examine_region,
    examine_temporary,
)
from torture.oracles.verdict.blocks.halves import halves_in
from torture.oracles.verdict.blocks.history import (
    SECTORS,
    FileSeen,
    History,
    Incarnation,
    Name,
    Readback,
    acknowledgements_of,
    build_history,
)
from torture.oracles.verdict.guarantee import UnreadableError, Verdict
from torture.oracles.verdict.judgement import Findings, conclude, together
from torture.oracles.verdict.observations import Observations, Rule, Window, union

_ENOENT = 2
_TELLING_MAX = 2
_MIXED = "old and new are mixed: no single moment explains them"
_NOT_OURS = frozenset({"lost+found"})
"""mke2fs(8) and e2fsck(8) make it, not the load."""


@dataclass(kw_only=True, slots=True)
class _Account:
    """Gathers the results of all observations."""

    history: History
    observations: Observations
    lost: set[int] = field(default_factory=set)
    damages: dict[Damage, int] = field(default_factory=lambda: dict.fromkeys(Damage, 0))
    torn_in_flight: int = 0
    impossible: bool = False
    reasons: list[str] = field(default_factory=list)

    def add(
        self,
        what: str,
        windows: Iterable[Window],
        *,
        rule: Rule,
        holds: str = "",
        breaks: Iterable[int] = (),
    ) -> bool:
        """Count one observation; returns whether it is right at the end."""
        disjoint = union(windows)
        self.impossible |= not disjoint
        if not disjoint:
            self.reasons.append(f"{what}: no crash explains this")
        return self.observations.add(what + holds, disjoint, rule=rule, breaks=breaks)

    def blame(self, damage: Damage, what: str, lost: Iterable[int]) -> None:
        """Record one broken block or name and the acknowledgements it breaks."""
        self.damages[damage] += 1
        self.lost.update(lost)
        self.reasons.append(f"{what} ({damage})")

    def region(self, name: Name | None, seen: FileSeen) -> None:
        """Account for a region of a bare device."""
        region = name.current if name is not None else None
        if region is None:  # never written to: no data of this trial may be in it
            region = Incarnation(seq=0, is_atomic=False)
        if seen.errno is not None:
            lost = acknowledgements_of(region)
            self.add(f"{seen.name}: errno {seen.errno}", (), rule=Rule.STAYS, breaks=lost)
            self.blame(Damage.MISSING, f"{seen.name} cannot be read", acknowledgements_of(region))
            return
        findings = examine_region(self.history, region, seen)
        for finding in findings:
            self.add(
                f"{seen.name} block {finding.index}",
                finding.windows,
                rule=Rule.CONTENT,
                holds=f" holds {finding.holds}",
                breaks=finding.lost,
            )
        self._blame_blocks(seen, findings)

    def file(self, name: Name | None, seen: FileSeen) -> None:
        """Account for a name of the load's directory."""
        if name is None:
            if seen.errno != _ENOENT or seen.listed:
                self.add(f"{seen.name}, which was never made", (), rule=Rule.OURS)
                self.blame(Damage.FOREIGN, f"{seen.name} is there but was never made", ())
            return
        finding = examine_file(self.history, name, seen)
        telling = _telling_blocks(finding, self.history.end)
        self.add(
            finding.what,
            finding.windows,
            rule=Rule.CONTENT if telling and finding.damage is None else Rule.NAME,
            holds="".join(f"; block {block.index} holds {block.holds}" for block in telling),
            breaks=chain(finding.lost, *(block.lost for block in telling)),
        )
        if finding.damage is not None:
            self.blame(finding.damage, finding.what, finding.lost)
        self._blame_blocks(seen, finding.blocks)

    def temporary(self, name: Name | None, seen: FileSeen) -> None:
        """Account for a temporary file."""
        finding = examine_temporary(self.history, name, seen)
        if not self.add(finding.what, finding.windows, rule=Rule.TEMPORARY, breaks=finding.lost):
            self.blame(finding.damage or Damage.STALE, finding.what, finding.lost)

    def _blame_blocks(self, seen: FileSeen, findings: tuple[BlockFinding, ...]) -> None:
        for finding in findings:
            if any(self.history.end in window for window in finding.windows):
                self.torn_in_flight += finding.is_mixed
            elif finding.damage is not None:
                what = f"{seen.name} block {finding.index} holds {finding.holds}"
                self.blame(finding.damage, what, finding.lost)


def _telling_blocks(finding: FileFinding, end: int) -> tuple[BlockFinding, ...]:
    """The first blocks that are wrong at the end; in a right file, the block that came last."""
    wrong = [x for x in finding.blocks if not any(end in window for window in x.windows)]
    if wrong or finding.damage is not None:
        return tuple(wrong[:_TELLING_MAX])
    return tuple(sorted(finding.blocks, key=lambda block: -block.windows[0].first)[:1])


def consult(
    ledger: Ledger,
    readback: Readback,
    *,
    cut_ms: float | None,
    tears_sectors: bool = False,
    ignores_errors: bool = False,
    excuses_names: bool = False,
) -> Findings:
    """The fate of the ledger's acknowledgements; raises `UnreadableError` when the two do not fit.

    `tears_sectors`, `excuses_names`: as in the terms. `ignores_errors`: unreadable data may be there or
    not.
    """
    if ignores_errors and readback.directory_errno is not None:
        raise UnreadableError(f"nothing could be read: errno {readback.directory_errno}")
    history = build_history(
        ledger,
        mode=readback.mode,
        trial=readback.trial,
        tears_sectors=tears_sectors,
        halves=halves_in(readback),
        takes_garbage=not readback.finds_halves,
        ignores_errors=ignores_errors,
        excuses_names=excuses_names,
    )
    account = _Account(history=history, observations=Observations(end=history.end))
    _account_size(account, ledger, readback)
    readback = _completed(history, readback)
    for seen in readback.files:
        name = history.names.get(seen.file)
        if readback.directory_errno is not None:
            break
        if ignores_errors and seen.errno not in (None, _ENOENT):
            continue
        if history.is_raw:
            account.region(name, seen)
        else:
            account.file(name, seen)
    for seen in readback.temporaries if not ignores_errors else ():
        account.temporary(history.names.get(seen.file), seen)
    for unexpected in sorted(set(readback.unexpected) - _NOT_OURS):
        account.add(f"{unexpected!r}, which the load never made", (), rule=Rule.OURS)
        account.blame(Damage.FOREIGN, f"{unexpected!r} is in the load's directory", ())
    if readback.directory_errno is not None:
        # It was in the pool for good before the load began: no crash since takes it away.
        what = f"the load's directory cannot be listed: errno {readback.directory_errno}"
        account.add("the load's directory", (), rule=Rule.STAYS, breaks=history.acknowledged)
        account.blame(Damage.MISSING, what, history.acknowledged)
    return _conclude(history, ledger, account, cut_ms)


def _account_size(account: _Account, ledger: Ledger, readback: Readback) -> None:
    """A device may have grown since the load began, on purpose; it never becomes shorter."""
    before, after = ledger.device_bytes, readback.device_bytes
    if before is None or after is None or after >= before:
        return
    account.add("the device", (), rule=Rule.STAYS)
    what = f"the device has {after} bytes, and had {before} before the load"
    account.blame(Damage.MISSING, what, ())


def _completed(history: History, readback: Readback) -> Readback:
    """With the missing files of those that were looked for, or the regions that are all zeros."""
    left_out = sorted(history.names.keys() - {seen.file for seen in readback.files})
    if left_out and left_out[-1] >= readback.looked:
        raise UnreadableError(f"the read-back did not look for file {left_out[-1]}")
    files = [*readback.files, *(_left_out(history, file) for file in left_out)]
    return replace(readback, files=tuple(files))


def _left_out(history: History, file: int) -> FileSeen:
    current = history.names[file].current
    zeros = 1 + max(current.blocks) if history.is_raw and current is not None else 0
    return FileSeen(
        file=file,
        name=f"region-{file}" if history.is_raw else f"f{file:05d}",
        listed=False,
        errno=None if history.is_raw else _ENOENT,
        size_bytes=0,
        blocks=((("zero",) * SECTORS),) * zeros,
    )


def _conclude(
    history: History, ledger: Ledger, account: _Account, cut_ms: float | None
) -> Findings:
    damages = account.damages
    return conclude(
        ledger,
        account.observations.last_common(),
        Findings(
            acknowledged=len(history.acknowledged),
            lost=len(account.lost),
            missing=damages[Damage.MISSING],
            torn=damages[Damage.TORN],
            stale=damages[Damage.STALE],
            foreign=damages[Damage.FOREIGN],
            torn_in_flight=account.torn_in_flight,
            reasons=tuple(account.reasons),
            observations=account.observations.telling,
        ),
        last=history.end - 1,
        cut_ms=cut_ms,
        otherwise=_MIXED if not account.impossible else "",
        noun="operation",
    )


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
