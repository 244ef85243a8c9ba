"""The tiers of the project's own tests: what each is, where it lives, what a session runs of them.

A test's tier is its folder. Who names neither tests nor a tier gets the pure one: seconds, no machine.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

HOME = Path(__file__).resolve().parent


class Tier(StrEnum):
    """A tier, by its marker. In this order they are handed out to several processes."""

    MACHINES = "machines"
    SHELF = "shelf"
    BROWSER = "browser"
    PROGRAMS = "programs"
    PURE = "pure"

    @property
    def meaning(self) -> str:
        """What its tests need."""
        return _MEANINGS[self]

    @property
    def stays_together(self) -> bool:
        """Whether one process runs all of it: what its tests share, or load, cannot be had twice."""
        return self in (Tier.MACHINES, Tier.BROWSER)


_MEANINGS = {
    Tier.MACHINES: "boots virtual machines",
    Tier.SHELF: "runs the real nbdkit plugin, right and wrong builds of it",
    Tier.BROWSER: "looks at the report's page in a Chromium",
    Tier.PROGRAMS: "runs whole programs: linters, type checker, pytest itself, tools",
    Tier.PURE: "none of these: quick, what a bare `pytest` runs",
}
_FOLDERS = {
    "machinery": Tier.MACHINES,
    "shelf": Tier.SHELF,
    "browser": Tier.BROWSER,
    "programs": Tier.PROGRAMS,
    "unit": Tier.PURE,
}


def tier_of(path: Path) -> Tier | None:
    """The tier of a test's file or of a folder; None where there is none of ours.

    Raises `KeyError` for a folder of tests that has no tier.
    """
    if HOME not in path.parents:
        return None
    folder = path.relative_to(HOME).parts[0]
    return None if folder.endswith(".py") else _FOLDERS[folder]


def tiers_of(expression: str) -> frozenset[Tier]:
    """The tiers that an expression of `-m` may choose from: one alone by its name, else any."""
    try:
        return frozenset({Tier(expression.strip())})
    except ValueError:
        return frozenset(Tier)
