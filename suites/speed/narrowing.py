"""Measure each row of a table until its figures are narrow enough, or its passes are used up."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from suites.speed.questions import Row, cell_of
from suites.speed.tables import figures_of_row
from torture.choices.matrix.cells import Cell
from torture.features.speed.tasks import MeasureOrder
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.schedules.fixed import FixedSchedule

WIDTH_MAX = 1.2
"""The upper end of a narrow interval by its lower one."""


class NarrowingSchedule(FixedSchedule):
    """A queue of passes over rows that drops the waiting passes of a row with narrow figures.

    `passes_least` passes of each row are never dropped.
    """

    def __init__(
        self, specs: Sequence[TrialSpec], rows: Sequence[Row], *, passes_least: int
    ) -> None:
        super().__init__(specs)
        self._passes_least = passes_least
        self._rows = {_key(cell_of(row), row.order): row for row in rows}
        self._records: dict[Row, list[TrialRecord]] = {row: [] for row in rows}

    def give_back(self, spec: TrialSpec) -> None:
        """See `Schedule`; a pass of a row that has become narrow meanwhile is needless."""
        super().give_back(spec)
        self._drop_needless(spec)

    def record_ended(self, spec: TrialSpec, record: TrialRecord) -> None:
        """See `Schedule`."""
        super().record_ended(spec, record)
        self._records[self._row_of(spec)].append(record)
        self._drop_needless(spec)

    def _row_of(self, spec: TrialSpec) -> Row:
        assert isinstance(spec.task, MeasureOrder), "only measurements are scheduled here"
        return self._rows[_key(spec.cell, spec.task)]

    def _drop_needless(self, spec: TrialSpec) -> None:
        row = self._row_of(spec)
        records = self._records[row]
        if len(records) >= self._passes_least and is_narrow(row, records):
            self.drop(lambda waiting: self._row_of(waiting) == row)


def is_narrow(row: Row, records: Sequence[TrialRecord]) -> bool:
    """Whether more passes would tell nothing new: each figure is narrow, or is the emulator's."""
    return all(
        not figure.is_of_model or figure.mib_per_s.width <= WIDTH_MAX
        for figure in figures_of_row(row, records)
    )


def _key(cell: Cell, order: MeasureOrder) -> tuple[Cell, MeasureOrder]:
    """Equal for all passes of a row, and for no two rows."""
    return cell, replace(order, rounds=0, slow_motion=0)
