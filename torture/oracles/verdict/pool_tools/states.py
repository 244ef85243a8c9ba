"""The state of a pool, for both forms of its printed status."""

from __future__ import annotations

from dataclasses import dataclass

HEALTHY = "ONLINE"


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolStatus:
    """The pool's state, errors in files or volumes, and errors that devices made.

    `scrubbed`: the last scan was a scrub, and it came to its end.
    """

    state: str
    data_errors: int
    device_errors: int
    unhealthy_devices: tuple[str, ...]
    scrubbed: bool

    @property
    def summary(self) -> str:
        """In a few words."""
        parts = [self.state]
        if self.data_errors:
            parts.append(f"{self.data_errors} data errors")
        if self.device_errors:
            parts.append(f"{self.device_errors} device errors")
        if self.unhealthy_devices:
            parts.append("not online: " + ", ".join(self.unhealthy_devices))
        return ", ".join(parts)
