"""The guarantee of theory for each cell, written down once more, apart from the code."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given

from suites.selftest.unit.every_cell import cell_with, fates_over, usual_cell
from torture.choices.matrix.cell_terms import (
    acknowledged_sync_of,
    completed_sync_of,
    disks_keep_power,
    flushed_data_sync_of,
    guarantee_of,
    must_lose,
    names_are_volatile_in,
)
from torture.choices.matrix.cells import (
    AXES,
    CACHE,
    CLIENTS,
    DISKS,
    EVENT,
    FATE,
    IMAGE,
    LOCKS,
    NFS_EXPORT,
    SLOG,
    SYNC,
    TRANSPORT,
    Cell,
)
from torture.facts.axes.fate import Fate
from torture.facts.axes.sync import Sync
from torture.facts.recording.disks import Persistence
from torture.oracles.verdict.guarantee import ROLLBACK_MS_MAX, Guarantee, Verdict

WRITE_BACK = {
    (Sync.STANDARD, Fate.BOTH_DIE): Guarantee.SAFE,
    (Sync.STANDARD, Fate.NAS_ONLY): Guarantee.LOSES,
    (Sync.ALWAYS, Fate.BOTH_DIE): Guarantee.SAFE,
    (Sync.ALWAYS, Fate.NAS_ONLY): Guarantee.SAFE,
    (Sync.DISABLED, Fate.BOTH_DIE): Guarantee.ROLLS_BACK,
    (Sync.DISABLED, Fate.NAS_ONLY): Guarantee.LOSES,
}
"""Disks that honour flushes, and a transport that completes what is only in the NAS's memory."""

STABLE = WRITE_BACK | {(Sync.STANDARD, Fate.NAS_ONLY): Guarantee.SAFE}
"""One that does not, or whose client keeps what it wrote until it is stable."""

BEFORE_ZFS = WRITE_BACK | {(Sync.ALWAYS, Fate.NAS_ONLY): Guarantee.LOSES}
"""One with a page cache of the NAS before ZFS."""

ANSWERED_EARLY = WRITE_BACK | {(Sync.STANDARD, Fate.BOTH_DIE): Guarantee.ROLLS_BACK}
"""NFS whose server says async; Ganesha and SMB, whose servers sync no directory."""

UNFLUSHED = ANSWERED_EARLY
"""A disk that hides its write cache, or drops its flushes."""

TRANSPORTS = {
    "iscsi": WRITE_BACK,
    "iscsi_guest": WRITE_BACK,
    "iscsi_two": WRITE_BACK,
    "iscsi_two_unlisted": WRITE_BACK,
    "nvme_tcp": WRITE_BACK,
    "nvme_tcp_single": WRITE_BACK,
    "nvme_tcp_two": WRITE_BACK,
    "nfs_image": WRITE_BACK,
    "fileio_wb": WRITE_BACK,
    "fileio_wb_zvol": BEFORE_ZFS,
    "fileio": STABLE,
    "nfs_image_stable": STABLE,
    "smb": ANSWERED_EARLY,
    "samba": ANSWERED_EARLY,
    "ganesha": ANSWERED_EARLY,
    "tgt": BEFORE_ZFS,
    "istgt": BEFORE_ZFS,
    "targetcli": WRITE_BACK,
    "targetcli_file": WRITE_BACK,
    "targetcli_hidden": UNFLUSHED,
    "nvme_tcp_file": WRITE_BACK,
    "scst": WRITE_BACK,
    "scst_guest": WRITE_BACK,
    "scst_file": WRITE_BACK,
    "scst_file_guest": WRITE_BACK,
    "scst_file_through": STABLE,
    "scst_file_nv": UNFLUSHED,
    "scst_file_ext4": BEFORE_ZFS,
    "scst_file_xfs": BEFORE_ZFS,
    "scst_file_xfs_through": STABLE,
    "scst_file_head": WRITE_BACK,
    "scst_file_synced": WRITE_BACK,
    "nfs3": STABLE,
    "nfs4": STABLE,
    "local": WRITE_BACK,
    "local_files": WRITE_BACK,
}

FORGETFUL = WRITE_BACK | {
    (Sync.STANDARD, Fate.BOTH_DIE): Guarantee.ROLLS_BACK,
    (Sync.ALWAYS, Fate.BOTH_DIE): Guarantee.ROLLS_BACK,
    (Sync.ALWAYS, Fate.NAS_ONLY): Guarantee.LOSES,
}
"""A slog that is lost with the cut, or lies: the design's rows of those names."""

THEORY = {
    "noslog": WRITE_BACK,
    "plp": WRITE_BACK,
    "volatile": WRITE_BACK,
    "mirror": WRITE_BACK,
    "lying": FORGETFUL,
    "lost": FORGETFUL,
}


def in_theory(rows: Mapping[tuple[Sync, Fate], Guarantee], sync: Sync, fate: Fate) -> Guarantee:
    """Without a NAS nothing is acknowledged: a client that dies meanwhile might as well have at once.

    A NAS that lives has everything.
    """
    if fate is Fate.CLIENT_ONLY:
        return rows.get((sync, fate), Guarantee.SAFE)
    return rows[sync, Fate.BOTH_DIE if fate is Fate.CLIENT_LATER else fate]


@pytest.mark.parametrize("fate", Fate)
@pytest.mark.parametrize("sync", Sync)
@pytest.mark.parametrize("slog", SLOG.names)
def test_a_cell_has_the_guarantee_of_theory(slog: str, sync: Sync, fate: Fate) -> None:
    if fate not in fates_over("iscsi", slog):
        return
    cell = cell_with(slog=slog, sync=sync, fate=fate)
    assert guarantee_of(cell) is in_theory(THEORY[slog], sync, fate)


@pytest.mark.parametrize("fate", Fate)
@pytest.mark.parametrize("sync", Sync)
@pytest.mark.parametrize("transport", TRANSPORT.names)
def test_a_transport_has_the_guarantee_of_theory(transport: str, sync: Sync, fate: Fate) -> None:
    traits = TRANSPORT.choice(transport).value.traits
    filesystem = "files" if traits.gives_files else "btrfs"
    if fate not in fates_over(transport):
        with pytest.raises(ValueError, match="needs a client of its own"):
            cell_with(transport=transport, sync=sync, fate=fate, filesystem=filesystem)
        return
    cell = cell_with(transport=transport, sync=sync, fate=fate, filesystem=filesystem)
    assert guarantee_of(cell) is in_theory(TRANSPORTS[transport], sync, fate)
    if traits.is_nfs:
        answered_early = guarantee_of(cell.but(nfs_export="export_async"))
        assert answered_early is in_theory(ANSWERED_EARLY, sync, fate)


OFFLINE = {(sync, Fate.NAS_ONLY): Guarantee.MAY_GO_OFFLINE for sync in (Sync.STANDARD, Sync.ALWAYS)}
HYPERVISORS = {
    "nfs4-rawimage": STABLE,
    "nfs3-qcow2-threads": STABLE,
    "nfs4-rawimage-writeback": STABLE,
    "nfs4-qcow2pre-writethrough": STABLE,
    "nfs4-rawimage-noflush": STABLE,
    "nfs4-rawimage-unsafe": dict.fromkeys(product(Sync, Fate), Guarantee.LOSES),
    "nfs4-rawimage-locked": STABLE,
    "nfs4-rawimage-forgotten": STABLE,
    "nfs4-rawimage-locked-forgotten": STABLE | OFFLINE,
    "smb-rawimage": WRITE_BACK,
    "ganesha-qcow2": STABLE,
    "iscsi_guest-rawimage": WRITE_BACK,
    "iscsi_guest-lvm-directsync": WRITE_BACK,
    "iscsi_guest-qcow2-writeback": WRITE_BACK,
    "iscsi_guest-rawimage-noflush": WRITE_BACK
    | {(Sync.STANDARD, Fate.BOTH_DIE): Guarantee.ROLLS_BACK},
    "nvme_tcp-rawimage": WRITE_BACK,
    "nfs_image-directsync": WRITE_BACK,
}
"""QEMU's table of cache modes (qemu-system(1)), over each kind of store."""


@pytest.mark.parametrize("fate", Fate)
@pytest.mark.parametrize("sync", Sync)
@pytest.mark.parametrize("name", HYPERVISORS)
def test_a_hypervisor_has_the_guarantee_of_theory(name: str, sync: Sync, fate: Fate) -> None:
    cell = Cell.parse(f"{name}-{sync}-noslog-ext4-{fate}")
    assert guarantee_of(cell) is in_theory(HYPERVISORS[name], sync, fate)
    if cell[TRANSPORT].traits.is_nfs and "unsafe" not in name:
        answered_early = guarantee_of(cell.but(nfs_export="export_async"))
        assert answered_early is in_theory(ANSWERED_EARLY, sync, fate) or "locked" in name


@pytest.mark.parametrize(
    ("name", "guarantee"),
    [
        ("iscsi-standard-noslog-ext4-poolfull-bothdie", Guarantee.MAY_GO_OFFLINE),
        ("iscsi-standard-noslog-ext4-poolfull-nasonly", Guarantee.LOSES),
        ("nfs4-qcow2-standard-noslog-ext4-poolfull-nasonly", Guarantee.MAY_GO_OFFLINE),
        ("local-disabled-noslog-ext4-poolfull-bothdie", Guarantee.ROLLS_BACK),
    ],
)
def test_a_full_pool_may_end_a_vm_and_loses_nothing(name: str, guarantee: Guarantee) -> None:
    assert guarantee_of(Cell.parse(name)) is guarantee


@pytest.mark.parametrize(
    ("name", "loses"),
    [
        ("nfs4-rawimage-unsafe-always-noslog-ext4-bothdie", True),
        ("nfs4-rawimage-unsafe-always-noslog-ext4-nasonly", False),
        ("iscsi_guest-rawimage-noflush-standard-noslog-ext4-bothdie", True),
        ("iscsi_guest-rawimage-noflush-always-noslog-ext4-bothdie", False),
        ("nfs4-rawimage-noflush-standard-noslog-ext4-bothdie", False),
    ],
)
def test_a_hypervisor_that_keeps_flushes_must_lose_with_its_power(name: str, loses: bool) -> None:
    assert must_lose(Cell.parse(name)) is loses


@pytest.mark.parametrize(
    ("name", "acknowledged", "completed"),
    [
        ("iscsi-standard-noslog-ext4-bothdie", Sync.STANDARD, Sync.STANDARD),
        ("iscsi-always-noslog-ext4-bothdie", Sync.ALWAYS, Sync.ALWAYS),
        ("fileio-standard-noslog-ext4-bothdie", Sync.STANDARD, Sync.ALWAYS),
        ("fileio-disabled-noslog-ext4-bothdie", Sync.DISABLED, Sync.DISABLED),
        ("fileio_wb-always-noslog-ext4-bothdie", Sync.ALWAYS, Sync.ALWAYS),
        ("fileio_wb_zvol-always-noslog-ext4-bothdie", Sync.ALWAYS, Sync.STANDARD),
        ("nfs4-standard-noslog-files-bothdie", Sync.STANDARD, Sync.STANDARD),
        ("smb-standard-noslog-files-bothdie", Sync.DISABLED, Sync.STANDARD),
        ("nfs4-export_async-standard-noslog-files-bothdie", Sync.DISABLED, Sync.DISABLED),
        ("nfs4-export_async-always-noslog-files-bothdie", Sync.ALWAYS, Sync.ALWAYS),
    ],
)
def test_a_cell_promises_as_much_as_its_transport(
    name: str, acknowledged: Sync, completed: Sync
) -> None:
    cell = Cell.parse(name)
    assert (acknowledged_sync_of(cell), completed_sync_of(cell)) == (acknowledged, completed)


@pytest.mark.parametrize(
    ("name", "volatile", "acknowledged", "of_data"),
    [
        ("smb-standard-noslog-files-bothdie", True, Sync.DISABLED, Sync.STANDARD),
        ("smb-always-noslog-files-bothdie", False, Sync.ALWAYS, Sync.ALWAYS),
        ("smb-disabled-noslog-files-bothdie", False, Sync.DISABLED, Sync.DISABLED),
        ("nfs4-standard-noslog-files-bothdie", False, Sync.STANDARD, Sync.STANDARD),
        ("nfs4-export_async-standard-noslog-files-bothdie", False, Sync.DISABLED, Sync.DISABLED),
    ],
)
def test_where_names_are_volatile_flushed_data_are_not(
    name: str, volatile: bool, acknowledged: Sync, of_data: Sync
) -> None:
    cell = Cell.parse(name)
    assert names_are_volatile_in(cell) is volatile
    assert (acknowledged_sync_of(cell), flushed_data_sync_of(cell)) == (acknowledged, of_data)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nfs4-standard-noslog-btrfs-nasonly", "'btrfs' needs a disk.*choose files"),
        ("iscsi-standard-noslog-files-nasonly", "'files' needs a transport that gives files"),
        ("iscsi-export_async-standard-noslog-btrfs-nasonly", "'export_async' is for NFS"),
    ],
)
def test_a_choice_that_a_transport_lacks_is_refused_with_the_reason(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Cell.parse(name)


_DECIDING = (TRANSPORT, IMAGE, CACHE, LOCKS, CLIENTS, NFS_EXPORT, SYNC, SLOG, EVENT, FATE)
DECIDING = [axis.field for axis in _DECIDING]
"""The axes that decide."""


@given(usual_cell())
def test_speed_layout_filesystem_and_honest_disks_change_no_guarantee(cell: Cell) -> None:
    if cell[DISKS] is not Persistence.LYING:
        choices = dict(zip(AXES, cell.choices, strict=True))
        deciding = {axis: choices[axis] for axis in DECIDING}
        if cell[TRANSPORT].traits.gives_files:
            deciding["filesystem"] = "files"  # it can have no other
        assert guarantee_of(cell) is guarantee_of(cell_with(**deciding))


@given(usual_cell())
def test_on_lying_disks_even_the_pool_may_go_with_any_other_choices(cell: Cell) -> None:
    lying = cell_with(cell.name, disks="lyingdisks")
    if not disks_keep_power(lying):
        assert guarantee_of(lying) is Guarantee.MAY_LOSE_POOL
    assert guarantee_of(lying).worst_allowed.badness >= guarantee_of(cell).worst_allowed.badness


KEPT_BY = {
    Guarantee.SAFE: {Verdict.INTACT},
    Guarantee.MAY_GO_OFFLINE: {Verdict.INTACT, Verdict.OFFLINE},
    Guarantee.ROLLS_BACK: {
        Verdict.INTACT,
        Verdict.OFFLINE,
        Verdict.REPAIRED,
        Verdict.ROLLED_BACK,
    },
    Guarantee.LOSES: set(Verdict) - {Verdict.POOL_LOST, Verdict.SPLIT_BRAIN},
    Guarantee.MAY_LOSE_POOL: set(Verdict) - {Verdict.SPLIT_BRAIN},
}


@pytest.mark.parametrize("guarantee", Guarantee)
@pytest.mark.parametrize("verdict", Verdict)
def test_a_guarantee_is_broken_by_a_worse_verdict_and_never_by_the_machinery(
    guarantee: Guarantee, verdict: Verdict
) -> None:
    keeps = verdict in KEPT_BY[guarantee] or verdict is Verdict.INCONCLUSIVE
    assert guarantee.is_broken_by(verdict) is not keeps


def test_a_rollback_longer_than_three_transaction_groups_breaks_a_guarantee_to_roll_back() -> None:
    assert ROLLBACK_MS_MAX == 3 * 5_000
    rolls_back = Guarantee.ROLLS_BACK
    assert not rolls_back.is_broken_by(Verdict.ROLLED_BACK, ROLLBACK_MS_MAX)
    assert rolls_back.is_broken_by(Verdict.ROLLED_BACK, ROLLBACK_MS_MAX + 0.1)
    assert not rolls_back.is_broken_by(Verdict.INCONCLUSIVE, ROLLBACK_MS_MAX + 0.1)
    assert not Guarantee.LOSES.is_broken_by(Verdict.ROLLED_BACK, ROLLBACK_MS_MAX + 0.1)
    assert not Guarantee.MAY_LOSE_POOL.is_broken_by(Verdict.ROLLED_BACK, ROLLBACK_MS_MAX + 0.1)
    assert Guarantee.SAFE.is_broken_by(Verdict.ROLLED_BACK, 0.0)
