"""Experiments with the suite: planted faults, harmless disturbances, known bugs of others. Pure."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypeVar

from torture.choices.experiments.protocol import Experiment, Fault, FromSource, KnownBug
from torture.facts.evidence.documents import Document

_Kind = TypeVar("_Kind", bound=Experiment)


class _Table(Document, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The experiments of one file."""

    faults: tuple[Fault, ...] = ()
    disturbances: tuple[Fault, ...] = ()
    bugs: tuple[KnownBug, ...] = ()

    def __post_init__(self) -> None:
        """A fault without `seen_by` would be a disturbance, in which nothing may be seen."""
        for fault in (*self.faults, *self.disturbances):
            if fault.is_harmless is not (fault in self.disturbances):
                raise ValueError(f"{fault.name}: faults have `seen_by`, and disturbances have not")


def experiments_in(file: Path) -> _Table:
    """The experiments of a file; raises `ValueError` with the file and the wrong field."""
    try:
        return _Table.from_json(tomllib.loads(file.read_text()))
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def _by_name(experiments: list[_Kind]) -> dict[str, _Kind]:
    found = {one.name: one for one in sorted(experiments, key=lambda one: one.name)}
    if len(found) < len(experiments):
        raise ValueError(f"{Path(__file__).parent}: two experiments have one name")
    return found


_TABLES = [experiments_in(file) for file in sorted(Path(__file__).parent.glob("*.toml"))]
_PLANTED = _by_name([one for table in _TABLES for one in (*table.faults, *table.disturbances)])
KNOWN_BUGS = _by_name([bug for table in _TABLES for bug in table.bugs])
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
