"""The event that ends the NAS's service: what the cut itself is.

Only a loss of power takes what the disks' caches hold. After any other end each completed write is there.
A write in flight is there as a whole, or not at all: its disk finishes it, or never had it.
"""

from __future__ import annotations

from enum import StrEnum

from torture.facts.axes.axis import Axis, Chosen, choices_of
from torture.facts.axes.fate import Fate
from torture.facts.axes.sweeps import EVERY_SWEEP, Sweep


class Event(StrEnum):
    """The event."""

    POWER = "power"
    """NAS and disks lose their power."""
    PANIC = "panic"
    """Its kernel panics by its own sysrq (Linux Documentation/admin-guide/sysrq.rst), and it is reset."""
    RESET = "reset"
    """It is reset at a drawn moment, without a word of its kernel."""
    TAKEOVER = "takeover"
    """It loses power, its disks do not, and another node imports its pool (zpool-import(8), `-f`)."""
    REBOOT = "reboot"
    """Its services stop, and it unmounts, before it boots again."""

    @property
    def is_of_its_kernel(self) -> bool:
        """Whether the NAS's own kernel brings it about, so that no event of a disk can."""
        return self in (Event.PANIC, Event.REBOOT)


_WORDS = {
    Event.POWER: ("the NAS loses power", "and so do its disks"),
    Event.PANIC: (
        "the NAS's kernel panics",
        "by sysrq-c, and it is reset; its disks keep their power",
    ),
    Event.RESET: ("the NAS is reset", "as by its button; its disks keep their power"),
    Event.TAKEOVER: (
        "another node takes over",
        "the NAS loses power, and its disks, which are a shelf of their own, do not; its pool is "
        "imported with `-f`, and the former node comes back",
    ),
    Event.REBOOT: ("the NAS is rebooted", "in order: its services stop, and it unmounts"),
}
_JOINS = {event: frozenset({Sweep.OUTAGES, Sweep.OUTAGES_OF_IMAGES}) for event in Event} | {
    Event.POWER: EVERY_SWEEP - {Sweep.OUTAGES_WITH_TAKEOVER},
    Event.TAKEOVER: frozenset({Sweep.OUTAGES_WITH_TAKEOVER}),
}


def _inapplicable(chosen: Chosen) -> str | None:
    event, fate, transport = (chosen[name] for name in ("event", "fate", "transport"))
    if fate.value is Fate.CLIENT_ONLY:
        return f"ends a NAS, and {fate.name!r} ends the client alone"
    if event.value.is_of_its_kernel and chosen["administration"].value is not None:
        return "does not wait for a step of an administration's command"
    if event.value not in (Event.REBOOT, Event.TAKEOVER):
        return None
    if fate.value is not Fate.NAS_ONLY:
        return f"needs a client that lives on, and {fate.name!r} has none"
    if event.value is Event.REBOOT and not transport.value.traits.release_script:
        return f"needs a target that lets go of its volume, and {transport.name!r} has none"
    return "takes no log device away" if chosen["slog"].value.gone_at_cut else None


AXIS = Axis(
    field="event",
    noun="Event",
    title="what happens",
    place=87,
    default=Event.POWER.value,
    is_setting=True,
    inapplicable=_inapplicable,
    choices=choices_of(_WORDS, _JOINS),
)
