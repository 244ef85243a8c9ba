"""What a known bug is: where it is, where it is not, and what is predicted before it is looked for."""

from __future__ import annotations

from dataclasses import dataclass

from torture.choices.faults.protocol import Sight
from torture.choices.matrix.cells import Cell
from torture.choices.matrix.choices import parse_choices, with_choices
from torture.facts.zfs.versions import DEFAULT


@dataclass(frozen=True, kw_only=True, slots=True)
class FromSource:
    """A version of OpenZFS that Debian does not package."""

    name: str
    """What `--tree` calls it."""
    branch: str
    """The tag or branch of OpenZFS's repository that has it."""

    @property
    def next_step(self) -> str:
        """What somebody does to have it tried."""
        return (
            f"git clone --branch {self.branch} OPENZFS {self.branch}, OPENZFS being its repository; "
            f"then --tree {self.name}={self.branch}"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """A cell, and the version of OpenZFS on its NAS."""

    cell: str
    axes: tuple[str, ...] = ()
    """Further choices, as `--axis` takes them, e.g. `zvol_use_blk_mq=blkmq`."""
    zfs: str | FromSource = DEFAULT
    """The name of a version that Debian packages, or what has to be built from source."""

    @property
    def chosen_cell(self) -> Cell:
        """The cell with these choices; raises `ValueError` for what is none."""
        [cell] = with_choices((Cell.parse(self.cell),), parse_choices(self.axes))
        return cell

    @property
    def version(self) -> str:
        """What its version is called."""
        return self.zfs.name if isinstance(self.zfs, FromSource) else self.zfs


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownBug:
    """A bug that cost somebody data, or could have."""

    name: str
    words: str
    source: str
    """Who reported or fixed it, or what it can be read from: issues, commits, files."""
    affected: Side
    """Where it has to be found."""
    cleared: Side
    """As like the affected side as can be, without the bug: nothing of it may be seen there."""
    seen_by: Sight
    """Predicted: which check sees it."""
    cuts: int
    """Predicted: after so many cuts of the affected side it is seen with 95 % confidence."""
    sign: str = ""
    """Part of a reason given for trials that show it, e.g. of why no import brought the pool back, by
    which it is told from whatever else a check sees. Empty where any check's word will do."""
    drops_flushes: bool = False
    """Whether a client's flush gets lost in ZFS: the proof before use then asks only that it reaches the
    volume, on both sides alike."""
