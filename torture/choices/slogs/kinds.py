"""Log devices as users buy and lose them."""

from __future__ import annotations

from torture.choices.slogs.protocol import SlogKind
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import EVERY_SWEEP, Sweep
from torture.facts.recording.disks import Persistence

_WHERE_ITS_LOSS_SHOWS = frozenset({Sweep.LOG_DEVICES, Sweep.LOG_DEVICES_AND_FILESYSTEMS})

CHOICES: tuple[Choice[SlogKind], ...] = (
    # No log device: the intent log lies on the data disks.
    Choice(
        name="noslog",
        value=SlogKind(legs=()),
        words="no SLOG",
        joins=EVERY_SWEEP - {Sweep.LOG_DEVICES, Sweep.LOG_SPEEDS, Sweep.ADMINISTRATION_OF_LOGS},
        place=0,
    ),
    # A log device with power-loss protection keeps every completed write.
    Choice(
        name="plp",
        value=SlogKind(legs=(Persistence.PLP,)),
        words="SLOG power-loss-protected",
        explained="power-loss-protected",
        joins=frozenset(
            {
                Sweep.USUAL,
                Sweep.LOG_DEVICES_AND_FILESYSTEMS,
                Sweep.LOG_SPEEDS,
                Sweep.ADMINISTRATION_OF_LOGS,
            }
        ),
        place=1,
    ),
    # A log device that honours flush, and loses unflushed writes.
    Choice(
        name="volatile",
        value=SlogKind(legs=(Persistence.VOLATILE,)),
        words="SLOG with volatile cache",
        explained="e.g. a consumer SSD that honours flush",
        joins=_WHERE_ITS_LOSS_SHOWS,
        place=2,
    ),
    # A log device that acknowledges flushes it has not done.
    Choice(
        name="lying",
        value=SlogKind(legs=(Persistence.LYING,), is_forgetful=True),
        words="SLOG lies about flushes",
        explained="e.g. a consumer SSD that acknowledges flushes it has not done",
        joins=_WHERE_ITS_LOSS_SHOWS,
        place=3,
    ),
    # Two log devices, one of them gone after the cut.
    #
    # The leg that stays has a volatile cache, like the devices that users mirror for safety.
    Choice(
        name="mirror",
        value=SlogKind(legs=(Persistence.VOLATILE, Persistence.VOLATILE), gone_at_cut=1),
        words="SLOG mirrored, one leg dies",
        explained="two, one of them gone after the cut",
        joins=_WHERE_ITS_LOSS_SHOWS,
        place=4,
    ),
    # The only log device is gone after the cut, whatever it kept.
    Choice(
        name="lost",
        value=SlogKind(legs=(Persistence.PLP,), gone_at_cut=1, is_forgetful=True),
        words="SLOG dies in the cut",
        explained="gone after the cut",
        joins=_WHERE_ITS_LOSS_SHOWS,
        place=5,
    ),
)
