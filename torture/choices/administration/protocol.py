"""The form of an administration: a command of zpool(8) or zfs(8) under which the power is cut.

After recovery it must be done, not done, or still going on: never half. It must be done or going on
in two cases:
- the command had returned before the cut, and returns only once its transaction group is on the
  disks
- a pool that was cut again had been imported with it

The outcome is read from the output of ZFS's own tools, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from torture.choices.volumes import POOL
from torture.facts.axes.axis import Chosen
from torture.facts.axes.pool_disks import Layout
from torture.facts.axes.sweeps import Sweep
from torture.facts.axes.sync import Sync
from torture.facts.evidence.documents import strict_json
from torture.facts.evidence.folder import ToolOutput
from torture.facts.recording.events import Kind
from torture.facts.recording.intent_log import Role
from torture.oracles.audit.invariants import Invariant
from torture.oracles.verdict.guarantee import UnreadableError
from torture.oracles.verdict.pool_tools.zpool import CLASSES, pool_in

SPARES = "spare"
"""The serials of the disks that the NAS has beside those of the pool begin so."""
SPARE = f"{SPARES}0"
"""The first of these disks."""
BY_ID = "/dev/disk/by-id/virtio-"
STATUS = ("zpool", "status", "-j", POOL)
"""zpool-status(8); since OpenZFS 2.3."""


_PLAIN = "-H"
_GET_COLUMNS = 4
"""zpool-get(8): pool, property, value and source."""


class Outcome(StrEnum):
    """The outcome of an administration, as the NAS reports it after its reboot."""

    DONE = "done"
    UNDONE = "undone"
    """As if it had never begun."""
    GOING_ON = "going on"
    """It has begun, and ZFS continues it by itself."""
    IN_PART = "in part"
    """Some of its steps are done, each as a whole: the command takes several transaction groups,
    and repeating it does the rest. Only for an operation that declares it."""
    HALF = "half"
    """None of these: part of it is there, and nothing continues it."""


class Moment(StrEnum):
    """When, in the course of an administration, the power is cut."""

    START = "start"
    AMID = "amid"
    END = "end"


@dataclass(frozen=True, kw_only=True, slots=True)
class CutPoint:
    """The event for which a cut waits: from the command's issue on, or from its end on.

    It is the n-th event on the disks, n drawn from `least` to `most`, or a drawn number of
    milliseconds.
    """

    event: Kind | None = None
    """None: time alone."""
    role: Role | None = None
    disk: str | None = None
    """The serial of the only disk that counts; None: all disks."""
    least: int = 1
    most: int = 1
    delay_ms_max: float = 0.0
    is_after_end: bool = False
    """Whether the wait begins only when the command has returned and its work behind the return has
    ended."""


def uberblocks(*, most: int, least: int = 1, disk: str = "data0") -> CutPoint:
    """The n-th uberblock that a disk has completed. Each transaction group writes four, one a label.

    OpenZFS `module/zfs/vdev_label.c`, `vdev_uberblock_sync`.
    """
    return CutPoint(
        event=Kind.WRITE_COMPLETE, role=Role.UBERBLOCK, disk=disk, least=least, most=most
    )


def blocks(*, most: int, least: int = 1, disk: str | None = None) -> CutPoint:
    """The n-th completed write of any kind, on this disk or on all disks."""
    return CutPoint(event=Kind.WRITE_COMPLETE, disk=disk, least=least, most=most)


SOON = CutPoint(delay_ms_max=400)
"""Under emulation zpool takes some 100 ms until its first request to the kernel."""
AFTER_END = CutPoint(delay_ms_max=200, is_after_end=True)


@dataclass(frozen=True, slots=True)
class Printed:
    """One round of queries: the outputs of an administration's commands, in their order."""

    outputs: Sequence[ToolOutput]

    def pool(self) -> dict[str, Any]:
        """The one pool in `zpool status`, of either form; raises `UnreadableError`."""
        pool = pool_in(self._output("zpool", "status"))
        if not isinstance(pool.get("vdevs"), dict):
            raise UnreadableError("zpool status: a pool without vdevs")
        return pool

    def state_of(self, part: str) -> str | None:
        """The state in a part of `zpool status`, e.g. in `scan_stats`; None without that part.

        Raises `UnreadableError`.
        """
        stats = self.pool().get(part)
        if stats is None:
            return None
        state = stats.get("state") if isinstance(stats, dict) else None
        if not isinstance(state, str):
            raise UnreadableError(f"zpool status: {part} without a state")
        return state

    def tops(self, kind: str = "vdevs") -> dict[str, dict[str, Any]]:
        """The top-level vdevs of a class, e.g. of `logs`, by name. Raises `UnreadableError`."""
        pool = self.pool()
        found = pool.get(kind, {})
        if kind == "vdevs":
            (root,) = found.values() if len(found) == 1 else ({},)
            found = children_of(root)
        if not isinstance(found, dict) or not all(isinstance(top, dict) for top in found.values()):
            raise UnreadableError(f"zpool status: invalid {kind}")
        return found

    def has_disk(self, serial: str) -> bool:
        """Whether a disk of this serial is part of the pool; raises `UnreadableError`."""
        pool = self.pool()
        return any(
            name.endswith(serial) for kind in CLASSES for name, _ in devices_in(pool.get(kind, {}))
        )

    def properties(self) -> dict[str, dict[str, str]]:
        """The properties of each dataset, snapshot and volume in `zfs list`, by name.

        Raises `UnreadableError`.
        """
        output = self._output("zfs", "list")
        if _PLAIN not in output.argv:
            return _values_of(_document(output).get("datasets"), "zfs list -j")
        columns = output.argv[output.argv.index("-o") + 1].split(",")
        return {
            row[0]: dict(zip(columns[1:], row[1:], strict=True))
            for row in _rows(output, len(columns))
        }

    def pool_properties(self) -> dict[str, str]:
        """The properties of the one pool in `zpool get`; raises `UnreadableError`."""
        output = self._output("zpool", "get")
        if _PLAIN in output.argv:
            pools: dict[str, dict[str, str]] = {}
            for pool, name, value, _source in _rows(output, _GET_COLUMNS):
                pools.setdefault(pool, {})[name] = value
        else:
            pools = _values_of(_document(output).get("pools"), "zpool get -j")
        if len(pools) != 1:
            raise UnreadableError("zpool get: not the properties of one pool")
        return next(iter(pools.values()))

    def text(self, program: str) -> str:
        """The output of another program; raises `UnreadableError` unless it returned 0."""
        return self._output(program).stdout

    def _output(self, *argv: str) -> ToolOutput:
        for output in self.outputs:
            if output.argv[: len(argv)] == argv:
                if output.exit_code != 0:
                    said = (output.stderr or output.stdout).strip()[:200]
                    raise UnreadableError(f"{' '.join(argv)} returned {output.exit_code}: {said}")
                return output
        raise UnreadableError(f"{' '.join(argv)} was not run")


def _document(output: ToolOutput) -> dict[str, Any]:
    said = " ".join(output.argv[:2])
    try:
        document = strict_json(output.stdout.encode())
    except ValueError as error:
        raise UnreadableError(f"{said} -j: no JSON: {error}") from error
    if not isinstance(document, dict):
        raise UnreadableError(f"{said} -j: no object")
    return document


def _rows(output: ToolOutput, columns: int) -> list[list[str]]:
    """The lines of an output without headings: a tab between columns (zfs-list(8), `-H`)."""
    *lines, rest = output.stdout.split("\n")
    rows = [line.split("\t") for line in lines]
    is_text = all(line.replace("\t", "").isprintable() for line in lines)
    if rest or not rows or not is_text or any(len(row) != columns for row in rows):
        raise UnreadableError(f"{' '.join(output.argv[:2])} {_PLAIN}: not {columns} columns")
    return rows


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
    """One operation. Its scripts are shell, run in the NAS as root, and have to succeed."""

    name: str
    """Its choice's name, which no other axis has."""
    words: str
    explained: str = ""
    """As `Choice` has both."""
    sweep: Sweep | None = None
    """The sweep that has it; None: `--axis` alone."""
    script: str
    """The administrator's command, run under the client's load."""
    read: Callable[[Printed], Outcome]
    """Its outcome, by the answers to `questions`; raises `UnreadableError`. Pure."""
    start: Sequence[CutPoint] = (
        SOON,
        CutPoint(event=Kind.WRITE_SUBMIT, role=Role.METADATA, most=40),
    )
    """The possible events for a cut at its start; one of them is drawn.

    By default it takes a transaction group or two, and has no work behind its return.
    """
    amid: Sequence[CutPoint] = (
        uberblocks(most=16),
        CutPoint(event=Kind.FLUSH_SUBMIT, role=Role.UBERBLOCK, disk="data0", most=4),
    )
    end: Sequence[CutPoint] = (AFTER_END,)
    questions: tuple[tuple[str, ...], ...] = (STATUS,)
    """Commands that run before, after the import that follows the cut, and at the end."""
    activity: str = ""
    """The name in `zpool wait -t` of the work behind the command's return; empty for none."""
    at_end: tuple[str, ...] = ()
    """A command to run once that work has ended, before the scrub of the pool; empty for none."""
    is_durable_by_return: bool = True
    """Whether a cut may not undo a command that has returned 0; the choice's file gives the source."""
    prepare: str = ""
    """Run once the volume is made, before any client attaches it."""
    spares: int = 0
    """How many disks, like the data disks, the NAS has beside those of the pool."""
    pool_options: str = ""
    """Further options of `zpool create`."""
    layouts: frozenset[Layout] = field(default_factory=lambda: frozenset(Layout))
    """The layouts of pools on which it is possible."""
    needs_sync: Sync | None = None
    """The `sync` that the volume must have before; None: any."""
    needs_log_device: bool | None = None
    """Whether the pool must have a log device (True) or must not (False); None: either."""
    waived: frozenset[Invariant] = frozenset()
    """The invariants that do not hold of the blocks it writes; the choice's file gives the reason."""
    moves_blocks: bool = False
    """Whether a block of data may be missing from some data disk, or at different places on the
    disks."""

    is_walked: bool = False
    """Whether each crash state of it needs a plain import and no more (`suites/replay`)."""

    @property
    def cut_points(self) -> Mapping[Moment, Sequence[CutPoint]]:
        """The possible events for a cut at each moment."""
        return {Moment.START: self.start, Moment.AMID: self.amid, Moment.END: self.end}

    def why_not_with(self, chosen: Chosen) -> str | None:
        """Why it means nothing with these choices ("is ..."); None where it makes sense."""
        layout: Layout = chosen["layout"].value
        if layout not in self.layouts:
            return f"cannot run on a pool of {chosen['layout'].words}"
        has_log_device = bool(chosen["slog"].value.legs)
        if self.needs_log_device is not None and self.needs_log_device is not has_log_device:
            return f"cannot run on a pool with {chosen['slog'].words}"
        if self.needs_sync is not None and chosen["sync"].value is not self.needs_sync:
            return f"needs a volume with sync={self.needs_sync}, and the cell has {chosen['sync'].name!r}"
        return None


OTHER = f"{POOL}/other"
"""A dataset beside the client's volume, which is unaffected by it."""


def list_command(*properties: str) -> tuple[str, ...]:
    """`zfs list -j` of everything in the pool, with these properties (zfs-list(8); since 2.3)."""
    columns = ",".join(("name", *properties))
    return ("zfs", "list", "-j", "-p", "-r", "-t", "all", "-o", columns, POOL)


BALLAST = f"{POOL}/ballast"


def ballast_script(*, mib: int, options: str = "") -> str:
    """Shell: fill a filesystem of the pool, made with these options, and sync it.

    No two blocks are alike, yet their recording stays small.
    """
    make = f"zfs create {options} {BALLAST}" if options else f"zfs create {BALLAST}"
    return (
        f"set -eu; {make}; "
        f"seq 1000000 9999999 | head -c {mib}M > /{BALLAST}/ballast; zpool sync {POOL}"
    )


COPIED = frozenset(
    {
        Invariant.TXG_IS_DURABLE,
        Invariant.UBERBLOCK_IS_DURABLE,
        Invariant.ACKNOWLEDGED_IS_DURABLE,
        Invariant.LOG_CHAIN_IS_WHOLE,
        Invariant.EXTENT_IS_KEPT,
    }
)
"""The data copied to a new disk are no part of the group under way. A later group records that the
disk lacks nothing (its DTL, OpenZFS `module/zfs/vdev.c`, `vdev_dtl_reassess`); until then ZFS does
not read them from that disk.

A copied block of the intent log that is not yet covered looks like the block that was covered long
ago. A copied block that a group has just written to the new disk as well takes the same place
there.
"""


def has_resilvered(pool: dict[str, Any]) -> bool:
    """Whether the last resilver, also a sequential one, has ended, and no other one goes on.

    Raises `UnreadableError`.
    """
    scan = pool.get("scan_stats", {})
    rebuilds = scan.get("rebuild_stats", {}) if isinstance(scan, dict) else None
    if not isinstance(rebuilds, dict):
        raise UnreadableError("zpool status -j: invalid scan_stats")
    try:
        states = [str(rebuild["state"]) for rebuild in rebuilds.values()]
    except (KeyError, TypeError) as error:
        raise UnreadableError(f"zpool status -j: a rebuild without a state: {error!r}") from error
    is_copying = scan.get("function") == "RESILVER"
    if "ACTIVE" in states or (is_copying and scan.get("state") != "FINISHED"):
        return False
    return is_copying or "COMPLETE" in states
