"""Whether the shelf froze at the event that it was to freeze at."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from suites.selftest.shelf.log_blocks_oracle import log_states
from suites.selftest.shelf.log_oracle import Order
from suites.selftest.shelf.requests import Difference, Request, Verb
from suites.selftest.shelf.session import SessionDisk
from torture.facts.recording.events import WRITE_COMPLETES, Event, Kind, Recording
from torture.facts.recording.intent_log import Role, role_of

_NS_PER_MS = 1_000_000


def check_freeze(
    recording: Recording,
    disks: Sequence[SessionDisk],
    requests: Sequence[Request],
    order: Order,
    *,
    was_killed: bool,
) -> None:
    """Raise `Difference` unless one of the commands explains the freeze, or its absence.

    A kill may come between an event and the freeze at it: two stores to the log's mapping.
    """
    events, roles = recording.events, _roles(recording)
    commands = [request for request in requests if request.verb is Verb.FREEZE]
    names = [disk.name for disk in disks]
    if events[-1].kind is not Kind.FREEZE:
        frozen_by = events[:-1] if was_killed else events
        if commands and _is_overdue(frozen_by, roles, names, commands[-1], order):
            raise Difference(f"not frozen by event {events[-1].seq}: {commands[-1]}")
        return
    cut = events[-1].seq - 1
    for command, following in pairwise([*commands, None]):
        assert command is not None
        # once the next command was acknowledged, this one counted no more
        replaced = order.ceiling(None if following is None else following.acked)
        if cut < replaced and _explains(events, roles, names, command, cut, order):
            break
    else:
        raise Difference(f"frozen at {cut}, {events[cut]}: {[str(each) for each in commands]}")
    reads = [request for request in requests if request.verb is Verb.READ]
    late = [read for read in reads if _was_frozen(commands, read.issued)]
    if any(read.acked is not None for read in late):
        raise Difference(f"read from a frozen shelf: {[str(read) for read in late]}")


def _roles(recording: Recording) -> list[Role | None]:
    """Of each event: a write's own, a flush's is that of the write which its disk completed last."""
    roles: list[Role | None] = []
    last: dict[int | None, Role | None] = {}
    for event in recording.events:
        role = None
        if event.kind is Kind.WRITE_SUBMIT:
            role = role_of(recording.payload(event))
        elif event.kind in WRITE_COMPLETES:
            role = last[event.disk] = roles[event.reference]
        elif event.kind in (Kind.FLUSH_SUBMIT, Kind.FLUSH_COMPLETE):
            role = last.get(event.disk)
        roles.append(role)
    return roles


def _was_frozen(commands: Sequence[Request], tick: int) -> bool:
    return any(
        command.freeze == "now" and command.acked is not None and command.acked < tick
        for command in commands
    )


def _explains(
    events: Sequence[Event],
    roles: Sequence[Role | None],
    names: Sequence[str],
    command: Request,
    cut: int,
    order: Order,
) -> bool:
    floor, ceiling = order.floor(command.issued), order.ceiling(command.acked)
    if cut < floor:
        return False
    freeze: Any = command.freeze
    if freeze == "now":
        return cut < ceiling
    if "at_seq" in freeze:
        return bool(cut == freeze["at_seq"] or freeze["at_seq"] < cut < ceiling)
    if "after_ms" in freeze:
        waited_ms = (events[-1].time_ns - events[floor].time_ns) / _NS_PER_MS
        return bool(waited_ms >= freeze["after_ms"])
    possible = [seq for seq in _matching(events[: cut + 1], roles, names, freeze) if seq > floor]
    definite = [seq for seq in possible if seq >= ceiling]
    return cut in possible and len(definite) <= freeze["count"] <= len(possible)


def _is_overdue(
    events: Sequence[Event],
    roles: Sequence[Role | None],
    names: Sequence[str],
    command: Request,
    order: Order,
) -> bool:
    freeze: Any = command.freeze
    if freeze == "now":
        return True
    if "at_seq" in freeze:
        return bool(len(events) > freeze["at_seq"])
    if "after_ms" in freeze:
        return False
    ceiling = order.ceiling(command.acked)
    definite = [seq for seq in _matching(events, roles, names, freeze) if seq >= ceiling]
    return bool(len(definite) >= freeze["count"])


def _matching(
    events: Sequence[Event],
    roles: Sequence[Role | None],
    names: Sequence[str],
    freeze: dict[str, Any],
) -> list[int]:
    wanted = freeze.get("zil_uncovered", 0), freeze.get("zil_reused", False)
    states = log_states(events, roles) if any(wanted) else [(0, False)] * len(events)
    return [
        event.seq
        for event, (uncovered, is_reused) in zip(events, states, strict=True)
        if event.kind == freeze["event"]
        and uncovered >= wanted[0]
        and is_reused >= wanted[1]
        and ("role" not in freeze or roles[event.seq] == freeze["role"])
        and (
            "disk" not in freeze or (event.disk is not None and names[event.disk] == freeze["disk"])
        )
    ]
