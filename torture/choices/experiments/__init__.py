"""Experiments with the suite: planted faults, harmless disturbances, known bugs of others. Pure."""

from __future__ import annotations

from torture.choices.experiments.protocol import Experiment, Fault, FromSource, KnownBug
from torture.discovery import offered

_ALL: tuple[Experiment, ...] = tuple(
    sorted(offered(__name__, "EXPERIMENT"), key=lambda one: one.name)
)
_PLANTED = {fault.name: fault for fault in _ALL if isinstance(fault, Fault)}
KNOWN_BUGS = {bug.name: bug for bug in _ALL if isinstance(bug, KnownBug)}
_IN_ZFS = {name: fault for name, fault in _PLANTED.items() if fault.zfs}
"""Those that are a version of ZFS. A run has one version, so each of them needs a run of its own."""
_BESIDE = {name: fault for name, fault in _PLANTED.items() if not fault.zfs}
ZFS_BUGS = {name: fault for name, fault in _IN_ZFS.items() if not fault.is_harmless}
ZFS_DISTURBANCES = {name: fault for name, fault in _IN_ZFS.items() if fault.is_harmless}
FAULTS = {name: fault for name, fault in _BESIDE.items() if not fault.is_harmless}
DISTURBANCES = {name: fault for name, fault in _BESIDE.items() if fault.is_harmless}


def find(name: str) -> Fault | None:
    """The fault of this name; None for the empty name, a sound system. Raises `ValueError`."""
    if not name:
        return None
    if name not in _PLANTED:
        raise ValueError(f"no fault is called {name!r}; there are {', '.join(_PLANTED)}")
    return _PLANTED[name]


def trees_needed() -> dict[str, FromSource]:
    """The versions whose source the user has to supply, by their names in `--tree`."""
    sides = (side for bug in KNOWN_BUGS.values() for side in (bug.affected, bug.cleared))
    return {side.zfs.name: side.zfs for side in sides if isinstance(side.zfs, FromSource)}
