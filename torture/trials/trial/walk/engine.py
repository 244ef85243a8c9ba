"""An engine recovers crash states; it knows neither loads nor verdicts.

To add one, write a file beside this one with a class that has `Engine`'s methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torture.facts.recording.crash_state import CrashState


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
    took_us: int = 0


class Engine(Protocol):
    """Recovers one state at a time."""

    def recover(self, state: CrashState) -> Recovered:
        """Import, claim, replay the intent log, and read the volume.

        Raises `StorageFailed` when the recovery hangs, `HarnessError` when the machinery fails.
        """

    def copy_volume(self, into: Path) -> None:
        """The volume of the last recovered state, as a raw image of the host."""

    def close(self) -> None:
        """End everything that the engine started."""
