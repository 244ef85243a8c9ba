"""The tiers of the project's own tests: what each is, where it lives, what a session runs of them.

A test's tier is its folder. Who names neither tests nor a tier gets the pure one: seconds, no machine.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

HOME = Path(__file__).resolve().parent


class Tier(StrEnum):
    """A tier, by its marker."""

    MACHINES = "machines"
    SHELF = "shelf"
    BROWSER = "browser"
    PROGRAMS = "programs"
    PURE = "pure"

    @property
    def meaning(self) -> str:
        """The needs of its tests."""
        return _MEANINGS[self]


_MEANINGS = {
    Tier.MACHINES: "boots virtual machines",
    Tier.SHELF: "runs the real nbdkit plugin, right and wrong builds of it",
    Tier.BROWSER: "looks at the report's page in a Chromium",
    Tier.PROGRAMS: "runs whole programs: linters, type checker, pytest itself, tools, the guests' loads",
    Tier.PURE: "none of these: quick, what a bare `pytest` runs",
}
_FOLDERS = {
    "machinery": Tier.MACHINES,
    "shelf": Tier.SHELF,
    "browser": Tier.BROWSER,
    "runs": Tier.MACHINES,
    "programs": Tier.PROGRAMS,
    "loads": Tier.PROGRAMS,
    "unit": Tier.PURE,
}
"""In the order in which several processes begin them: those that take longest first. Whole runs begin
only once most of the trials in the background of `machinery` are over."""

_TOGETHER = frozenset({"machinery", "browser"})
"""The tests of these folders share, or load, things that cannot be had twice."""


def tier_of(path: Path) -> Tier | None:
    """The tier of a test's file or of a folder; None where there is none of ours.

    Raises `KeyError` for a folder of tests that has no tier.
    """
    folder = _folder_of(path)
    return None if folder is None else _FOLDERS[folder]


def rank_of(path: Path) -> int:
    """How early the tests of a file begin where several processes share them, from 0."""
    folder = _folder_of(path)
    return len(_FOLDERS) if folder is None else list(_FOLDERS).index(folder)


def together_with(path: Path) -> str | None:
    """The folder whose tests one process runs, all of them; None where each file is on its own."""
    folder = _folder_of(path)
    return folder if folder in _TOGETHER else None


def _folder_of(path: Path) -> str | None:
    """Which of our folders a test's file lies in, or is; None when it is none of ours."""
    if HOME not in path.parents:
        return None
    folder = path.relative_to(HOME).parts[0]
    return None if folder.endswith(".py") else folder


def tiers_of(expression: str) -> frozenset[Tier]:
    """The tiers that an expression of `-m` may choose from: one alone by its name, else any."""
    try:
        return frozenset({Tier(expression.strip())})
    except ValueError:
        return frozenset(Tier)
