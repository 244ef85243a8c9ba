"""Cells, their names, the matrices, and what theory guarantees for each cell."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.every_cell import EXAMPLE, GROWING, any_cell, cell_with, cells_over
from torture.choices.matrix.cells import (
    ADMINISTRATION,
    AXES,
    CACHE,
    DEFAULTS,
    DISKS,
    EARLY,
    EVENT,
    FATE,
    FILESYSTEM,
    IMAGE,
    LAYOUT,
    NAS_LINK,
    NFS_EXPORT,
    PATIENCE,
    SLOG,
    SLOG_CLASS,
    SYNC,
    TRANSPORT,
    WORKLOAD,
    Cell,
    cells_of,
)
from torture.facts.axes import hypervisor
from torture.facts.axes.axis import Axis
from torture.facts.axes.fate import Fate
from torture.facts.axes.hypervisor import Image
from torture.facts.axes.pool_disks import Layout, SlogClass
from torture.facts.axes.setting import Interruption
from torture.facts.axes.sweeps import Matrix
from torture.facts.axes.sync import Sync

LONGEST = "iscsi-standard-mirror-optane-raidz1-lyingdisks-btrfs-nasonly"
CHOICES = [name for axis in AXES.values() for name in axis.names]
VARIED = [
    field
    for field, choice in Cell.parse(LONGEST).axes.items()
    if choice and choice != DEFAULTS.get(field)
]
"""The axes of which the longest name says something."""
cells = any_cell()
USUAL_FATES = (Fate.BOTH_DIE, Fate.NAS_ONLY)
"""Those of every matrix."""


def test_every_name_is_its_cell_and_no_two_share_one() -> None:
    """Over all axes whose choices decide what makes sense on another; the rest are drawn below."""
    deciding = (TRANSPORT, NFS_EXPORT, SLOG, SLOG_CLASS, FILESYSTEM, WORKLOAD)
    coupled = {axis.field: axis.names for axis in deciding}
    of_a_kind = {
        choice.value.needs_files: choice.name
        for choice in WORKLOAD.choices
        if not choice.value.needs_atomic_writes
    }
    coupled[WORKLOAD.field] = tuple(of_a_kind.values())
    every = tuple(cells_over(coupled | {"sync": ("always",), "fate": ("nasonly",)}))
    names = {cell.name for cell in every}
    logs = sum(len(SlogClass) if choice.value.legs else 1 for choice in SLOG.choices)
    assert logs >= 1 + 5 * 6
    loads = len(of_a_kind)
    on_a_disk = (len(FILESYSTEM.names) - 2) * loads + 1
    exports = sum(
        (2 if choice.value.traits.is_nfs else 1)
        * (loads if choice.value.traits.gives_files else on_a_disk)
        for choice in TRANSPORT.choices
        if not choice.value.traits.is_local
    )
    assert len(names) == len(every) == logs * exports
    assert all(Cell.parse(cell.name) == cell for cell in every)


def test_a_load_that_looks_at_inodes_is_not_where_there_are_none() -> None:
    """Over SMB every file has the mount's mode, and two names of one are two inodes."""
    with pytest.raises(ValueError, match="checks modes and inodes, and smb does not show"):
        Cell.parse("smb-standard-noslog-files-posix-bothdie")
    assert Cell.parse("nfs3-standard-noslog-files-posix-bothdie")
    assert Cell.parse("smb-standard-noslog-files-sqlite_full-bothdie")


@pytest.mark.parametrize("axis", AXES.values(), ids=AXES)
def test_each_choice_of_each_axis_has_a_name_that_is_its_cell(axis: Axis[Any]) -> None:
    usual = {
        "transport": ("iscsi", "nfs3", "nvme_tcp_single"),
        "sync": ("always",),
        "slog": ("mirror",),
        "filesystem": ("ext4", "files", "raw"),
        "fate": ("nasonly",),
    }
    if axis is ADMINISTRATION:  # each wants a pool of its own kind
        usual |= {
            "sync": SYNC.names,
            "layout": LAYOUT.names,
            "slog": ("noslog", "mirror"),
            "fate": FATE.names,
        }
    if axis is TRANSPORT:
        usual |= {"fate": ("bothdie",)}
    if axis in (EVENT, FATE):  # a NAS that ends in order, or lives, loses no log device
        usual |= {"slog": ("plp",)}
    if axis in (EARLY, PATIENCE):
        usual |= {"transport": ("iscsi_guest", "nfs4", "nvme_tcp")}
    if axis in hypervisor.AXES:
        usual |= {"transport": ("iscsi_guest", "nfs4"), "image": ("noimage", "rawimage")}
    every = tuple(cells_over(usual | {axis.field: axis.names}))
    assert {cell.axes[axis.field] for cell in every} - {""} == set(axis.names)
    assert len({cell.name for cell in every}) == len(every)
    assert all(Cell.parse(cell.name) == cell for cell in every)


@given(cells, cells)
def test_with_any_settings_a_name_is_one_cells(one: Cell, other: Cell) -> None:
    assert Cell.parse(one.name) == one
    assert (one == other) is (one.name == other.name)


def test_the_example_of_the_documents_parses() -> None:
    assert Cell.parse(EXAMPLE) == Cell.of(
        transport="iscsi",
        sync=Sync.STANDARD,
        slog="noslog",
        slog_class=SlogClass.NVME,
        layout=Layout.SINGLE,
        disks="volatiledisks",
        filesystem="btrfs",
        fate=Fate.NAS_ONLY,
    )


def test_a_name_says_everything_that_is_no_default() -> None:
    longest = cell_with(
        slog="mirror",
        slog_class=SlogClass.OPTANE,
        layout=Layout.RAIDZ1,
        disks="lyingdisks",
    )
    assert longest.name == LONGEST == "-".join(longest.axes[axis] for axis in VARIED)


@given(cells)
def test_axes_are_all_there_in_order_and_only_meaningless_ones_are_empty(cell: Cell) -> None:
    assert tuple(cell.axes) == tuple(AXES)
    empty = {axis for axis, choice in cell.axes.items() if not choice}
    traits = cell[TRANSPORT].traits
    expected = set() if cell[SLOG].legs else {"slog_class"}
    expected |= set() if traits.is_nfs else {"nfs_export"}
    has_image, below = cell[IMAGE] is not Image.NONE, cell[TRANSPORT].below.traits
    expected |= set() if has_image else {"bus", "aio", "locks", "clients", "hypervisor"}
    expected |= {"bus"} if cell[CACHE].is_written_through else set()
    expected |= set() if has_image and below.keeps_clients else {"locks", "clients"}
    has_cache = has_image or cell[TRANSPORT].below.cached("cachenone") is not None
    expected |= set() if has_cache else {"cache"}
    expected |= set() if below.takes_hypervisor else {"image"}
    expected |= {"zil_nocacheflush"} if cell[SYNC] is Sync.DISABLED else set()
    expected |= set() if 4096 in traits.sectors_bytes else {"lun_sector"}
    expected |= set() if traits.can_discard else {"discard"}
    has_own_root = traits.client_has_network or traits.is_local
    is_bootable = cell[FILESYSTEM].root_words and not has_own_root
    expected |= set() if is_bootable else {"root"}
    expected |= {"event"} if cell[FATE] is Fate.CLIENT_ONLY else set()
    expected |= {"early"} if cell[FATE] is not Fate.NAS_ONLY else set()
    waits = cell[FATE] is Fate.NAS_ONLY and cell[NAS_LINK] == Interruption()
    expected |= set() if waits or cell[NAS_LINK].is_of_link else {"away"}
    is_soft_anyway = has_image and cell.axes["transport"] in ("smb", "samba")
    expected |= set() if below.waits_s and not is_soft_anyway else {"patience"}
    assert empty == expected
    assert all(AXES[axis].choice(name).name == name for axis, name in cell.axes.items() if name)
    shown = [choice for axis, choice in cell.axes.items() if choice != DEFAULTS.get(axis)]
    assert cell.name == "-".join(filter(None, shown))


@given(cells, cells)
def test_cells_are_ordered_axis_by_axis(one: Cell, other: Cell) -> None:
    ranks = [cell.choices for cell in (one, other)]
    assert (one < other) is (ranks[0] < ranks[1])


@given(
    st.lists(st.sampled_from(CHOICES), max_size=9) | cells.map(lambda cell: cell.name.split("-"))
)
def test_a_name_that_parses_is_the_one_its_cell_has(parts: list[str]) -> None:
    name = "-".join(parts)
    try:
        cell = Cell.parse(name)
    except ValueError:
        return
    assert cell.name == name


@given(cells, st.data())
def test_a_part_that_is_doubled_moved_or_missing_is_refused(
    cell: Cell, data: st.DataObject
) -> None:
    parts = cell.name.split("-")
    place = data.draw(st.integers(0, len(parts) - 1))
    doubled = [*parts[: place + 1], *parts[place:]]
    with pytest.raises(ValueError, match=re.escape(parts[place])):
        Cell.parse("-".join(doubled))
    for other in range(len(parts)):
        moved = [*parts[:place], *parts[place + 1 :]]
        moved.insert(other, parts[place])
        if moved != parts:
            with pytest.raises(ValueError, match=r"misplaced|one part too many"):
                Cell.parse("-".join(moved))
    axis = next(axis for axis, choice in cell.axes.items() if choice == parts[place])
    if axis not in DEFAULTS:
        with pytest.raises(
            ValueError, match=rf"(?s)(misplaced|lacks its next part).*{AXES[axis].noun} \("
        ):
            Cell.parse("-".join([*parts[:place], *parts[place + 1 :]]))


@pytest.mark.parametrize("place", range(len(VARIED)))
def test_an_error_names_the_bad_part_and_the_known_choices(place: int) -> None:
    parts = LONGEST.split("-")
    parts[place] = "floppy"
    with pytest.raises(ValueError, match="'floppy'") as caught:
        Cell.parse("-".join(parts))
    axis = AXES[VARIED[place]]
    assert axis.noun in str(caught.value)
    assert all(choice in str(caught.value) for choice in axis.names)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("icsi-standard-noslog-btrfs-nasonly", r"is no Transport \(nearest: iscsi, iscsi_two\)$"),
        ("iscsi-always-noslog-btrfs-postgre-bothdie", r"\(nearest: postgres, postgres_async\)$"),
        ("iscsi-standard-noslog-btfrs-nasonly", r"is no Filesystem \(nearest: btrfs\)$"),
        ("iscsi-standard-noslog-btrfs-nasolny", r"is no Fate \(nearest: nasonly\)$"),
    ],
)
def test_of_a_typo_the_few_nearest_choices_are_said(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Cell.parse(name)


def test_an_error_offers_the_axes_that_were_left_out_too() -> None:
    with pytest.raises(ValueError, match="'slow'") as caught:
        Cell.parse("iscsi-standard-plp-raidz1-slow-btrfs-nasonly")
    assert "Disks (" in str(caught.value)
    assert "Filesystem (" in str(caught.value)
    assert "SlogClass (" not in str(caught.value), "its place is passed"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "'' in '' is no Transport"),
        ("-", "is no Transport"),
        ("iscsi", "lacks its next part: .*Sync"),
        (EXAMPLE.removesuffix("-nasonly"), "lacks its next part: .*Fate"),
        (f"{EXAMPLE}-more", "'more' in .* is one part too many: a name ends with the Fate"),
        (f"{EXAMPLE}-", "'' in .* is one part too many: a name ends with the Fate"),
        ("iscsi-standard-slog-btrfs-nasonly", "'slog' in .* is no Slog "),
        (
            "iscsi-standard-plp-raidz1-optane-btrfs-nasonly",
            "'optane' .* misplaced: it is a SlogClass",
        ),
        ("iscsi-standard-plp-nvme-btrfs-nasonly", "'nvme' .* leave it out"),
        ("iscsi-standard-noslog-nvme-btrfs-nasonly", "'nvme' .* leave it out"),
        ("iscsi-standard-noslog-single-btrfs-nasonly", "'single' .* leave it out"),
        ("iscsi-standard-noslog-volatiledisks-btrfs-nasonly", "'volatiledisks' .* leave it out"),
        ("iscsi-standard-noslog-optane-btrfs-nasonly", "'optane' .*'noslog'"),
        # case and spaces are not forgiven
        (EXAMPLE.upper(), "is no"),
        (f" {EXAMPLE}", "is no"),
        (f"{EXAMPLE} ", "is no"),
    ],
)
def test_a_wrong_name_is_refused_with_the_wrong_part(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Cell.parse(name)


@pytest.mark.parametrize("slog_class", sorted(set(SlogClass) - {SlogClass.NVME}))
def test_without_a_slog_there_is_no_class_of_slogs(slog_class: SlogClass) -> None:
    with pytest.raises(ValueError, match=slog_class):
        cell_with(slog="noslog", slog_class=slog_class)


def test_each_matrix_begins_with_the_smaller_one() -> None:
    for smaller, larger in pairwise(cells_of(matrix) for matrix in GROWING):
        assert larger[: len(smaller)] == smaller
        assert len(larger) > len(smaller)


@pytest.mark.parametrize(
    ("matrix", "count"),
    [
        (Matrix.QUICK, 10),
        (Matrix.DEFAULT, 62),
        (Matrix.FULL, 293),
        (Matrix.BOOT, 10),
        (Matrix.OUTAGES, 87),
    ],
)
def test_a_matrix_is_stable_and_has_no_cell_twice(matrix: Matrix, count: int) -> None:
    assert cells_of(matrix) == cells_of(matrix)
    assert len(set(cells_of(matrix))) == len(cells_of(matrix)) == count


def test_quick_is_every_sync_with_every_fate_on_btrfs_and_nfs_as_it_comes() -> None:
    datastores = {"nfs_image": "btrfs", "nfs4": "files"}
    assert set(cells_of(Matrix.QUICK)) == {
        cell_with(sync=sync, fate=fate) for sync in Sync for fate in USUAL_FATES
    } | {
        cell_with(transport=transport, filesystem=filesystem, fate=fate)
        for transport, filesystem in datastores.items()
        for fate in USUAL_FATES
    }


def test_default_is_every_slog_and_whole_where_users_are() -> None:
    default = set(cells_of(Matrix.DEFAULT))
    assert default >= {
        cell_with(sync=sync, fate=fate, slog=slog, filesystem=filesystem)
        for sync in Sync
        for fate in USUAL_FATES
        for slog in ("noslog", "plp")
        for filesystem in ("btrfs", "ext4")
    }
    assert default >= {
        cell_with(sync=Sync.ALWAYS, fate=fate, slog=slog)
        for fate in USUAL_FATES
        for slog in SLOG.names
    }


def test_full_has_every_slog_on_every_filesystem_and_every_usual_choice_of_the_others() -> None:
    full = set(cells_of(Matrix.FULL))
    wanted: list[dict[str, Any]] = [
        {"slog": slog, "filesystem": filesystem}
        for slog in SLOG.names
        for filesystem in ("btrfs", "ext4", "xfs", "raw")
    ]
    wanted += [{"layout": x} for x in (Layout.SINGLE, Layout.MIRRORED, Layout.RAIDZ1)]
    wanted += [{"disks": x} for x in DISKS.names]
    assert full >= {
        cell_with(sync=sync, fate=fate, **choices)
        for sync in Sync
        for fate in USUAL_FATES
        for choices in wanted
    }
    assert full >= {
        cell_with("iscsi-always-plp-btrfs-bothdie", slog_class=slog_class)
        for slog_class in SlogClass
    }


def test_no_choice_is_on_two_axes() -> None:
    """Each is a pytest mark: a choice on two axes would select the cells of both."""
    assert len(set(CHOICES)) == len(CHOICES)
    assert all(choice.isidentifier() for choice in CHOICES), "`-m` takes identifiers only"
