"""The fate of the client at the cut."""

from __future__ import annotations

from enum import StrEnum

from torture.facts.axes.axis import Axis, Chosen, choices_of
from torture.facts.axes.sweeps import ADMINISTRATION_SWEEPS, EVERY_SWEEP, OUTAGE_SWEEPS, Sweep


class Fate(StrEnum):
    """The fate of the client at the cut."""

    BOTH_DIE = "bothdie"
    CLIENT_LATER = "clientlater"
    """The client loses power some seconds after the NAS, which is still down then."""
    NAS_ONLY = "nasonly"
    """The client survives, waits, reconnects and continues to write."""
    CLIENT_ONLY = "clientonly"
    """The client loses power alone, and the NAS serves on."""


_WORDS = {
    Fate.BOTH_DIE: ("the VM dies too", "the client loses power too"),
    Fate.CLIENT_LATER: (
        "the VM dies seconds later",
        "it loses power 2 to 12 s after the NAS, which is still away",
    ),
    Fate.NAS_ONLY: ("the VM lives on", "it lives, reconnects and writes on"),
    Fate.CLIENT_ONLY: ("the VM dies alone", "it loses power, and the NAS serves on"),
}
_OUTAGES_OF_ANY_FATE = frozenset({Sweep.OUTAGES, Sweep.OUTAGES_OF_IMAGES})
_JOINS = {
    Fate.BOTH_DIE: EVERY_SWEEP
    - {Sweep.TRANSPORTS_BEHIND_ALWAYS}
    - (OUTAGE_SWEEPS - _OUTAGES_OF_ANY_FATE),
    Fate.NAS_ONLY: EVERY_SWEEP
    - {Sweep.LOG_SPEEDS, Sweep.HYPERVISOR_WITHOUT_FLUSHES}
    - ADMINISTRATION_SWEEPS,
    Fate.CLIENT_ONLY: _OUTAGES_OF_ANY_FATE,
}


def _inapplicable(chosen: Chosen) -> str | None:
    transport, fate = chosen["transport"], chosen["fate"].value
    if transport.value.traits.is_local and fate is not Fate.BOTH_DIE:
        return f"needs a client of its own, and {transport.name!r} has none"
    if fate is not Fate.CLIENT_ONLY:
        return None
    has_more = chosen["administration"].value is not None or chosen["nas_link"].value.fills_pool
    return "leaves the NAS as it is" if has_more or chosen["slog"].value.gone_at_cut else None


AXIS = Axis(
    field="fate",
    noun="Fate",
    title="at the cut",
    place=90,
    is_always_shown=True,
    varies_last=True,
    inapplicable=_inapplicable,
    choices=choices_of(_WORDS, _JOINS),
)
