"""The event that the cut of an administration awaits: the seed draws it on its own path (pure)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from torture.choices.administration.protocol import Administration, Moment
from torture.facts.evidence.documents import Document
from torture.facts.recording.events import Kind
from torture.facts.recording.roles import Role


class AdministrationCut(Document, frozen=True, kw_only=True):
    """One `CutPoint` of the administration, with the values that the seed drew for it.

    The trial issues the command at the moment of its `CutPlan`. It ignores the plan's aim.
    """

    moment: Moment
    event: Kind | None
    """None: the cut comes `delay_ms` later, without regard to events."""
    role: Role | None
    disk: str | None
    count: int
    delay_ms: float
    is_after_end: bool


def draw_administration_cut(
    administration: Administration | None, *, seed: int, moments: Sequence[Moment] = tuple(Moment)
) -> AdministrationCut | None:
    """The cut of this seed: each moment as often as the others; None without an administration."""
    if administration is None:
        return None
    generator = random.Random(f"administration/{seed}")
    moment = generator.choice(moments)
    point = generator.choice(tuple(administration.cut_points[moment]))
    return AdministrationCut(
        moment=moment,
        event=point.event,
        role=point.role,
        disk=point.disk,
        count=generator.randint(point.least, point.most),
        delay_ms=round(generator.uniform(0, point.delay_ms_max), 3),
        is_after_end=point.is_after_end,
    )
