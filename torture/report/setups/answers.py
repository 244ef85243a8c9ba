"""The answer for each set-up: its own cell, or the nearest one that was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import DEFAULTS, Cell
from torture.facts.stats.rates import Rate, rate_of
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.report.figures.cell_figures import CellFigures
from torture.report.figures.pairs import axes_rank
from torture.report.reading.tally import guarantee_in
from torture.report.setups import Happening, Near, Option, SetUp, controls, setups

_FARTHEST = 40
_SETUPS_MIN = 5
"""A run of few cells answers for few set-ups: its page begins with its cells, and need not wait."""
_BASE = Cell.parse("iscsi-standard-noslog-ext4-bothdie")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The measurement that answers for a set-up in one event."""

    happening: Happening
    change: Mapping[str, str]
    """Of `Happening.changes`."""
    asked: Cell | None
    """The set-up's own cell; None where the suite has no such cell."""
    figures: CellFigures | None
    """Of the nearest measured cell; None where no cell is near."""
    differing: tuple[str, ...] = ()
    """The axes on which that one differs."""

    @property
    def guarantee(self) -> Guarantee | None:
        """Theory's, of the set-up's own cell."""
        return None if self.asked is None else _guarantee(self.asked)

    @property
    def may_lose(self) -> bool:
        """Whether theory expects a loss."""
        return self.guarantee not in (None, Guarantee.SAFE, Guarantee.MAY_GO_OFFLINE)

    @property
    def is_own(self) -> bool:
        """Whether the set-up's own cell was measured, if with other disks, loads or filesystems."""
        return self.figures is not None and set(self.differing) <= controls().near.small

    @property
    def is_harmed(self) -> bool:
        """Whether a cut lost or damaged something."""
        return self.figures is not None and self.figures.harm.events > 0

    @property
    def offline(self) -> int:
        """The cuts after which the disk was dead, and nothing was lost."""
        return 0 if self.figures is None else self.figures.verdicts.get(Verdict.OFFLINE, 0)

    @property
    def badness(self) -> tuple[object, ...]:
        """Sorts answers, the worst last."""
        if self.figures is None:
            return (-1,)
        is_bad = self.is_harmed or self.offline > 0
        return (0, is_bad, self.is_own, self.is_harmed, *self.figures.harmfulness[:2])


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A set-up with all its choices but the event."""

    setup: SetUp
    on: Option
    sync: Option
    slog: Option
    layout: Option
    answers: tuple[Answer, ...]

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """The names of its choices, in the order of `CONTROLS`."""
        options = (self.setup.name, self.on.name, self.sync.name, self.slog.name)
        return (*options, self.layout.name)

    @property
    def family(self) -> tuple[str, str, str]:
        """The names of its choices without sync and SLOG."""
        return self.setup.name, self.on.name, self.layout.name

    @property
    def is_harmed(self) -> bool:
        """Whether a cut of any measured event lost or damaged something."""
        return any(answer.is_harmed for answer in self.answers)

    @property
    def may_lose(self) -> bool:
        """Whether theory expects a loss in any event."""
        return any(answer.may_lose for answer in self.answers)

    @property
    def is_safe(self) -> bool:
        """Whether no measured event harmed it or took its disk away."""
        return not any(answer.is_harmed or answer.offline for answer in self.answers)

    @property
    def worst(self) -> Answer:
        """Its worst measured event."""
        return max(self.answers, key=lambda answer: answer.badness)

    @property
    def harm(self) -> Rate:
        """The harmed cuts of all its events, each cell once."""
        measured = {own.figures.cell: own.figures.harm for own in self.answers if own.figures}
        return rate_of(
            sum(harm.events for harm in measured.values()),
            sum(harm.trials for harm in measured.values()),
        )

    @property
    def cuts(self) -> int:
        """The cuts of its events, each cell once."""
        return self.harm.trials


class Measured:
    """The measured cells, to be searched for the nearest."""

    def __init__(self, cells: Sequence[CellFigures]) -> None:
        self._near = controls().near
        self._by_same: dict[tuple[str, ...], list[CellFigures]] = {}
        for figures in cells:
            if figures.conclusive and guarantee_in(figures.guarantee) is not None:
                self._by_same.setdefault(self._key(figures.axes), []).append(figures)

    def _key(self, axes: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(_choice(axes, axis) for axis in sorted(self._near.same))

    def nearest(self, asked: Cell) -> tuple[CellFigures | None, tuple[str, ...]]:
        """The nearest cell with the same guarantee, and the axes on which it differs."""
        axes = _axes(asked)
        kind = self._near.kind_of(axes["transport"])
        guarantee = _guarantee(asked)
        among = [
            figures
            for figures in self._by_same.get(self._key(axes), ())
            if figures.axes.get("transport") in kind
            and guarantee_in(figures.guarantee) is guarantee
        ]
        if not among:
            return None, ()
        best = min(
            among,
            key=lambda own: (
                _distance(axes, own.axes, self._near),
                -own.harm.trials,
                axes_rank(own.axes),
            ),
        )
        return best, _differing(axes, best.axes)


def _choice(axes: Mapping[str, str], axis: str) -> str:
    return axes.get(axis) or DEFAULTS.get(axis, "")


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(axis for axis in one if _choice(one, axis) != _choice(other, axis))


def _distance(one: Mapping[str, str], other: Mapping[str, str], near: Near) -> int:
    return sum(near.far.get(axis, _FARTHEST) for axis in _differing(one, other))


def settings_of(cells: Sequence[CellFigures]) -> tuple[Setting, ...]:
    """Every set-up with every choice; none where the own cells of only a few were measured."""
    measured = Measured(cells)
    known = [setup for setup in setups() if _is_known(setup, measured)]
    if len(known) < _SETUPS_MIN:
        return ()
    return tuple(
        _setting(setup, options, measured) for setup in setups() for options in _options(setup)
    )


def _is_known(setup: SetUp, measured: Measured) -> bool:
    """Whether its own cell was measured without a SLOG, on one disk, in any event."""
    own = controls()
    return any(
        answer.is_own
        for on, sync in product(setup.hosts, own.sync)
        for answer in _setting(setup, (on, sync, own.slog[0], own.layout[0]), measured).answers
    )


def beside(
    settings: Sequence[Setting],
) -> dict[tuple[str, str, str], dict[tuple[str, str], Setting]]:
    """The settings of each family, by sync and SLOG."""
    families: dict[tuple[str, str, str], dict[tuple[str, str], Setting]] = {}
    for own in settings:
        families.setdefault(own.family, {})[own.sync.name, own.slog.name] = own
    return families


def _options(setup: SetUp) -> Iterator[tuple[Option, ...]]:
    own = controls()
    return product(setup.hosts, own.sync, own.slog, own.layout)


def _setting(setup: SetUp, options: tuple[Option, ...], measured: Measured) -> Setting:
    on, sync, slog, layout = options
    chosen = setup.cell | on.change
    chosen |= {"sync": sync.name, "slog": slog.name, "layout": layout.name}
    answers = tuple(
        _answer(setup, happening, change, chosen, measured)
        for happening in controls().event
        if not happening.of or setup.on in happening.of
        for change in happening.changes
    )
    return Setting(setup=setup, on=on, sync=sync, slog=slog, layout=layout, answers=answers)


def _answer(
    setup: SetUp,
    happening: Happening,
    change: Mapping[str, str],
    chosen: Mapping[str, str],
    measured: Measured,
) -> Answer:
    patience = {"patience": setup.patience} if happening.waits else {}
    asked = _cell_of(tuple({**chosen, **change, **patience}.items()))
    moved: tuple[str, ...] = ()
    if asked is None:
        # the NAS that was asked for has no such cell, and another one may have it
        asked = _cell_of(tuple({**chosen, **setup.cell, **change, **patience}.items()))
        moved = ("transport",)
    figures, differing = (None, ()) if asked is None else measured.nearest(asked)
    differing = tuple(dict.fromkeys((*moved, *differing)))
    return Answer(
        happening=happening, change=change, asked=asked, figures=figures, differing=differing
    )


@lru_cache(maxsize=2**16)
def _cell_of(choices: tuple[tuple[str, str], ...]) -> Cell | None:
    """The cell with these choices; None where they make no sense together."""
    try:
        return _BASE.but(**dict(choices))
    except ValueError:
        return None


@lru_cache(maxsize=2**16)
def _guarantee(cell: Cell) -> Guarantee:
    return guarantee_of(cell)


@lru_cache(maxsize=2**16)
def _axes(cell: Cell) -> dict[str, str]:
    return cell.axes
