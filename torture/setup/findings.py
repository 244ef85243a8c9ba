"""A finding about this host, one sentence each, and its form on the screen.

A failing probe is a lack itself: a traceback of the doctor would report nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from torture.errors import HarnessError


class State(StrEnum):
    """The meaning of a finding for a run."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; a run works all the same."""
    LACK = "LACK"
    """A run cannot work."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The finding of one probe; `fix` is the command to type or the step to take, required for a lack."""

    state: State
    name: str
    text: str
    fix: str = ""


Probe = Callable[[str], Finding]
"""A probe: takes the name under which its finding is shown."""


def ok(name: str, text: str) -> Finding:
    """A finding that is as it should be."""
    return Finding(state=State.OK, name=name, text=text)


def note(name: str, text: str, fix: str = "") -> Finding:
    """A finding worth knowing."""
    return Finding(state=State.NOTE, name=name, text=text, fix=fix)


def lack(name: str, text: str, fix: str) -> Finding:
    """A finding that keeps a run from working."""
    return Finding(state=State.LACK, name=name, text=text, fix=fix)


def find_all(probes: Mapping[str, Probe]) -> tuple[Finding, ...]:
    """The findings of all probes, in their order; never raises for a failing probe."""
    return tuple(_guarded(name, probe) for name, probe in probes.items())


def _guarded(name: str, probe: Probe) -> Finding:
    try:
        return probe(name)
    except HarnessError as error:
        text, fix = error.message, error.hint
    except Exception as error:
        text, fix = f"{type(error).__name__} while looking: {error}", ""
    return lack(name, text, fix or "repair that, then start tools/doctor again")


def can_run(findings: Iterable[Finding]) -> bool:
    """Whether a run could work."""
    return all(finding.state is not State.LACK for finding in findings)


def in_words(findings: Iterable[Finding]) -> str:
    """A line a finding, its fix indented below it, and the conclusion."""
    shown = tuple(findings)
    width = max((len(finding.name) for finding in shown), default=0)
    lines = []
    for finding in shown:
        text = " ".join(finding.text.split())
        lines.append(f"{finding.state:4}  {finding.name:{width}}  {text}")
        if finding.fix:
            lines.append(f"{'':{width + 8}}fix: {finding.fix}")
    lacks = sum(finding.state is State.LACK for finding in shown)
    lines.append("a run can work" if can_run(shown) else f"lacks: {lacks}; a run cannot work")
    return "\n".join(lines)
