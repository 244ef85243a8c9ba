"""An engine recovers crash states, and reads the parts of a volume that hold data.

To add one, write a file beside this one with a class that has `Engine`'s methods.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from torture.errors import HarnessError
from torture.facts.recording.crash_state import CrashState
from torture.features.walk.walk_values import PoolHealth

_GRAIN_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranges:
    """Offsets and lengths in bytes, ascending, apart from each other."""

    spans: tuple[tuple[int, int], ...]

    @classmethod
    def whole(cls, size: int) -> Self:
        """All of a volume."""
        return cls(spans=((0, size),))

    @classmethod
    def of_grains(cls, grains: set[int]) -> Self:
        """The ranges of these grains of 64 KiB, by number."""
        spans: list[tuple[int, int]] = []
        for grain in sorted(grains):
            offset = grain * _GRAIN_BYTES
            if spans and sum(spans[-1]) == offset:
                spans[-1] = (spans[-1][0], spans[-1][1] + _GRAIN_BYTES)
            else:
                spans.append((offset, _GRAIN_BYTES))
        return cls(spans=tuple(spans))

    @property
    def packed(self) -> bytes:
        """As the guest's program reads them."""
        return b"".join(struct.pack("<QQ", *span) for span in self.spans)

    @property
    def bytes(self) -> int:
        """The sum of the lengths."""
        return sum(length for _, length in self.spans)

    def chunks(self, most: int) -> Iterator[tuple[int, int]]:
        """The ranges in pieces of at most so many bytes."""
        for offset, length in self.spans:
            for at in range(offset, offset + length, most):
                yield at, min(most, offset + length - at)


def grains_with_data(image: Path) -> set[int]:
    """The grains of an image that are not all zeroes."""
    grains = set()
    with image.open("rb") as file:
        for number in range(-(-image.stat().st_size // _GRAIN_BYTES)):
            if file.read(_GRAIN_BYTES).strip(b"\0"):
                grains.add(number)
    return grains


def grains_of(offset: int, length: int) -> range:
    """The grains that a write touches."""
    return range(offset // _GRAIN_BYTES, -(-(offset + length) // _GRAIN_BYTES))


_VDEV_STATES = (
    "UNKNOWN", "CLOSED", "OFFLINE", "REMOVED", "UNAVAIL", "FAULTED", "DEGRADED", "ONLINE",
)  # fmt: skip
"""By their numbers (include/sys/fs/zfs.h, `vdev_state_t`), in the words of `zpool_state_to_name`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovered:
    """The end of one recovery."""

    is_imported: bool
    volume_errno: int = 0
    """The error of the volume's first failed read, or of its opening; 0: none."""
    content: str = ""
    """128 bits in hexadecimal, by all that was read of the volume; equal contents have equal ones."""
    reason: str = ""
    """ZFS's own words for a refused import."""
    health: PoolHealth | None = None
    """The pool's; None where no pool is imported."""
    took_us: int = 0

    @property
    def refusal(self) -> str:
        """Why there is no content to look at; empty where there is one."""
        if not self.is_imported:
            return self.reason or "the import was refused"
        return f"the volume gave error {self.volume_errno}" if self.volume_errno else ""

    def is_like(self, other: Recovered) -> bool:
        """Whether both recoveries ended alike; engines differ in their words and errors."""
        if not self.is_imported or not other.is_imported:
            return self.is_imported == other.is_imported
        if self.volume_errno or other.volume_errno:
            return bool(self.volume_errno) == bool(other.volume_errno)
        return self.content == other.content


class GaveUp(HarnessError):
    """The engine could not recover a state. That says nothing of the state: another engine decides."""


class Engine(Protocol):
    """Recovers one state at a time."""

    @property
    def ranges(self) -> Ranges:
        """The parts of the volume that it reads."""

    def take_ranges(self, ranges: Ranges) -> None:
        """Read only these parts of the volume from now on."""

    def recover(self, state: CrashState) -> Recovered:
        """Import, claim, replay the intent log, and read the volume.

        Raises `StorageFailed` when the recovery hangs, `GaveUp` when only this engine cannot recover
        the state, and another `HarnessError` when the machinery fails.
        """

    def copy_volume(self, into: Path) -> None:
        """The volume of the last recovered state, as a raw image of the host."""

    def close(self) -> None:
        """End everything that the engine started."""


class Scout(Engine, Protocol):
    """A quick engine that knows which bytes its recoveries read."""

    def proven(self, state: CrashState) -> Recovered | None:
        """The end of its recovery, known by an earlier one that read the same bytes; None: unknown."""


def recovered_of(answer: Mapping[str, Any]) -> Recovered:
    """The recovery that a program reports; raises `HarnessError` for another object."""
    try:
        if answer["import"] != 0:
            return Recovered(is_imported=False, reason=answer["reason"])
        if answer.get("export", 0) != 0:
            raise ValueError(f"the export failed: {answer['export']}")
        return Recovered(
            is_imported=True,
            volume_errno=answer["volume"],
            content=answer["content"],
            health=PoolHealth(state=_VDEV_STATES[answer["state"]], errors=answer["errors"]),
            took_us=sum(answer[f"{part}_us"] for part in ("import", "volume", "read")),
        )
    except (ValueError, LookupError, TypeError) as error:
        raise HarnessError(f"the recovery's report is unreadable: {answer} ({error!r})") from error
