"""A kill between an event and the freeze at it is no mistake of the shelf; a later event is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.selftest.shelf.freeze_oracle import check_freeze
from suites.selftest.shelf.log_oracle import Logged, Order
from suites.selftest.shelf.requests import Difference, Request, Verb
from torture.facts.recording.events import Event, Kind, Recording

_EVENTS = tuple(
    Event(seq=seq, time_ns=seq, kind=kind)
    for seq, kind in enumerate((Kind.BEGIN, Kind.FLUSH_SUBMIT, Kind.FLUSH_COMPLETE))
)
_FLUSH = Request(verb=Verb.FLUSH, disk=0, issued=3)
_ORDER = Order([(_FLUSH, Logged(first=1, last=2))])
_COMMANDS = ({"at_seq": 1}, {"event": "flush-submit", "count": 1})
"""Both are acknowledged before the flush is issued, so the flush's submission is due."""


def _check(command: object, *, last: int, was_killed: bool) -> None:
    recording = Recording(folder=Path("nowhere"), disks=(), events=_EVENTS[: last + 1])
    freeze = Request(verb=Verb.FREEZE, freeze=command, issued=1, acked=2)
    check_freeze(recording, (), [freeze, _FLUSH], _ORDER, was_killed=was_killed)


@pytest.mark.parametrize("command", _COMMANDS)
def test_a_kill_may_come_before_the_freeze_is_recorded(command: object) -> None:
    _check(command, last=1, was_killed=True)


@pytest.mark.parametrize("command", _COMMANDS)
@pytest.mark.parametrize(("last", "was_killed"), [(1, False), (2, False), (2, True)])
def test_a_freeze_is_overdue(command: object, last: int, was_killed: bool) -> None:
    with pytest.raises(Difference, match="not frozen"):
        _check(command, last=last, was_killed=was_killed)
