"""The planted faults, by their place: faults to be found, and harmless disturbances. Pure."""

from __future__ import annotations

from torture.choices.faults.protocol import Fault
from torture.discovery import offered

_ALL: dict[str, Fault] = {
    fault.name: fault for fault in sorted(offered(__name__, "FAULT"), key=lambda fault: fault.name)
}
_IN_ZFS = {name: fault for name, fault in _ALL.items() if fault.zfs}
"""Those that are a version of ZFS. A run has one version, so each of them needs a run of its own."""
_BESIDE = {name: fault for name, fault in _ALL.items() if not fault.zfs}
ZFS_BUGS = {name: fault for name, fault in _IN_ZFS.items() if not fault.is_harmless}
ZFS_DISTURBANCES = {name: fault for name, fault in _IN_ZFS.items() if fault.is_harmless}
FAULTS = {name: fault for name, fault in _BESIDE.items() if not fault.is_harmless}
DISTURBANCES = {name: fault for name, fault in _BESIDE.items() if fault.is_harmless}


def find(name: str) -> Fault | None:
    """The fault of this name; None for the empty name, a sound system. Raises `ValueError`."""
    if not name:
        return None
    if name not in _ALL:
        raise ValueError(f"no fault is called {name!r}; there are {', '.join(_ALL)}")
    return _ALL[name]
