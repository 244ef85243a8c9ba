"""Crash states: the disks' content after a cut, as a small file beside a recording.

native/README.md has the format, and calls the file a view.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from torture.errors import HarnessError
from torture.facts.evidence.strict_json import strict_json
from torture.files import write_whole

SCHEMA = 1
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Survivor:
    """A write that survives, by its submission's number; with `sectors`, only these sectors of it."""

    submission: int
    sectors: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        _must_be_number("a survivor's submission", self.submission)
        for sector in self.sectors or ():
            _must_be_number(f"a sector of survivor {self.submission}", sector)

    def as_json(self) -> int | list[Any]:
        """As plain data; `from_json` takes it back."""
        if self.sectors is None:
            return self.submission
        return [self.submission, list(self.sectors)]

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The survivor of `as_json`'s data; raises `ValueError`."""
        match data:
            case [submission, list(sectors)]:
                return cls(submission=submission, sectors=tuple(sectors))
            case list():
                raise ValueError(f"a survivor is a number or [number, [sectors]], not {data!r}")
        return cls(submission=data)


@dataclass(frozen=True, kw_only=True, slots=True)
class DiskState:
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
            _must_be_number(name, number)
        if self.in_flight is not InFlight.GONE and self.policy not in _WITH_IN_FLIGHT:
            raise ValueError(f"`in_flight` has no place beside {self.policy}")
        if self.survivors and self.policy is not Policy.EXPLICIT:
            raise ValueError(f"`survivors` belongs to `explicit`, and only there: {self.policy}")
        if len({survivor.submission for survivor in self.survivors}) != len(self.survivors):
            raise ValueError("a submission survives twice")

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` takes it back."""
        data: dict[str, Any] = {"policy": self.policy.value}
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        data |= {name: number for name, number in numbers.items() if number is not None}
        if self.in_flight is not InFlight.GONE:
            data["in_flight"] = self.in_flight.value
        if self.policy is Policy.EXPLICIT:
            data["survivors"] = [survivor.as_json() for survivor in self.survivors]
        return data

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The disk of `as_json`'s data; raises `ValueError`."""
        _must_be_object("a disk of a view", data, required={"policy"}, keys=cls.__slots__)
        policy = Policy(data["policy"])
        for name in _NUMBERS:
            if name in data:
                _must_be_number(name, data[name])
        if ("survivors" in data) != (policy is Policy.EXPLICIT):
            raise ValueError(f"`survivors` belongs to `explicit`, and only there: {policy}")
        survivors = data.get("survivors", [])
        if not isinstance(survivors, list):
            raise ValueError(f"survivors have to be a list, not {survivors!r}")
        return cls(
            policy=policy,
            in_flight=InFlight(data.get("in_flight", InFlight.GONE)),
            survivors=tuple(map(Survivor.from_json, survivors)),
            **{name: data.get(name) for name in _NUMBERS},
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class CrashState:
    """A crash state: a recording, its last event before the cut, and the surviving writes.

    A disk of the recording that is not in `disks` is gone. Raises `ValueError` for fields out of range.
    """

    recording: Path
    cut: int
    seed: int
    """64 bits; `subset` and `torn` draw from it."""
    disks: dict[str, DiskState]

    def __post_init__(self) -> None:
        _must_be_number("cut", self.cut)
        _must_be_number("seed", self.seed)

    def as_json(self) -> dict[str, Any]:
        """As plain data; `from_json` takes it back."""
        return {
            "schema": SCHEMA,
            "recording": str(self.recording),
            "cut": self.cut,
            "seed": self.seed,
            "disks": {name: disk.as_json() for name, disk in self.disks.items()},
        }

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The crash state of `as_json`'s data; raises `ValueError` that names the bad field.

        Unknown keys are errors too: a misspelt key would silently be another crash state.
        """
        keys = {"schema", *cls.__slots__}
        _must_be_object("a view", data, required=keys, keys=keys)
        if data["schema"] != SCHEMA:
            raise ValueError(f"a view of schema {data['schema']!r}, not {SCHEMA}")
        if not isinstance(data["recording"], str):
            raise ValueError(f"recording has to be a path, not {data['recording']!r}")
        if not isinstance(data["disks"], dict):
            raise ValueError(f"disks have to be an object, not {data['disks']!r}")
        return cls(
            recording=Path(data["recording"]),
            cut=data["cut"],
            seed=data["seed"],
            disks={name: DiskState.from_json(disk) for name, disk in data["disks"].items()},
        )


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


def _must_be_number(what: str, value: Any) -> None:
    """Raise `ValueError` unless it is a 64-bit number; JSON's `true`, an int in Python, is none."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _U64:
        raise ValueError(f"{what} has to be a number from 0 to 2**64 - 1, not {value!r}")


def _must_be_object(what: str, data: Any, *, required: set[str], keys: Iterable[str]) -> None:
    if not isinstance(data, dict):
        raise ValueError(f"{what} has to be an object, not {data!r}")
    if missing := sorted(required - data.keys()):
        raise ValueError(f"{what} lacks {', '.join(missing)}")
    if unknown := sorted(data.keys() - set(keys)):
        raise ValueError(f"{what} has no {', '.join(unknown)}")
