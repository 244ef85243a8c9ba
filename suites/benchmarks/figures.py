"""The output of a benchmark: a line for each figure, and the figure's bound."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """The results of several rounds."""

    lowest: float
    median: float
    highest: float
    rounds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """The spread of at least one value."""
        return cls(
            lowest=min(values),
            median=statistics.median(values),
            highest=max(values),
            rounds=len(values),
        )

    def text(self, digits: int) -> str:
        """The median, and in brackets the lowest, the highest and their number."""
        return (
            f"median {self.median:,.{digits}f} (lowest {self.lowest:,.{digits}f}, "
            f"highest {self.highest:,.{digits}f}, {self.rounds} rounds)"
        )


class Figures:
    """Collects the figures of one benchmark. A figure is printed before it is judged."""

    def __init__(self, *, record_property: Callable[[str, object], None], lines: list[str]) -> None:
        self._record_property = record_property
        self._lines = lines

    def say(self, what: str, text: str) -> None:
        """Keep a figure in the test's report and for the end of the run."""
        self._record_property(what, text)
        self._lines.append(f"{what}: {text}")

    def at_least(self, what: str, ratios: Sequence[float], bound: float, *, detail: str) -> None:
        """Report the ratios' spread; fails when their median is below the bound."""
        spread = Spread.of(ratios)
        self.say(what, f"ratio {spread.text(3)}, bound >= {bound:g}; {detail}")
        assert spread.median >= bound, f"{what}: the median {spread.median:.3f} is below {bound:g}"

    def below(self, what: str, values: Sequence[float], bound: float, *, unit: str) -> None:
        """Report the values' spread; fails when their median is not below the bound."""
        spread = Spread.of(values)
        self.say(what, f"{spread.text(2)} {unit}, bound < {bound:g} {unit}")
        assert spread.median < bound, (
            f"{what}: the median {spread.median:.2f} is not below {bound:g}"
        )
