"""The oracle's rules for operations that write a part of a block."""

from __future__ import annotations

from typing import Any

import pytest

from suites.selftest.unit.oracle_story import Story
from torture.verdict.verdicts import Verdict

PART = range(2, 4)


def test_a_part_of_a_block_leaves_the_rest_of_it_as_it_was() -> None:
    story = Story().acked("create", 1, 0).acked("overwrite", 2, 0, size=1, sectors=PART)
    story.acked("create", 3, 0, file=1, writer=1)
    findings = story.finds([[1, 1, 2, 2, 1, 1, 1, 1]], [3])
    assert findings.verdict is Verdict.INTACT
    assert (findings.torn, findings.torn_in_flight) == (0, 0)


@pytest.mark.parametrize(
    ("sectors", "damage", "lost"),
    [
        ([1, 1, 1, 1, 1, 1, 1, 1], "stale", 1),
        ([1, 1, 2, 1, 1, 1, 1, 1], "stale", 1),
        ([1, 1, 2, "zero", 1, 1, 1, 1], "missing", 2),
        ([2, 2, 2, 2, 2, 2, 2, 2], "foreign", 1),
        ([1, 1, 2, 2, 2, 1, 1, 1], "foreign", 1),
        ([1, 1, 2, 2, 1, 1, 1, "garbage"], "torn", 1),
        ([1, 1, 2, 2, 1, 1, 1, "foreign:7:9:0:0:2"], "foreign", 1),
    ],
)
def test_an_acknowledged_part_of_a_block_allows_nothing_else(
    sectors: list[Any], damage: str, lost: int
) -> None:
    story = Story().acked("create", 1, 0).acked("overwrite", 2, 0, size=1, sectors=PART)
    findings = story.acked("create", 3, 0, file=1, writer=1).finds([sectors], [3])
    assert findings.verdict is Verdict.CORRUPTED
    assert getattr(findings, damage) == 1
    assert findings.lost == lost


def test_a_part_that_is_gone_blames_nobody_who_wrote_elsewhere_in_the_block() -> None:
    story = Story().acked("create", 1, 0).acked("overwrite", 2, 0, size=1, sectors=PART)
    story.acked("overwrite", 3, 0, size=1, sectors=range(5, 6))
    findings = story.finds([[1, 1, 1, 1, 1, 3, 1, 1]])
    assert (findings.verdict, findings.lost) == (Verdict.CORRUPTED, 1)
