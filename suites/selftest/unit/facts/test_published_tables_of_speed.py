"""The published tables: whole, and in words that this version of the suite knows."""

from __future__ import annotations

import pytest

from suites.speed.questions import QUESTIONS
from torture.choices.matrix.cells import Cell
from torture.facts.axes.pool_disks import SlogClass
from torture.facts.speed.jobs import SpeedJob
from torture.facts.speed.link import Link
from torture.facts.speed.published import R4, TABLES, FigureKind, Ours, PublishedTable


def figures_of(table: PublishedTable) -> list[Ours]:
    found = []
    for row in table.rows:
        for one in row.ours:
            while one is not None:
                found.append(one)
                one = one.over
    return found


@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_a_table_has_a_text_for_each_column_and_names_known_measurements(
    table: PublishedTable,
) -> None:
    for row in table.rows:
        assert len(row.theirs) == len(table.columns)
        assert len(row.ours) in (0, len(table.columns))
        assert any(row.theirs) or row.ours
    for one in figures_of(table):
        assert Cell.parse(one.cell).name == one.cell
        assert SpeedJob.parse(one.job).name == one.job
        assert one.link in ("", *Link)
        assert one.device in ("", *SlogClass)
        assert one.over is None or one.over.kind is one.kind
    assert table.why


def test_each_class_of_log_device_is_in_the_table_of_these_once() -> None:
    assert [one.device for one in figures_of(R4)] == list(SlogClass)
    assert {one.kind for one in figures_of(R4)} == {FigureKind.MS}


def test_the_suite_measures_every_figure_of_its_tables() -> None:
    """A figure that no job gives would stay empty for ever."""
    for table in TABLES:
        measured = {
            (row.cell, row.order.device, job, link)
            for question in QUESTIONS
            if question.published == table.summary
            for row in question.rows
            for job in row.order.jobs
            for link in row.order.links
        }
        wanted = {(one.cell, one.device, one.job, one.link) for one in figures_of(table)}
        assert wanted <= measured, table.name
