"""Published tables of speed, measured in slow motion: each has figures, and keeps its order.

Disks, link and timers are modelled, and take N times as long. The guests' processors do not. So an
emulated guest is as quick beside its disks as a real one, and figures are multiplied by N.
`--slow-motion` sets N. A figure whose time is mostly the emulator's is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from suites.speed.questions import R2, R3, R4, Question
from suites.speed.tables import Figure, figures_of
from torture.facts.axes.pool_disks import SlogClass
from torture.machines.nas.pool import LOG_PROFILES
from torture.records.record.trials import TrialRecord, needing_attention

_TOLERANCE = 0.25
_SLOWER = {
    R2.name: (
        ("nothing", "zfs_nocacheflush=1"),
        ("zfs_nocacheflush=1", "sync=disabled"),
        ("zfs_nocacheflush=1", "async export"),
    ),
    R3.name: (("intent log in the pool", "a SATA SSD as SLOG"),),
}
"""Rows of a published table whose rates differ by more than those of two hosts: the first is less."""


def test_a_published_table_is_measured(question: Question, measured: list[TrialRecord]) -> None:
    complaints = [record.error for record in needing_attention(measured)]
    assert not complaints, complaints
    figures = figures_of(question, measured)
    assert {figure.row for figure in figures} == {row.words for row in question.rows}
    if question is R4:
        _must_be_as_published(measured)
    must_keep_the_order(question, figures)


def _must_be_as_published(measured: list[TrialRecord]) -> None:
    """Each class whose figure is the model's takes its published time."""
    for figure, row in zip(figures_of(R4, measured), R4.rows, strict=True):
        profile = LOG_PROFILES[SlogClass(row.order.device)]
        published_ms = (profile.write_us + profile.flush_us) / 1000
        if profile.mib_per_s:
            published_ms += 4 / 1024 / profile.mib_per_s * 1000
        if figure.is_of_model:
            expected = pytest.approx(published_ms, rel=_TOLERANCE)
            assert figure.mean_ms.value == expected, f"{figure.row}: {figure.mean_ms}"


def must_keep_the_order(question: Question, figures: Sequence[Figure]) -> None:
    """The published order of the rates. Without SLOG and tricks R2 has a tenth of the best, at most."""
    rates = {figure.row: figure.mib_per_s for figure in figures}
    for less, more in _SLOWER.get(question.name, ()):
        assert rates[less].value < rates[more].value, (less, more)
    if question is R2:
        nothing, best = rates["nothing"], rates["async export"]
        assert nothing.low is not None
        assert best.high is not None
        assert nothing.low < best.high / 10, f"{nothing} is no tenth of {best}"
