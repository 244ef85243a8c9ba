"""An engine recovers crash states; it knows neither loads nor verdicts.

To add one, write a file beside this one with a class that has `Engine`'s methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torture.errors import HarnessError
from torture.facts.recording.crash_state import CrashState
from torture.records.scoring.walked import PoolHealth
from torture.trials.trial.walk.engines.ranges import Ranges

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
