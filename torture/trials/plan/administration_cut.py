"""What the cut of an administration waits for, drawn from the seed on a path of its own (pure)."""

from __future__ import annotations

import random
from dataclasses import dataclass

from torture.choices.administration.protocol import Administration, Moment
from torture.facts.evidence.documents import Document
from torture.facts.recording.events import Kind
from torture.facts.recording.roles import Role


@dataclass(frozen=True, kw_only=True, slots=True)
class AdministrationCut(Document):
    """One `CutPoint` of the administration, with what was drawn of it.

    The command is issued when the moment of the trial's `CutPlan` has come; its aim is not taken.
    """

    moment: Moment
    event: Kind | None
    """None: the cut comes `delay_ms` later, whatever happens then."""
    role: Role | None
    disk: str | None
    count: int
    delay_ms: float
    is_after_end: bool


def draw_administration_cut(
    administration: Administration | None, *, seed: int
) -> AdministrationCut | None:
    """The cut of this seed: each moment as often as the others; None where nobody administers."""
    if administration is None:
        return None
    generator = random.Random(f"administration/{seed}")
    moment = generator.choice(tuple(Moment))
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
