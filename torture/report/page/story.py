"""A cut in the view of the VM's user, in order.

It has the kernel's messages, the application's errors, the losses, and the repairs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.axes.event import Event
from torture.facts.axes.fate import Fate
from torture.facts.evidence.documents import strict_json
from torture.facts.evidence.folder import LEDGER, Evidence, Step, ToolOutput, load_evidence
from torture.facts.evidence.ledger import Begin, Done, Failed
from torture.records.record.trials import TrialRecord

_LEDGER_BYTES_MAX = 8 * 1024**2
_LINES_MAX = 8
"""The most lines of one kind; the number of further ones is stated."""
_CHARACTERS_MAX = 300
_KERNEL_LINE = re.compile(r"^\[ *(?P<at_s>\d+\.\d+)\] +(?P<text>\S.*)$")
"""A line of dmesg(1): its seconds are those of the kernel's monotonic clock, as a process there reads it.
"""
_NOTEWORTHY = re.compile(
    r"error|fail|corrupt|warn|read-?only|not responding|timed out|\bOK$|blocked for|abort|reset|"
    r"lost|transid|recover|hung|bug:|oops|panic",
    re.IGNORECASE,
)
_LOOKS = (
    (Step.FS_FIRST_CHECK, "looks at it before anything else"),
    (Step.BOOT, "is booted from it"),
    (Step.FS_MOUNT, "mounts it"),
    (Step.FS_CHECK, "checks it"),
    (Step.FS_REPAIR, "repairs it"),
    (Step.FS_MOUNT_AFTER_REPAIR, "mounts it after the repair"),
    (Step.FS_CHECK_AFTER_REPAIR, "checks it after the repair"),
    (Step.BOOT_AFTER_REPAIR, "is booted from it once more"),
)
_IMPORTS = (
    Step.POOL_IMPORT,
    Step.POOL_IMPORT_M,
    Step.POOL_IMPORT_REWIND,
    Step.POOL_IMPORT_AGAIN,
    Step.POOL_IMPORT_M_AGAIN,
    Step.POOL_IMPORT_REWIND_AGAIN,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Incident:
    """One observation; `after_cut_ms` is None where only the order is known."""

    who: str
    text: str
    after_cut_ms: float | None = None


def story_of(record: TrialRecord, folder: Path) -> tuple[Incident, ...]:
    """The incidents of a trial's folder in order; none if it is unreadable or has no cut."""
    try:
        evidence = load_evidence(folder)
        with (folder / LEDGER).open("rb") as file:
            ledger_text = file.read(_LEDGER_BYTES_MAX)
    except (HarnessError, OSError):
        return ()
    if evidence.cut.t_ms is None:
        return ()
    timed = [
        *_cut(evidence, record),
        *_kernel_messages(evidence, ledger_text),
        *_load_errors(evidence),
        *_nas_return(evidence),
    ]
    timed.sort(key=lambda incident: incident.after_cut_ms or 0.0)
    return (*timed, *_afterwards(evidence), *_losses(record))


_ENDS: dict[str, str] = {
    Event.PANIC: "panics",
    Event.RESET: "is reset",
    Event.TAKEOVER: "loses power, and its disks do not",
    Event.REBOOT: "is switched off in order",
}


def _cut(evidence: Evidence, record: TrialRecord) -> Iterator[Incident]:
    where = f" ({record.cut.phase})" if record.cut.phase else ""
    before = _acknowledged(evidence, until_ms=evidence.cut.t_ms)
    who, what = "NAS", _ENDS.get(record.axes.get("event", ""), "loses power")
    if record.axes.get("fate") == Fate.CLIENT_ONLY:
        who, what = "client", "loses power"
    yield Incident(
        who=who,
        text=f"{what}{where}; {before} durable operations were acknowledged to the client",
        after_cut_ms=0.0,
    )
    second = evidence.cut.second
    if second is not None and second.t_ms is not None:
        yield _at(evidence, second.t_ms, "NAS", "loses power again, and the client with it")


def _acknowledged(evidence: Evidence, *, until_ms: float | None) -> int:
    durable = {
        event.seq
        for event in evidence.ledger.events
        if isinstance(event, Begin) and event.kind.is_durable
    }
    return sum(
        isinstance(event, Done) and event.seq in durable and event.t_ms <= (until_ms or 0.0)
        for event in evidence.ledger.events
    )


def _kernel_messages(evidence: Evidence, ledger_text: bytes) -> Iterator[Incident]:
    """Noteworthy messages of the client's kernel since the load began, on the trial's clock."""
    log = evidence.output(Step.CLIENT_DMESG)
    clock = _clock_of(ledger_text)
    if log is None or clock is None:
        return
    began_ms, ahead_ms = clock
    found = [
        (1000 * float(match["at_s"]) + ahead_ms, match["text"])
        for line in log.stdout.splitlines()
        if (match := _KERNEL_LINE.match(line)) and _NOTEWORTHY.search(match["text"])
    ]
    since_load = [(at_ms, text) for at_ms, text in found if at_ms >= began_ms]
    yield from _first_few(
        [_at(evidence, at_ms, "client's kernel", text) for at_ms, text in since_load], "messages"
    )


def _clock_of(ledger_text: bytes) -> tuple[float, float] | None:
    """When the load began, and how far the trial's clock is ahead of the guest's, in milliseconds.

    A line cannot arrive before it was sent, so the smallest difference is the best estimate.
    """
    times = []
    for line in ledger_text.splitlines():
        try:
            event = strict_json(line)
            times.append((float(event["t_ms"]), float(event["guest_ms"])))
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
    if not times:
        return None
    return times[0][0], min(t_ms - guest_ms for t_ms, guest_ms in times)


def _load_errors(evidence: Evidence) -> Iterator[Incident]:
    """The errors that the application received."""
    failures = [event for event in evidence.ledger.events if isinstance(event, Failed)]
    yield from _first_few(
        [
            _at(
                evidence,
                failure.t_ms,
                "application",
                f"{failure.call} fails: {_error_in_words(failure.errno)} (operation {failure.seq})",
            )
            for failure in failures
        ],
        "failures",
    )


def _error_in_words(errno: int) -> str:
    try:
        return os.strerror(errno)
    except (OverflowError, ValueError):  # not the number of an error
        return f"errno {errno}"


def _nas_return(evidence: Evidence) -> Iterator[Incident]:
    """The return of the volume, and the client's first acknowledgement after it."""
    cut = evidence.cut
    if cut.published_ms is None:
        return
    yield _at(evidence, cut.published_ms, "NAS", "is back, with its volume")
    for event in evidence.ledger.events:
        if isinstance(event, Done) and event.t_ms >= cut.published_ms:
            yield _at(evidence, event.t_ms, "application", "receives the next acknowledgement")
            return


def _afterwards(evidence: Evidence) -> Iterator[Incident]:
    """The recovery after the trial's clock ended: only the order is known."""
    for tool in evidence.tools:
        if tool.step in _IMPORTS and tool.exit_code != 0:
            yield Incident(who="NAS", text=f"{' '.join(tool.argv)}: {_words(tool)}")
    for step, does in _LOOKS:
        look = evidence.output(step)
        if look is not None and (look.exit_code != 0 or step is Step.FS_REPAIR):
            who = "VM" if "boot" in step.value else "fresh client"
            yield Incident(who=who, text=f"{does}: {_words(look)}")
    log = evidence.output(Step.CHECK_DMESG)
    if log is not None:
        lines = [line for line in log.stdout.splitlines() if _is_complaint(line)]
        yield from _first_few(
            [
                Incident(who="fresh client's kernel", text=_KERNEL_LINE.sub(r"\2", line))
                for line in lines
            ],
            "messages",
        )


def _is_complaint(line: str) -> bool:
    return any(name in line for name in ("BTRFS", "EXT4-fs", "XFS", "JBD2", "I/O error")) and bool(
        re.search(r"error|fail|corrupt|warn|transid", line, re.IGNORECASE)
    )


def _losses(record: TrialRecord) -> Iterator[Incident]:
    if record.lost:
        what = f"{record.lost} of {record.acknowledged} acknowledged operations are lost"
        yield Incident(who="user", text=what)
    if record.verdict.value == "repaired":
        yield Incident(who="user", text="all data is back after a repair")


def _at(evidence: Evidence, t_ms: float, who: str, text: str) -> Incident:
    cut_ms = evidence.cut.t_ms or 0.0
    return Incident(who=who, text=text[:_CHARACTERS_MAX], after_cut_ms=t_ms - cut_ms)


def _first_few(incidents: list[Incident], noun: str) -> Iterable[Incident]:
    """The first incidents, and the number of further ones."""
    shown = incidents[:_LINES_MAX]
    more = len(incidents) - len(shown)
    if not more:
        return shown
    last = shown[-1]
    rest = Incident(who=last.who, text=f"and {more} {noun} more", after_cut_ms=last.after_cut_ms)
    return [*shown, rest]


def _words(tool: ToolOutput) -> str:
    """The exit code, and the first lines of the output."""
    said = [
        line.strip() for line in (tool.stdout + "\n" + tool.stderr).splitlines() if line.strip()
    ]
    code = "did not end" if tool.exit_code is None else f"returned {tool.exit_code}"
    return f"{code}: {' / '.join(said[:4])}"[:_CHARACTERS_MAX]
