"""The form of an experiment, a planted fault or a known bug, and of its prediction.

The TOML files of this folder have them: `[[faults]]`, `[[disturbances]]` and `[[bugs]]`.
"""

from __future__ import annotations

from enum import StrEnum

from torture.choices.matrix.cells import Cell
from torture.choices.matrix.choices import parse_choices, with_choices
from torture.facts.evidence.documents import Document, field
from torture.facts.recording.crash_state import DiskState
from torture.facts.recording.disks import DiskFault
from torture.facts.zfs.versions import DEFAULT


class Layer(StrEnum):
    """The part of the chain that is at fault."""

    DISK = "disk"
    ZFS = "ZFS"
    NAS = "NAS"
    CLIENT = "client"
    DATA = "data"
    """The recovered data are changed afterwards: this tests the checks themselves."""


class Sight(StrEnum):
    """The check that sees a fault first."""

    AUDIT = "audit"
    """The audit of the recording, in each trial."""
    POOL = "pool"
    FILESYSTEM = "filesystem"
    DATA = "data"
    OUTAGE = "outage"
    """An operation was acknowledged while no NAS could answer, and nothing vouches for it."""
    REPLAY = "replay"
    """The walk over the recording's crash states, where there is one."""
    SETTINGS = "settings"
    """A setting of the cell was found otherwise under the load, or at the end of the trial."""
    EMPTY = "empty"
    """The report says that the load had stalled, and that the cut could have lost nothing."""


class Damage(StrEnum):
    """A write over the first data disk, after the cut and before the NAS comes back."""

    FLIPPED = "flipped"
    STALE = "stale"
    TORN = "torn"
    MISDIRECTED = "misdirected"


class _Predicted(Document, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something wrong, and the predictions of its detection."""

    name: str
    words: str
    seen_by: Sight | None = None
    """Predicted: the check that sees it. None for a disturbance, which looks bad and in which no check
    may see anything."""
    cuts: int = 1
    """Predicted: after so many cuts it is seen with 95 % confidence."""


class FromSource(Document, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A version of OpenZFS that Debian does not package."""

    name: str
    """Its name in `--tree`."""
    branch: str
    """The tag or branch of this version in OpenZFS's repository."""

    @property
    def next_step(self) -> str:
        """The next step for the user to have it tried."""
        return (
            f"git clone --branch {self.branch} OPENZFS {self.branch}, where OPENZFS is its repository; "
            f"then --tree {self.name}={self.branch}"
        )


class Side(Document, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cell, the version of OpenZFS on its NAS, and the patches to one machine's kernel."""

    cell: str
    axes: tuple[str, ...] = ()
    """Further choices, as `--axis` takes them, e.g. `zvol_use_blk_mq=blkmq`."""
    zfs: str | FromSource = DEFAULT
    """The name of a version that Debian packages, or a version to be built from source."""
    nas_patches: tuple[str, ...] = ()
    """Patches to the modules of the NAS's kernel, by their paths in the checkout."""
    client_patches: tuple[str, ...] = ()
    """The same of the client's kernel, where the NAS's has none."""

    @property
    def chosen_cell(self) -> Cell:
        """The cell with these choices; raises `ValueError` for an unknown choice."""
        [cell] = with_choices((Cell.parse(self.cell),), parse_choices(self.axes))
        return cell

    @property
    def version(self) -> str:
        """The name of its version."""
        return self.zfs.name if isinstance(self.zfs, FromSource) else self.zfs


class Fault(_Predicted, frozen=True, kw_only=True):
    """A planted fault and its hooks, which are shell scripts that have to succeed in their machine.

    Its control is theory: its cell is sound without it.
    """

    layer: Layer
    cell: str = "iscsi-always-noslog-ext4-bothdie"
    """The cell in which it is planted: one that is sound without the fault."""
    bound_to: frozenset[str] = frozenset()
    """Axes of which its hooks know one choice only: elsewhere they would fail, or do something
    else."""
    amounts_to: dict[str, str] = field(default_factory=dict)
    """The choices, by axis, that it imitates. It is a fault where theory guarantees less of them."""
    zfs: str = ""
    """The version of the NAS, with a bug planted in it (`vmimages/zfs/planted`). Empty: the run's."""
    on_disks: DiskFault | None = None
    """How the NAS's data disks misbehave."""
    in_nas: str = ""
    """Run in the NAS at the end of the set-up, before the load."""
    in_client: str = ""
    """Run in the client at the same time."""
    under_load: str = ""
    """Run in the client once each load has an acknowledgement."""
    aim: str = ""
    """The aim of its cuts (`torture.trials.plan.cut_plan.Aim`), where few other cuts would meet it."""
    load_ms: int | None = None
    """How long its load lasts; None: as long as in any trial."""
    nas_stands_still_ms: int = 0
    """How long the NAS's emulator is stopped: once the load runs, before the wait for the cut."""
    survivors: dict[str, DiskState] = field(default_factory=dict)
    """The crash state of these disks, by serial, instead of the seed's draw. They are not gone
    then."""
    damage: Damage | None = None
    """Done to the disk before the NAS comes back (`torture.choices.experiments.damage`)."""
    before_import: str = ""
    """Run in the NAS after its reboot, before the import."""
    after_return: str = ""
    """Run in the returned NAS once it has published its volume."""
    former_forces: bool = False
    """Whether the node whose pool another one took over imports it by force at its return."""
    import_patience_s: float | None = None
    """How long its imports may take; None: as long as in any trial."""
    before_mount: str = ""
    """Run in the checking client before it mounts the filesystem, which lies on `{device}`."""
    before_read_back: str = ""
    """Run in the checking client once it has mounted the filesystem; a bare disk is `{device}`."""

    @property
    def affected(self) -> Side:
        """The side where it is planted."""
        return Side(cell=self.cell, zfs=self.zfs)

    @property
    def is_harmless(self) -> bool:
        """Whether it is a disturbance."""
        return self.seen_by is None


class KnownBug(_Predicted, frozen=True, kw_only=True):
    """A bug that cost data, or could have."""

    source: str
    """Who reported or fixed it, or where it can be read: issues, commits, files."""
    affected: Side
    """The side where it has to be found."""
    cleared: Side
    """The control: equal to the affected side but for the bug. No check may see it there."""
    sign: str = ""
    """Part of the reason given for trials that show it, e.g. of why no import brought the pool
    back. It distinguishes the bug from anything else that the check sees. Empty where every reason
    will do."""


Experiment = Fault | KnownBug
