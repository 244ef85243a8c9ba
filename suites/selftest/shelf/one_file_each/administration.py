"""A command that nothing comes of, cut at once."""

from __future__ import annotations

from torture.choices.administration.protocol import Administration, CutPoint, Outcome, Printed


def read(printed: Printed) -> Outcome:
    """Its output is empty before and after."""
    return Outcome.DONE if printed.text("dummy-state") else Outcome.UNDONE


ADMINISTRATION = Administration(
    name="dummyadministration",
    words="a dummy administers",
    script="dummy-administer",
    read=read,
    questions=(("dummy-state",),),
    prepare="dummy-prepare-pool",
    spares=1,
    start=(CutPoint(),),
    amid=(CutPoint(),),
    end=(CutPoint(),),
)
