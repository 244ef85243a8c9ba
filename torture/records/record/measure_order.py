"""The instructions of a measurement: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from torture.facts.speed.measured_document import MeasuredPlace

AUTO = 0
"""The slow motion that the measurement chooses by itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasureOrder:
    """Jobs, links, and the length of each job. Each round has every job over every link."""

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
            self,
            run_s=max(self.run_s, least_s),
            warm_up_s=max(self.warm_up_s, least_s / 2),
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The order of `asdict`'s data. Raises `ValueError`, `KeyError`, `TypeError`."""
        return cls(
            place=MeasuredPlace(data["place"]),
            device=str(data["device"]),
            jobs=tuple(data["jobs"]),
            links=tuple(data["links"]),
            rounds=int(data["rounds"]),
            slow_motion=int(data["slow_motion"]),
            size_mib=int(data["size_mib"]),
            run_s=float(data["run_s"]),
            warm_up_s=float(data["warm_up_s"]),
            modelled_s=float(data.get("modelled_s", 0.0)),
        )
