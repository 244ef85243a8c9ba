"""The fate of the client at the cut."""

from __future__ import annotations

from enum import StrEnum

from torture.facts.axes.axis import Axis, Choice
from torture.facts.axes.sweeps import ADMINISTRATION_SWEEPS, EVERY_SWEEP, Sweep


class Fate(StrEnum):
    """The fate of the client at the cut."""

    BOTH_DIE = "bothdie"
    CLIENT_LATER = "clientlater"
    """The client loses power some seconds after the NAS, which is still down then."""
    NAS_ONLY = "nasonly"
    """The client survives, waits, reconnects and continues to write."""


AXIS = Axis(
    field="fate",
    noun="Fate",
    title="at the cut",
    place=90,
    is_always_shown=True,
    varies_last=True,
    choices=(
        Choice(
            name=Fate.BOTH_DIE.value,
            value=Fate.BOTH_DIE,
            words="the VM dies too",
            explained="the client loses power too",
            joins=EVERY_SWEEP - {Sweep.TRANSPORTS_BEHIND_ALWAYS},
        ),
        Choice(
            name=Fate.CLIENT_LATER.value,
            value=Fate.CLIENT_LATER,
            words="the VM dies seconds later",
            explained="it loses power 2 to 12 s after the NAS, which is still away",
        ),
        Choice(
            name=Fate.NAS_ONLY.value,
            value=Fate.NAS_ONLY,
            words="the VM lives on",
            explained="it lives, reconnects and writes on",
            joins=EVERY_SWEEP - {Sweep.LOG_SPEEDS} - ADMINISTRATION_SWEEPS,
        ),
    ),
)
