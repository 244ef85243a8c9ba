"""A measurement of speed, without a cut."""

from __future__ import annotations

from typing import ClassVar, Self

from torture.facts.evidence.documents import replace
from torture.facts.evidence.folder import Part
from torture.features.speed.documents import MeasuredDocument, MeasuredPlace
from torture.records.tasks.protocol import Task

MEASURED = "measured"
"""The origin of a measurement, which has no cut; its verdict only says that there was one."""
AUTO = 0
"""The slow motion that the measurement chooses by itself."""


class MeasureOrder(Task, frozen=True, kw_only=True, tag="measure"):
    """Jobs, links, and the length of each job. Each round has every job over every link."""

    has_cut: ClassVar[bool] = False
    origin: ClassVar[str] = MEASURED
    is_of_cell: ClassVar[bool] = False
    leaves: ClassVar[type[Part] | None] = MeasuredDocument

    place: MeasuredPlace = MeasuredPlace.VOLUME
    device: str = ""
    """The class of a log device that is measured alone."""
    jobs: tuple[str, ...] = ()
    links: tuple[str, ...] = ("",)
    """The empty one is not modelled."""
    rounds: int = 4
    slow_motion: int = AUTO
    """1: none; `AUTO`: the least in which the emulator's share is small enough."""
    size_mib: int = 256
    run_s: float = 6.0
    warm_up_s: float = 2.0
    modelled_s: float = 0.0
    """The least length of a job in the time of the modelled machines: slow motion makes it longer.

    The warm-up has half of it. A job whose rate still grows needs it: in slow motion some seconds are
    a few of its requests.
    """

    def in_slow_motion(self, times: int) -> Self:
        """The order with the length of its jobs in this slow motion."""
        least_s = self.modelled_s * times
        return replace(
            self, run_s=max(self.run_s, least_s), warm_up_s=max(self.warm_up_s, least_s / 2)
        )


TASK = MeasureOrder
