"""What an administration is: a command of zpool(8) or zfs(8) that the power is cut under.

After recovery it must be done, or not done, or go on: never half. And done, or going on, where the
command had returned before the cut and returns only once its transaction group is on the disks, or where
a pool that was cut again had been imported with it. Which of these it is, is read from what ZFS's own
tools print, and from nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from torture.choices.volumes import POOL
from torture.facts.axes.axis import Chosen
from torture.facts.axes.layout import Layout
from torture.facts.axes.sync import Sync
from torture.facts.evidence.folder import ToolOutput
from torture.facts.recording.events import Kind
from torture.facts.recording.roles import Role
from torture.oracles.audit.invariants import Invariant
from torture.oracles.verdict.unreadable import UnreadableError

SPARE = "spare0"
"""The serial of the first disk that the NAS has beside those of the pool."""
BY_ID = "/dev/disk/by-id/virtio-"
STATUS = ("zpool", "status", "-j", POOL)
"""zpool-status(8); since OpenZFS 2.3."""
_CLASSES = ("vdevs", "logs", "special", "dedup")
"""Where `zpool status -j` lists what a pool consists of, beside each other."""


class Outcome(StrEnum):
    """What became of an administration, by what the NAS that came back says."""

    DONE = "done"
    UNDONE = "undone"
    """As if it had never been begun."""
    GOING_ON = "going on"
    """It was begun, and ZFS goes on with it by itself."""
    IN_PART = "in part"
    """Some of its steps are done, each as a whole: the command takes several transaction groups, and
    typing it again does the rest. Only of an operation that says so."""
    HALF = "half"
    """None of these: part of it is there, and nothing goes on."""


class Moment(StrEnum):
    """When, in the course of an administration, the power is cut."""

    START = "start"
    AMID = "amid"
    END = "end"


@dataclass(frozen=True, kw_only=True, slots=True)
class CutPoint:
    """What a cut waits for, from when the command is issued on, or from when it has come to its end.

    That is the n-th event on the disks, n from `least` to `most`, or as many milliseconds as are drawn.
    """

    event: Kind | None = None
    """None: time alone."""
    role: Role | None = None
    disk: str | None = None
    """The serial of the only disk that counts; None: all of them."""
    least: int = 1
    most: int = 1
    delay_ms_max: float = 0.0
    is_after_end: bool = False
    """Whether it is waited first until the command has returned, and what goes on behind it has ended."""


def uberblocks(*, most: int, least: int = 1, disk: str = "data0") -> CutPoint:
    """The n-th uberblock that a disk has completed: four of each transaction group, one a label.

    OpenZFS `module/zfs/vdev_label.c`, `vdev_uberblock_sync`.
    """
    return CutPoint(
        event=Kind.WRITE_COMPLETE, role=Role.UBERBLOCK, disk=disk, least=least, most=most
    )


def blocks(*, most: int, least: int = 1, disk: str | None = None) -> CutPoint:
    """The n-th write that is completed, of whatever kind, on this disk or on all of them."""
    return CutPoint(event=Kind.WRITE_COMPLETE, disk=disk, least=least, most=most)


SOON = CutPoint(delay_ms_max=400)
"""Under emulation zpool takes some 100 ms until it asks the kernel for anything."""
AFTER_END = CutPoint(delay_ms_max=200, is_after_end=True)
BRIEF: Mapping[Moment, Sequence[CutPoint]] = {
    Moment.START: (SOON, CutPoint(event=Kind.WRITE_SUBMIT, role=Role.METADATA, most=40)),
    Moment.AMID: (
        uberblocks(most=16),
        CutPoint(event=Kind.FLUSH_SUBMIT, role=Role.UBERBLOCK, disk="data0", most=4),
    ),
    Moment.END: (AFTER_END,),
}
"""Of a command that takes a transaction group or two, and has nothing go on behind it."""


@dataclass(frozen=True, slots=True)
class Printed:
    """One round of questions: the outputs of an administration's commands, in their order."""

    outputs: Sequence[ToolOutput]

    def pool(self) -> dict[str, Any]:
        """What `zpool status -j` says of the one pool; raises `UnreadableError`."""
        pools = self._document("zpool", "status").get("pools")
        if not isinstance(pools, dict) or len(pools) != 1:
            raise UnreadableError("zpool status -j: no status of one pool")
        (pool,) = pools.values()
        if not isinstance(pool, dict) or not isinstance(pool.get("vdevs"), dict):
            raise UnreadableError("zpool status -j: a pool without vdevs")
        return pool

    def tops(self, kind: str = "vdevs") -> dict[str, dict[str, Any]]:
        """The top-level vdevs of a class, by name: of `logs`, say. Raises `UnreadableError`."""
        pool = self.pool()
        found = pool.get(kind, {})
        if kind == "vdevs":
            (root,) = found.values() if len(found) == 1 else ({},)
            found = children_of(root)
        if not isinstance(found, dict) or not all(isinstance(top, dict) for top in found.values()):
            raise UnreadableError(f"zpool status -j: {kind} that are none")
        return found

    def has_disk(self, serial: str) -> bool:
        """Whether a disk of this serial is part of the pool; raises `UnreadableError`."""
        pool = self.pool()
        return any(
            name.endswith(serial) for kind in _CLASSES for name, _ in devices_in(pool.get(kind, {}))
        )

    def properties(self) -> dict[str, dict[str, str]]:
        """Of each dataset, snapshot and volume that `zfs list -j` lists, by name: its properties.

        Raises `UnreadableError`.
        """
        return _values_of(self._document("zfs", "list").get("datasets"), "zfs list -j")

    def pool_properties(self) -> dict[str, str]:
        """What `zpool get -j` says of the one pool; raises `UnreadableError`."""
        pools = _values_of(self._document("zpool", "get").get("pools"), "zpool get -j")
        if len(pools) != 1:
            raise UnreadableError("zpool get -j: not of one pool")
        return next(iter(pools.values()))

    def text(self, program: str) -> str:
        """What another program printed; raises `UnreadableError` unless it returned 0."""
        return self._output(program).stdout

    def _document(self, program: str, verb: str) -> dict[str, Any]:
        output = self._output(program, verb)
        try:
            document = json.loads(output.stdout)
        except ValueError as error:
            raise UnreadableError(f"{program} {verb} -j: no JSON: {error}") from error
        if not isinstance(document, dict):
            raise UnreadableError(f"{program} {verb} -j: no object")
        return document

    def _output(self, *argv: str) -> ToolOutput:
        for output in self.outputs:
            if output.argv[: len(argv)] == argv:
                if output.exit_code != 0:
                    said = (output.stderr or output.stdout).strip()[:200]
                    raise UnreadableError(f"{' '.join(argv)} returned {output.exit_code}: {said}")
                return output
        raise UnreadableError(f"{' '.join(argv)} was not asked")


def children_of(vdev: dict[str, Any]) -> dict[str, Any]:
    """The vdevs below one, by name."""
    children = vdev.get("vdevs", {})
    return children if isinstance(children, dict) else {}


def devices_in(vdevs: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every vdev among these and below them, by name."""
    for name, vdev in vdevs.items():
        yield name, vdev
        yield from devices_in(children_of(vdev))


def _values_of(found: object, what: str) -> dict[str, dict[str, str]]:
    try:
        return {
            str(name): {key: str(held["value"]) for key, held in of["properties"].items()}
            for name, of in found.items()  # type: ignore[attr-defined]
        }
    except (AttributeError, KeyError, TypeError) as error:
        raise UnreadableError(f"{what}: no properties: {error!r}") from error


@dataclass(frozen=True, kw_only=True, slots=True)
class Administration:
    """One operation; scripts are shell, run in the NAS as root, and have to succeed."""

    script: str
    """What the administrator types while the client's load runs."""
    read: Callable[[Printed], Outcome]
    """What became of it, by the answers to `questions`; raises `UnreadableError`. Pure."""
    cut_points: Mapping[Moment, Sequence[CutPoint]]
    """What cuts at each moment wait for; one of them is drawn."""
    questions: tuple[tuple[str, ...], ...] = (STATUS,)
    """Commands that are run before, after the import that follows the cut, and at the end."""
    activity: str = ""
    """What `zpool wait -t` calls that which goes on when the command has returned; empty for nothing."""
    at_end: tuple[str, ...] = ()
    """What is typed once it has come to its end, before the pool is scrubbed; empty for nothing."""
    is_durable_by_return: bool = True
    """Whether a command that has returned 0 must not be undone by a cut: the file says why."""
    prepare: str = ""
    """Once the volume is made, before any client attaches it."""
    spares: int = 0
    """How many disks, like the data disks, the NAS has beside those of the pool."""
    pool_options: str = ""
    """Further options of `zpool create`."""
    layouts: frozenset[Layout] = field(default_factory=lambda: frozenset(Layout))
    """Of the pools that it can be done to."""
    needs_sync: Sync | None = None
    """What the volume's `sync` must be before; None: anything."""
    needs_log_device: bool | None = None
    """Whether the pool must have one, or none; None: either."""
    waived: frozenset[Invariant] = frozenset()
    """What of the audit does not hold of the blocks that it writes: the file says why."""
    moves_blocks: bool = False
    """Whether blocks of data may lie elsewhere than on every data disk at one place."""

    def why_not_with(self, chosen: Chosen) -> str | None:
        """Why it means nothing with these choices ("is ..."); None where it does."""
        layout: Layout = chosen["layout"].value
        if layout not in self.layouts:
            return f"is not done to a pool of {chosen['layout'].words}"
        has_log_device = bool(chosen["slog"].value.legs)
        if self.needs_log_device is not None and self.needs_log_device is not has_log_device:
            return f"is not done to a pool with {chosen['slog'].words}"
        if self.needs_sync is not None and chosen["sync"].value is not self.needs_sync:
            return f"changes sync={self.needs_sync}, and here it is {chosen['sync'].name!r}"
        return None
