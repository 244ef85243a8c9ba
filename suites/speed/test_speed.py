"""Published tables of speed, measured in slow motion: each has figures, and keeps its order.

Disks, link and timers are modelled, and take N times as long. The guests' processors do not. So an
emulated guest is as quick beside its disks as a real one, and figures are multiplied by N.
`--slow-motion` sets N. A figure whose time is mostly the emulator's is left out.
"""

from __future__ import annotations

import pytest

from suites.speed.questions import R4, Question
from suites.speed.tables import figures_of
from torture.facts.axes.pool_disks import SlogClass
from torture.machines.nas.devices import LOG_PROFILES
from torture.records.record.trials import TrialRecord, needing_attention

_TOLERANCE = 0.25


def test_a_published_table_is_measured(question: Question, measured: list[TrialRecord]) -> None:
    complaints = [record.error for record in needing_attention(measured)]
    assert not complaints, complaints
    figures = figures_of(question, measured)
    assert {figure.row for figure in figures} == {row.words for row in question.rows}
    if question is R4:
        _must_be_as_published(measured)


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
