"""A command that nothing comes of, cut at once."""

from __future__ import annotations

from torture.choices.administration.protocol import (
    Administration,
    CutPoint,
    Moment,
    Outcome,
    Printed,
)
from torture.facts.axes.axis import Choice


def read(printed: Printed) -> Outcome:
    """What it prints is empty before and after."""
    return Outcome.DONE if printed.text("dummy-state") else Outcome.UNDONE


CHOICE: Choice[Administration | None] = Choice(
    name="dummyadministration",
    value=Administration(
        script="dummy-administer",
        read=read,
        questions=(("dummy-state",),),
        prepare="dummy-prepare-pool",
        spares=1,
        cut_points={moment: (CutPoint(),) for moment in Moment},
    ),
    words="a dummy administers",
)
