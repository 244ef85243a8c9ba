"""The operations of an administrator under which the power is cut, by the things they change. Pure."""

from __future__ import annotations

from torture.choices.administration.protocol import Administration
from torture.discovery import offered
from torture.facts.axes.axis import Axis, Choice, Chosen
from torture.facts.axes.sweeps import ADMINISTRATION_SWEEPS, EVERY_SWEEP

NO_ADMINISTRATION: Choice[Administration | None] = Choice(
    name="none",
    value=None,
    words="no administration",
    joins=EVERY_SWEEP - ADMINISTRATION_SWEEPS,
    place=0,
)
CHOICES: tuple[Choice[Administration | None], ...] = (
    NO_ADMINISTRATION,
    *(
        Choice(
            name=one.name,
            value=one,
            words=one.words,
            explained=one.explained,
            joins=frozenset({one.sweep} - {None}),
        )
        for one in sorted(offered(__name__, "ADMINISTRATION"), key=lambda one: one.name)
    ),
)


def _fits(chosen: Chosen) -> str | None:
    administration: Administration | None = chosen["administration"].value
    return None if administration is None else administration.why_not_with(chosen)


AXIS: Axis[Administration | None] = Axis(
    field="administration",
    noun="Administration",
    title="administration",
    place=58,
    default=NO_ADMINISTRATION.name,
    choices=CHOICES,
    is_setting=True,
    inapplicable=_fits,
)
