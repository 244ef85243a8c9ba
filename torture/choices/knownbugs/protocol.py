"""The form of a known bug: the affected and the cleared side, and the predictions before a search."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownBug:
    """A bug that cost data, or could have."""

    name: str
    words: str
    source: str
    """Who reported or fixed it, or where it can be read: issues, commits, files."""
    affected: Side
    """The side where it has to be found."""
    cleared: Side
    """Equal to the affected side but for the bug: no check may see it there."""
    seen_by: Sight
    """Predicted: the check that sees it."""
    cuts: int
    """Predicted: after so many cuts of the affected side it is seen with 95 % confidence."""
    sign: str = ""
    """Part of the reason given for trials that show it, e.g. of why no import brought the pool
    back. It distinguishes the bug from anything else that the check sees. Empty where every reason
    will do."""
