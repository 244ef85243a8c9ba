"""How to draw any cell there can be, without listing them: there are tens of millions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from itertools import product

from hypothesis import strategies as st

from torture.choices.filesystems.protocol import FILES
from torture.choices.matrix.cells import AXES, FATE, FILESYSTEM, SLOG, SYNC, TRANSPORT, Cell
from torture.facts.axes.axis import FORMER_NAMES
from torture.facts.axes.sweeps import Matrix

EXAMPLE = "iscsi-standard-noslog-btrfs-nasonly"
GROWING = (Matrix.QUICK, Matrix.DEFAULT, Matrix.FULL)
"""Each contains the one before; every other matrix has a question of its own."""
SETTINGS = tuple(axis for axis in AXES.values() if axis.is_setting)
OF_ZFS = (
    *(tuple(former.today.split("=")) for former in FORMER_NAMES.values() if "=" in former.today),
    ("atime", "off"), ("compression", "zstd-fast-10"), ("recordsize", "8K"), ("logbias", "latency"),
    ("zfs.zil_slog_bulk", "65536"), ("zfs.zvol_use_blk_mq", "0"), ("mount.nconnect", "4"),
    ("nfsd.grace", "90"),
)  # fmt: skip
"""Settings of ZFS, some of which had axes once."""
_USUAL = tuple(axis for axis in AXES.values() if axis.default is not None and not axis.is_setting)


@st.composite
def usual_cell(draw: st.DrawFn) -> Cell:
    """One of these."""
    transport = draw(st.sampled_from(TRANSPORT.names))
    cell = Cell.of(
        transport=transport,
        sync=draw(st.sampled_from(SYNC.names)),
        slog=(slog := draw(st.sampled_from(SLOG.names))),
        filesystem=draw(st.sampled_from(_filesystems_over(transport))),
        fate=draw(st.sampled_from(fates_over(transport, slog))),
    )
    for axis in _USUAL:
        cell = _but(cell, axis.field, draw(st.sampled_from(axis.names)))
    return cell


@st.composite
def any_cell(draw: st.DrawFn) -> Cell:
    """A cell with any settings that make sense with it."""
    cell = draw(usual_cell())
    for axis in draw(st.lists(st.sampled_from(SETTINGS), unique=True)):
        cell = _but(cell, axis.field, draw(st.sampled_from(axis.names)))
    for name, value in draw(st.lists(st.sampled_from(OF_ZFS), max_size=4)):
        with contextlib.suppress(ValueError):
            cell = cell.with_settings({name: value})
    return cell


def cells_over(names: Mapping[str, tuple[str, ...]]) -> Iterator[Cell]:
    """Every combination of these choices that makes sense, with the default on all other axes.

    An axis without a default needs a choice.
    """
    of_axis = [
        names.get(field) or ((axis.default,) if axis.default else axis.names)
        for field, axis in AXES.items()
    ]
    for combination in product(*of_axis):
        with contextlib.suppress(ValueError):
            yield Cell(combination)


def longest_name() -> str:
    """The longest name of all cells with settings as usual."""
    return max(map(_longest_over, TRANSPORT.names), key=len)


def cell_with(name: str = EXAMPLE, **choices: str) -> Cell:
    """The cell of this name but for these choices."""
    return Cell.parse(name).but(**choices)


def _longest_over(transport: str) -> str:
    filesystem, fate = max(_filesystems_over(transport), key=len), fates_over(transport, "lost")[-1]
    cell = cell_with(transport=transport, filesystem=filesystem, fate=fate)
    for axis in AXES.values():
        if not axis.is_setting and axis not in (TRANSPORT, FILESYSTEM):
            made = (_but(cell, axis.field, name) for name in axis.names)
            cell = max(made, key=lambda made: len(made.name))
    return cell.name


def fates_over(transport: str, slog: str = "noslog") -> tuple[str, ...]:
    """Of a VM on the NAS itself both die. A NAS that lives keeps its log devices."""
    if TRANSPORT.choice(transport).value.traits.is_local:
        return ("bothdie",)
    loses_log = SLOG.choice(slog).value.gone_at_cut > 0
    return tuple(fate for fate in FATE.names if not (loses_log and fate == "clientonly"))


def _filesystems_over(transport: str) -> list[str]:
    gives_files = TRANSPORT.choice(transport).value.traits.gives_files
    return [name for name in FILESYSTEM.names if (name == FILES) is gives_files]


def _but(cell: Cell, field: str, name: str) -> Cell:
    with contextlib.suppress(ValueError):
        return cell.but(**{field: name})
    return cell
