"""Faults planted on purpose, one file each: what the instrument has to find. Pure."""

from __future__ import annotations

from torture.discovery import offered
from torture.faults.protocol import Fault

FAULTS: dict[str, Fault] = {fault.name: fault for fault in offered(__name__, "FAULT")}


def find(name: str) -> Fault | None:
    """The fault of this name; None for the empty name, of a sound system. Raises `ValueError`."""
    if not name:
        return None
    if name not in FAULTS:
        raise ValueError(f"no fault is called {name!r}; there are {', '.join(FAULTS)}")
    return FAULTS[name]
