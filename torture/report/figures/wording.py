"""Cells in words: common choices are stated once, varying ones for each cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from torture.choices.matrix.cells import AXES, CHOICES, DEFAULTS
from torture.facts.stats.comparison import Comparison
from torture.facts.stats.rates import Rate, in_words
from torture.report.figures.cell_figures import CellRates, rates_either_way
from torture.report.reading.tally import Audited

AXIS_TITLES = {field: axis.title for field, axis in AXES.items()}
"""The title of each axis, in the axes' order; unknown axes follow, by their own name."""

_LONGEST_S, _FASTEST_PER_S = 999_999, 999_999_999_999
"""No trial lasts longer, and no load is faster: records of nonsense fill no page with digits."""

_ALWAYS_SHOWN = tuple(field for field, axis in AXES.items() if axis.is_always_shown)
"""A page states these axes even if all cells have the same choice."""

_SETTINGS = frozenset(field for field, axis in AXES.items() if axis.is_setting)
"""A page omits these axes where they have their default."""


def choice_in_words(choice: str) -> str:
    """E.g. `the VM lives on` for `nasonly`; a choice without words is its own name."""
    return CHOICES[choice].words if choice in CHOICES else choice


def explained_in_words(choice: str) -> str:
    """The explanation of a choice, e.g. `e.g. a consumer SSD that honours flush`; may be empty.

    Empty, too, where the words have it already.
    """
    explained = CHOICES[choice].explained if choice in CHOICES else ""
    return "" if explained in choice_in_words(choice) else explained


@lru_cache(maxsize=10_000)
def choice_rank(axis: str, choice: str) -> tuple[int, str]:
    """The place of a choice on its axis; unknown choices come last, by name."""
    known = AXES[axis].names if axis in AXES else ()
    return (known.index(choice) if choice in known else len(known), choice)


def varying_axes(cells: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """The axes on which these cells differ, in the order of `AXIS_TITLES`; empty choices do not count."""
    choices: dict[str, set[str]] = {}
    for axes in cells:
        for axis, choice in axes.items():
            if choice:
                choices.setdefault(axis, set()).add(choice)
    order = [*AXIS_TITLES, *sorted(set(choices) - set(AXIS_TITLES))]
    return tuple(axis for axis in order if len(choices.get(axis, ())) > 1)


def cell_in_words(axes: Mapping[str, str], varying: Sequence[str]) -> str:
    """E.g. `sync=always, no SLOG, the VM dies too`: the axes of the question, and those that vary.

    Like a cell's name it omits defaults; `defaults_in_words` states these once.
    """
    shown = [
        axis
        for axis in dict.fromkeys([*AXIS_TITLES, *axes])
        if (axis in _ALWAYS_SHOWN or axis in varying)
        and axes.get(axis)
        and axes[axis] != DEFAULTS.get(axis)
    ]
    return ", ".join(choice_in_words(axes[axis]) for axis in shown)


def common_in_words(cells: Sequence[Mapping[str, str]], varying: Sequence[str]) -> str:
    """The common choices that `cell_in_words` omits, e.g. `iSCSI, one data disk, btrfs`."""
    first: dict[str, str] = {}
    for axes in cells:
        first |= {axis: choice for axis, choice in axes.items() if choice}
    left_out = [
        axis
        for axis in dict.fromkeys([*AXIS_TITLES, *first])
        if axis in first and axis not in varying and axis not in _ALWAYS_SHOWN
        if axis not in _SETTINGS or first[axis] != DEFAULTS[axis]
    ]
    return ", ".join(choice_in_words(first[axis]) for axis in left_out)


def defaults_in_words(varying: Sequence[str]) -> str:
    """The defaults of the varying axes, which `cell_in_words` omits; may be empty."""
    return ", ".join(choice_in_words(DEFAULTS[axis]) for axis in varying if axis in DEFAULTS)


def duration_in_words(milliseconds: float) -> str:
    """E.g. `85 ms`, `0.7 s`, `5.1 s`, `12 s`: two digits; seconds from 100 ms on. It has a bound."""
    if milliseconds < 99.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds > _LONGEST_S:
        return f"over {_LONGEST_S:,} s"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"


def latency_in_words(milliseconds: float | None) -> str:
    """E.g. `0.42 ms`, `3.7 ms`, `85 ms`, `310 ms`, `1.2 s`; empty if unknown."""
    if milliseconds is None:
        return ""
    if milliseconds >= 999.5:
        return duration_in_words(milliseconds)
    digits = 2 if milliseconds < 0.995 else 1 if milliseconds < 9.95 else 0
    return f"{milliseconds:.{digits}f} ms"


def speed_in_words(per_s: float | None) -> str:
    """E.g. `8.4`, `120`; empty if unknown. It has a bound."""
    if per_s is None:
        return ""
    if abs(per_s) > _FASTEST_PER_S:
        return f"beyond {math.copysign(_FASTEST_PER_S, per_s):,.0f}"
    return f"{per_s:.1f}" if per_s < 9.95 else f"{per_s:,.0f}"


def difference_in_words(comparison: Comparison) -> str:
    """The difference in percentage points, its interval rounded outward, e.g. `+45 % [+12 to +71]`."""
    if comparison.difference is None:
        return "-"
    low, high = math.floor(comparison.low * 100), math.ceil(comparison.high * 100)
    points = round(comparison.difference * 100)
    return f"{_signed(points)} % [{_signed(low)} to {_signed(high)}]"


def _signed(points: int) -> str:
    return f"{points:+d}" if points else "0"


def unknown_in_words(cells: Sequence[CellRates]) -> list[str]:
    """A sentence per cell with unresolved trials: its rate of loss with these counted either way."""
    sentences = []
    for cell in cells:
        if cell.unresolved:
            least, most = (in_words(rate) for rate in cell.either_way(cell.loss))
            sentences.append(
                f"{cell.cell}: {cell.unresolved} inconclusive; loss {least} if these lost nothing, "
                f"{most} if they did"
            )
    return sentences


def either_way_in_words(rate: Rate, unresolved: int) -> str:
    """E.g. `10 inconclusive: as safe 0/40 0 % [0-8.81 %], as lost 10/40 25 % [12-42 %]`.

    Empty without unresolved trials, and without a rate.
    """
    if not unresolved or not rate.trials:
        return ""
    safe, lost = (in_words(counted) for counted in rates_either_way(rate, unresolved))
    return f"{unresolved} inconclusive: as safe {safe}, as lost {lost}"


def rate_in_words(rate: Rate, unresolved: int) -> str:
    """As `in_words`, and the rates with unresolved trials counted either way."""
    return "; ".join(filter(None, (in_words(rate), either_way_in_words(rate, unresolved))))


def audit_in_words(audited: Audited) -> str:
    """E.g. `4,180 acknowledgements, 21,034 writes and 310 transaction groups audited, 0 uncovered`.

    Empty when nothing was audited.
    """
    if not audited.acknowledgements + audited.completions + audited.txgs:
        return ""
    groups = "transaction group" + ("" if audited.txgs == 1 else "s")
    writes = f", {audited.completions:,} writes" if audited.completions else ""
    looked_at = (
        f"{audited.acknowledgements:,} acknowledgements{writes} and {audited.txgs:,} {groups}"
    )
    return f"{looked_at} audited, {audited.broken:,} uncovered"
