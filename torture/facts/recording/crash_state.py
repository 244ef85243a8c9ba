"""Crash states: the disks' content after a cut, as a small file beside a recording.

native/README.md has the format, and calls the file a view.
"""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from torture.errors import HarnessError
from torture.facts.evidence.documents import Document
from torture.facts.evidence.strict_json import strict_json
from torture.files import write_whole

_U64 = 1 << 64


class Policy(StrEnum):
    """Which of the completed writes that no flush covers survive."""

    ALL = "all"
    """All survive: a disk with power-loss protection."""
    FLUSHED = "flushed"
    """None survives."""
    SUBSET = "subset"
    """Each survives or not, by the seed."""
    TORN = "torn"
    """Each sector of each write survives or not, by the seed; in-flight writes included."""
    LYING = "lying"
    """As `flushed`, but flushes and FUA of the last `lying_ms` have no effect."""
    PREFIX = "prefix"
    """Of each write, in-flight ones included, the seed's number of first sectors survives: some, not all.
    """
    OLDEST = "oldest"
    """The writes completed first survive; how many, by the seed."""
    BUT_FEW = "but-few"
    """All survive but one or two, by the seed."""
    EXPLICIT = "explicit"
    """The `survivors` survive."""


class InFlight(StrEnum):
    """Which writes in flight survive, where the policy does not decide it."""

    GONE = "gone"
    """None survives."""
    WHOLE = "whole"
    """Each survives or not, by the seed."""
    TORN = "torn"
    """Each sector of each write survives or not, by the seed."""


_CACHE_POLICIES = frozenset(Policy) - {Policy.ALL, Policy.EXPLICIT}
_WITH_IN_FLIGHT = frozenset(Policy) - {Policy.TORN, Policy.PREFIX, Policy.EXPLICIT}
_NUMBERS = {
    "lying_ms": _CACHE_POLICIES - {Policy.FLUSHED},
    "held_ms": _CACHE_POLICIES,
    "held_bytes": _CACHE_POLICIES,
}
"""The numbers of a disk's state, each with the policies that take it."""


Torn = tuple[int, tuple[int, ...]]
"""A write of which only these sectors survive: its submission's number, and the sectors."""
Survivor = int | Torn
"""A write that survives as a whole, by its submission's number, or a torn one."""


class DiskState(Document, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which writes of one disk survive.

    `survivors` belongs to `explicit`; `lying_ms`, `held_ms` and `held_bytes` belong to the policies of
    caches. Raises `ValueError` for fields that contradict the policy.
    """

    policy: Policy
    lying_ms: int | None = None
    held_ms: int | None = None
    """The cache holds no write that completed this long before the cut; None: no limit."""
    held_bytes: int | None = None
    """The cache holds only this many bytes, the last completed; None: no limit."""
    in_flight: InFlight = InFlight.GONE
    survivors: tuple[Survivor, ...] = ()

    def __post_init__(self) -> None:
        if self.policy is Policy.LYING and self.lying_ms is None:
            raise ValueError(f"{self.policy} needs `lying_ms`")
        for name, policies in _NUMBERS.items():
            if (number := getattr(self, name)) is None:
                continue
            if self.policy not in policies:
                raise ValueError(f"`{name}` has no place beside {self.policy}")
            _must_fit(name, number)
        if self.in_flight is not InFlight.GONE and self.policy not in _WITH_IN_FLIGHT:
            raise ValueError(f"`in_flight` has no place beside {self.policy}")
        if self.survivors and self.policy is not Policy.EXPLICIT:
            raise ValueError(f"`survivors` belongs to `explicit`, and only there: {self.policy}")
        for submission, sectors in (listed := self.listed).items():
            _must_fit(f"survivor {submission}", submission, *(sectors or ()))
        if len(listed) != len(self.survivors):
            raise ValueError("a submission survives twice")

    @property
    def listed(self) -> dict[int, tuple[int, ...] | None]:
        """The survivors' submissions, with the sectors of each; None: it survives as a whole."""
        return dict((one, None) if isinstance(one, int) else one for one in self.survivors)

    def as_json(self) -> dict[str, Any]:
        """As plain data, with the fields alone that the policy takes."""
        plain = super().as_json()
        if self.in_flight is InFlight.GONE:
            del plain["in_flight"]
        if self.policy is Policy.EXPLICIT:
            plain.setdefault("survivors", [])
        return plain


class CrashState(Document, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A crash state: a recording, its last event before the cut, and the surviving writes.

    A disk of the recording that is not in `disks` is gone. Raises `ValueError` for fields out of range.
    An unknown field is an error, too: a misspelt one would silently be another crash state.
    """

    schema: Literal[1] = 1
    recording: Path
    cut: int
    seed: int
    """64 bits; `subset` and `torn` draw from it."""
    disks: dict[str, DiskState]

    def __post_init__(self) -> None:
        _must_fit("cut and seed", self.cut, self.seed)


def write_crash_state(path: Path, view: CrashState) -> None:
    """Write a crash state atomically; its path of the recording is relative to the file's folder.

    So a folder that holds both can be moved. Raises `HarnessError` when the file cannot be written.
    """
    try:
        # resolved first: `..` behind a symbolic link leads out of the link's target
        recording = os.path.relpath(view.recording.resolve(), path.parent.resolve())
        text = json.dumps(replace(view, recording=Path(recording)).as_json(), indent=1) + "\n"
        write_whole(path, text.encode())
    except OSError as error:
        raise HarnessError(
            f"cannot write the view {path}: {error}", hint=f"df {path.parent}"
        ) from error


def read_crash_state(path: Path) -> CrashState:
    """The crash state in a file, its recording resolved; raises `HarnessError` for an unreadable file."""
    try:
        view = CrashState.from_json(strict_json(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise HarnessError(
            f"no readable view in {path}: {error}",
            hint="torture/machines/shelf/native/README.md has the format",
        ) from error
    return replace(view, recording=(path.parent / view.recording).resolve())


def _must_fit(what: str, *numbers: int) -> None:
    if not all(0 <= number < _U64 for number in numbers):
        raise ValueError(f"{what} has to be a number from 0 to 2**64 - 1, not {numbers}")
