"""The NAS's disks, how they become a pool, how slow they are, and which a cut takes away."""

from __future__ import annotations

import subprocess
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.every_cell import any_cell
from torture.choices.matrix.cells import SLOG, SLOG_CLASS, SYNC, TRANSPORT, Cell
from torture.facts.axes.pool_disks import SlogClass
from torture.facts.recording.disks import Persistence, Profile, ShelfDisk
from torture.machines.nas.pool import (
    DATA_PROFILES,
    LOG_PROFILES,
    create_script,
    gone_at_cut,
    log_disks,
    make_script,
    pool_disks,
    shows_metadata_by_length,
    wait_for_disks_script,
)
from torture.machines.nas.settings import volume_options_of

PLP, VOLATILE, LYING = Persistence.PLP, Persistence.VOLATILE, Persistence.LYING
cells = any_cell()


def cell_of(middle: str) -> Cell:
    return Cell.parse(f"iscsi-always-{middle}-btrfs-bothdie")


@pytest.mark.parametrize(
    ("middle", "vdevs"),
    [
        ("noslog", "data0"),
        ("plp", "data0 log slog0"),
        ("volatile", "data0 log slog0"),
        ("lying", "data0 log slog0"),
        ("mirror", "data0 log mirror slog0 slog1"),
        ("lost", "data0 log slog0"),
        ("noslog-mirrored", "mirror data0 data1"),
        ("noslog-raidz1", "raidz1 data0 data1 data2"),
        ("noslog-raidz1x7", "raidz1 data0 data1 data2 data3 data4 data5 data6"),
        ("mirror-hdd-raidz1", "raidz1 data0 data1 data2 log mirror slog0 slog1"),
    ],
)
def test_a_pool_is_made_of_these_words(middle: str, vdevs: str) -> None:
    (line,) = (x for x in create_script(cell_of(middle)).splitlines() if x.startswith("zpool "))
    options, _, words = line.partition(" tank ")
    assert options == "zpool create -f -o cachefile=none -O compression=off"
    assert words.replace("/dev/disk/by-id/virtio-", "") == vdevs
    names = {"log", "mirror", "raidz1"}
    assert all(w in names or w.startswith("/dev/disk/by-id/virtio-") for w in words.split())


@given(cells)
def test_every_disk_is_in_the_pool_once_and_data_disks_come_first(cell: Cell) -> None:
    serials = [disk.serial for disk in pool_disks(cell)]
    assert len(set(serials)) == len(serials)
    assert serials == sorted(serials)
    words = create_script(cell).split()
    assert all(
        words.count(f"/dev/disk/by-id/virtio-{serial}") == (not serial.startswith("spare"))
        for serial in serials
    )
    volume = cell[TRANSPORT].make_volume_script(volume_options_of(cell))
    assert f"-o sync={cell[SYNC]} " in volume


@pytest.mark.parametrize(("refusals", "tries"), [(0, 1), (1, 2), (2, 3), (3, 3)])
def test_a_pool_whose_disk_is_out_of_sight_for_a_moment_is_tried_again(
    refusals: int, tries: int
) -> None:
    refusal = "cannot create 'tank': no such pool or dataset"
    commands = f"""
    udevadm() {{ :; }}
    zpool() {{
        test "$*" = "{create_script(cell_of("noslog")).removeprefix("zpool ")}" || exit 99
        tries=$((tries + 1)) && echo try
        test $tries -gt {refusals} || {{ echo "{refusal}" >&2; false; }}
    }}
    tries=0
    """
    done = subprocess.run(
        ["sh", "-c", commands + make_script(cell_of("noslog"))], capture_output=True, text=True
    )
    assert done.stdout.count("try") == tries
    assert (done.returncode == 0) is (refusals < 3)
    assert done.stderr.count(refusal) == min(refusals, 3)


@pytest.mark.parametrize(
    ("middle", "kept"),
    [
        ("noslog", {"data0": VOLATILE}),
        ("noslog-plpdisks", {"data0": PLP}),
        ("noslog-lyingdisks", {"data0": LYING}),
        ("noslog-mirrored-lyingdisks", {"data0": LYING, "data1": LYING}),
        ("noslog-raidz1", {"data0": VOLATILE, "data1": VOLATILE, "data2": VOLATILE}),
        ("plp", {"data0": VOLATILE, "slog0": PLP}),
        ("volatile-plpdisks", {"data0": PLP, "slog0": VOLATILE}),
        ("lying", {"data0": VOLATILE, "slog0": LYING}),
        ("mirror", {"data0": VOLATILE, "slog0": VOLATILE, "slog1": VOLATILE}),
        ("lost", {"data0": VOLATILE, "slog0": PLP}),
    ],
)
def test_a_disk_has_the_persistence_of_its_cell(middle: str, kept: dict[str, Persistence]) -> None:
    disks = pool_disks(cell_of(middle))
    assert {disk.serial: disk.persistence for disk in disks} == kept
    sizes_mib = {disk.serial[:4]: disk.size_mib for disk in disks}
    assert sizes_mib.items() <= {"data": 4096, "slog": 1024}.items()


@given(cells)
def test_disks_are_as_slow_as_their_class(cell: Cell) -> None:
    for disk in pool_disks(cell):
        is_log = disk.serial.startswith("slog")
        slow = LOG_PROFILES[cell[SLOG_CLASS]] if is_log else DATA_PROFILES[disk.persistence]
        assert disk.profile == slow


@given(cells, st.integers(0, 2**64 - 1))
def test_as_many_log_devices_are_gone_as_their_kind_says(cell: Cell, seed: int) -> None:
    gone = gone_at_cut(cell, seed)
    assert gone == gone_at_cut(cell, seed)
    assert len(gone) == cell[SLOG].gone_at_cut
    assert gone <= {disk.serial for disk in log_disks(cell)}


@pytest.mark.parametrize("slog", ["noslog", "plp", "volatile", "lying", "mirror", "lost"])
def test_only_a_lost_slog_or_a_leg_of_a_mirror_is_gone(slog: str) -> None:
    assert len(gone_at_cut(cell_of(slog), 1)) == (slog in {"lost", "mirror"})


def test_either_leg_of_a_mirror_may_be_the_one_that_goes() -> None:
    mirror = cell_of("mirror")
    gone = [gone_at_cut(mirror, seed) for seed in range(200)]
    assert set(gone) == {frozenset({"slog0"}), frozenset({"slog1"})}
    assert 60 < gone.count(frozenset({"slog0"})) < 140, "a coin that is this far off is none"
    assert gone_at_cut(cell_of("lost"), 1) == {"slog0"}


PUBLISHED_US = {
    SlogClass.HDD: 10_000,
    SlogClass.SATA_SSD: 1_000,
    SlogClass.SAS_SSD: 100,
    SlogClass.NVME: 25,
    SlogClass.OPTANE: 10,
    SlogClass.NVDIMM: 2.5,
}


@pytest.mark.parametrize("slog_class", SlogClass)
def test_one_synchronous_write_takes_the_published_time(slog_class: SlogClass) -> None:
    profile = LOG_PROFILES[slog_class]
    transfer_us = 4 / 1024 / profile.mib_per_s * 1e6 if profile.mib_per_s else 0
    took_us = profile.write_us + transfer_us + profile.flush_us
    assert took_us == pytest.approx(PUBLISHED_US[slog_class], abs=0.01)
    assert profile.write_us >= 0
    assert profile.flush_us >= 0
    assert profile.read_us == 0


def test_cached_devices_wait_in_the_flush_and_protected_ones_in_the_write() -> None:
    waits_in_flush = {x for x in SlogClass if LOG_PROFILES[x].flush_us > LOG_PROFILES[x].write_us}
    assert waits_in_flush == {SlogClass.HDD, SlogClass.SATA_SSD}
    assert {x for x in SlogClass if LOG_PROFILES[x].serial} == {SlogClass.HDD}
    speeds = [PUBLISHED_US[x] for x in SlogClass]
    assert speeds == sorted(speeds, reverse=True)


def test_a_profile_has_the_fields_that_the_plugin_reads() -> None:
    profile = Profile(read_us=1, seek_us=6, write_us=2.5, flush_us=3, mib_per_s=4, serial=True)
    assert asdict(profile) == {
        "read_us": 1, "seek_us": 6, "write_us": 2.5, "flush_us": 3, "mib_per_s": 4, "serial": True,
    }  # fmt: skip
    assert not any(asdict(Profile()).values())


def test_only_the_disks_that_are_left_are_waited_for() -> None:
    left, gone = (ShelfDisk(serial=serial, size_mib=64) for serial in ("data0", "slog0"))
    script = wait_for_disks_script([left])
    assert "data0" in script
    assert "slog0" not in script
    both = wait_for_disks_script([left, gone])
    for serial in ("data0", "slog0"):
        assert f'{serial}))/queue/write_cache)" = "write back"' in both


@given(cells)
def test_the_scripts_are_shell(cell: Cell) -> None:
    transport = cell[TRANSPORT]
    scripts = (
        wait_for_disks_script(pool_disks(cell)),
        make_script(cell),
        transport.make_volume_script(volume_options_of(cell)),
        transport.wait_for_volume_script(),
        transport.publish_script(volume_options_of(cell)),
        transport.wait_until_idle_script(),
        *transport.cache_scripts().values(),
    )
    script = "\n".join(scripts)
    subprocess.run(["sh", "-n"], input=script.encode(), check=True)


@pytest.mark.parametrize(
    ("name", "tells"),
    [
        ("iscsi-always-noslog-ext4-bothdie", True),
        ("iscsi-always-noslog-volblock64k-ext4-bothdie", True),
        ("iscsi-always-noslog-volblock4k-ext4-bothdie", False),
        ("iscsi-always-noslog-lz4-ext4-bothdie", False),
        ("iscsi-always-noslog-raidz1-ext4-bothdie", False),
        ("iscsi-always-noslog-mirrored-ext4-bothdie", True),
        ("nfs3-always-noslog-files-bothdie", False),
        ("nfs_image-always-noslog-ext4-bothdie", False),
    ],
)
def test_where_a_writes_length_tells_metadata_from_data(name: str, tells: bool) -> None:
    assert shows_metadata_by_length(Cell.parse(name)) is tells
