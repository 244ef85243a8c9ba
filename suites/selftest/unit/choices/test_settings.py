"""ZFS's settings as axes: what they set, where they mean something, what theory makes of them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from suites.selftest.unit.conftest import fake_tool
from suites.selftest.unit.every_cell import SETTINGS, any_cell
from torture.choices.matrix.cell_terms import (
    early_roles_in,
    flushes_its_log,
    guarantee_of,
    late_ms_of,
    waived_in,
)
from torture.choices.matrix.cells import (
    ADMINISTRATION,
    AWAY,
    EARLY,
    EVENT,
    FILESYSTEM,
    NAS_LINK,
    PATIENCE,
    ROOT,
    TRANSPORT,
    Cell,
)
from torture.choices.matrix.cells import SETTINGS as CHOSEN
from torture.choices.matrix.choices import parse_choices
from torture.choices.transports.iscsi import Iscsi
from torture.facts.axes import hypervisor
from torture.facts.axes.axis import Axis
from torture.facts.axes.fate import Fate
from torture.facts.axes.sweeps import (
    ADMINISTRATION_SWEEPS,
    BOOT_SWEEPS,
    EVERY_SWEEP,
    HYPERVISOR_SWEEPS,
    OUTAGE_SWEEPS,
    Sweep,
)
from torture.facts.recording.disks import Persistence
from torture.facts.recording.intent_log import TXG_ROLES, Role
from torture.machines.nas.pool import create_script, pool_disks, whole_on
from torture.machines.nas.settings import (
    HOST_ID,
    parameters_script,
    settings_of,
    volume_options_of,
)
from torture.oracles.audit.commits import LATE_MS
from torture.oracles.audit.invariants import Invariant
from torture.oracles.verdict.guarantee import Guarantee
from torture.report.figures.wording import common_in_words, varying_axes

SAFE, ROLLS_BACK = Guarantee.SAFE, Guarantee.ROLLS_BACK
LOSES, MAY_LOSE_POOL = Guarantee.LOSES, Guarantee.MAY_LOSE_POOL


def cell_of(middle: str, *, sync: str = "always", fate: str = "bothdie") -> Cell:
    return Cell.parse("-".join(filter(None, ("iscsi", sync, middle, "btrfs", fate))))


@pytest.mark.parametrize("axis", SETTINGS, ids=lambda axis: axis.field)
def test_only_the_usual_choice_of_a_setting_is_in_matrices(axis: Axis[Any]) -> None:
    """But for the sweeps that are about that very setting."""
    about = {
        ROOT.field: BOOT_SWEEPS,
        ADMINISTRATION.field: ADMINISTRATION_SWEEPS,
    } | dict.fromkeys((EVENT.field, EARLY.field, AWAY.field, PATIENCE.field), OUTAGE_SWEEPS)
    if axis in hypervisor.AXES:
        about[axis.field] = HYPERVISOR_SWEEPS | OUTAGE_SWEEPS | {Sweep.LIBNFS_DIRECTSYNC}
    own = about.get(axis.field, frozenset())
    joined = {choice.name: choice.joins for choice in axis.choices}
    usual = joined.pop(axis.default or "")
    assert usual >= EVERY_SWEEP - own
    assert frozenset[Sweep]().union(*joined.values()) <= own
    assert usual | frozenset[Sweep]().union(*joined.values()) == EVERY_SWEEP


@pytest.mark.parametrize(
    ("middle", "properties"),
    [
        ("noslog", {}),
        ("noslog-throughput", {"logbias": "throughput"}),
        ("noslog-volblock4k", {"volblocksize": "4K"}),
        ("noslog-volblock128k", {"volblocksize": "128K"}),
        ("noslog-zstd-dedup", {"compression": "zstd", "dedup": "on"}),
        ("noslog-compression=zstd~3", {"compression": "zstd-3"}),
    ],
)
def test_a_volume_has_the_properties_of_its_cell(middle: str, properties: dict[str, str]) -> None:
    options = volume_options_of(cell_of(middle))
    assert dict(options.properties) == properties
    script = Iscsi().make_volume_script(options)
    assert all(f"-o {name}={value} " in script for name, value in properties.items())
    asked = {setting.name: setting.expected for setting in settings_of(cell_of(middle))}
    assert asked == properties


@pytest.mark.parametrize(
    ("middle", "parameters"),
    [
        ("noslog", []),
        ("noslog-nocacheflush", ["zfs_nocacheflush"]),
        ("noslog-zilnocacheflush-blkmq", ["zil_nocacheflush", "zvol_use_blk_mq"]),
    ],
)
def test_the_modules_parameters_are_those_of_the_cell(middle: str, parameters: list[str]) -> None:
    script = parameters_script(cell_of(middle))
    assert script.count("echo 1 > ") == len(parameters)
    assert all(f"echo 1 > /sys/module/zfs/parameters/{name}" in script for name in parameters)
    names = [setting.name for setting in settings_of(cell_of(middle))]
    assert [name for name in names if " " not in name] == parameters
    assert ("queues of the zvol" in names) is ("zvol_use_blk_mq" in parameters)


def test_any_tunable_is_set_before_the_pool_and_read_back() -> None:
    cell = cell_of("noslog-zfs.zil_slog_bulk=65536-zilnocacheflush")
    files = {
        name: f"/sys/module/zfs/parameters/{name}" for name in ("zil_nocacheflush", "zil_slog_bulk")
    }
    assert parameters_script(cell) == " && ".join(
        f"echo {value} > {file}" for value, file in zip(("1", "65536"), files.values(), strict=True)
    )
    asked = {setting.name: (setting.script, setting.expected) for setting in settings_of(cell)}
    assert asked["zil_slog_bulk"] == (f"cat {files['zil_slog_bulk']}", "65536")


def test_a_property_of_the_pool_is_there_from_its_creation_and_read_back() -> None:
    cell = cell_of("noslog").but(
        **parse_choices([], pool_properties=["autotrim=on", "feature@large_blocks=disabled"])
    )
    assert "pool.autotrim=on+pool.feature@large_blocks=disabled" in cell.name
    assert Cell.parse(cell.name) == cell
    words = "-O compression=off -o autotrim=on -o feature@large_blocks=disabled tank "
    assert words in create_script(cell)
    asked = {setting.name: setting.expected for setting in settings_of(cell)}
    assert asked == {"pool.autotrim": "on", "pool.feature@large_blocks": "disabled"}
    assert not cell[CHOSEN].properties


def test_a_pool_with_multihost_has_a_host_with_an_id() -> None:
    cell = cell_of("noslog").but(**parse_choices([], pool_properties=["multihost=on"]))
    assert parameters_script(cell) == f"zgenhostid -f {HOST_ID}"
    assert parameters_script(cell_of("noslog")) == ""


@pytest.mark.parametrize(
    ("said", "is_in_effect"), [("8K", True), ("8192", True), ("4K", False), ("8", False)]
)
def test_a_property_is_in_effect_as_zfs_prints_it_or_in_bytes(
    said: str, is_in_effect: bool, tmp_path: Path
) -> None:
    fake_tool(tmp_path, "zfs", "case $2 in -Hp) echo 8192;; *) echo 8K;; esac")
    [setting] = settings_of(cell_of("noslog").with_settings({"volblocksize": said}))
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    printed = subprocess.run(
        ["sh", "-ec", setting.script],
        env=environment, check=True, timeout=20, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert (printed.strip() == setting.expected) is is_in_effect


@given(any_cell())
def test_default_settings_are_not_checked(cell: Cell) -> None:
    usual = cell.but(**{axis.field: axis.default or "" for axis in SETTINGS})
    assert not settings_of(usual)
    assert not parameters_script(usual)
    assert len({setting.name for setting in settings_of(cell)}) == len(settings_of(cell))


def test_a_lun_has_the_sectors_that_its_cell_says() -> None:
    iscsi = Iscsi()
    assert "block_size" not in iscsi.publish_script(volume_options_of(cell_of("noslog")))
    large = volume_options_of(cell_of("noslog-lun4k"))
    assert large.sector_bytes == 4096
    script = iscsi.publish_script(large)
    assert "echo 4096 > /sys/kernel/config/target/core/iblock_0/vm/attrib/block_size" in script
    assert script.index("block_size") < script.index("ln -s"), "an exported one keeps its sectors"


def test_a_lun_takes_discards_where_its_cell_says_so() -> None:
    iscsi = Iscsi()
    assert "emulate_tpu" not in iscsi.publish_script(volume_options_of(cell_of("noslog")))
    discarding = volume_options_of(cell_of("noslog-discard"))
    script = iscsi.publish_script(discarding)
    assert "echo 1 > /sys/kernel/config/target/core/iblock_0/vm/attrib/emulate_tpu" in script
    assert script.index("/enable") < script.index("emulate_tpu"), (
        "only its device says whether it can"
    )


def test_every_filesystem_on_a_disk_discards_freed_blocks() -> None:
    said = {
        name: " ".join(FILESYSTEM.choice(name).value.discarding or ()) for name in FILESYSTEM.names
    }
    remount = "mount -o remount,discard"
    assert said.pop("btrfs") == f"{remount}=sync /mnt"
    assert said.pop("zfs") == "zpool set autotrim=on vm"
    assert (said.pop("raw"), said.pop("files")) == ("", "")
    assert set(said.values()) == {f"{remount} /mnt"}


@pytest.mark.parametrize(
    ("middle", "vdevs"),
    [
        ("noslog-raidz2", "raidz2 data0 data1 data2 data3"),
        ("noslog-draid1", "draid1:2d:4c:1s data0 data1 data2 data3"),
        ("noslog-special", "data0 special special0"),
        ("plp-mirrored-special", "mirror data0 data1 special special0 log slog0"),
    ],
)
def test_a_pool_is_made_of_these_vdevs(middle: str, vdevs: str) -> None:
    words = create_script(cell_of(middle)).replace("/dev/disk/by-id/virtio-", "")
    assert words.endswith(f" tank {vdevs}")


@pytest.mark.parametrize(
    ("middle", "disks"),
    [
        ("plp-special", ("data0",)),
        ("noslog-mirrored", ("data0", "data1")),
        ("noslog-raidz1", ()),
        ("noslog-raidz2", ()),
        ("noslog-draid1", ()),
    ],
)
def test_a_block_of_data_lies_whole_on_these_disks(middle: str, disks: tuple[str, ...]) -> None:
    assert whole_on(cell_of(middle)) == disks


@pytest.mark.parametrize("disks", ["plpdisks", "", "lyingdisks"])
def test_a_special_vdev_is_as_good_as_the_data_disks(disks: str) -> None:
    cell = cell_of("-".join(filter(None, ("plp-special", disks))))
    kept = {disk.serial: disk.persistence for disk in pool_disks(cell)}
    assert kept["special0"] is kept["data0"]
    assert kept["slog0"] is Persistence.PLP


@pytest.mark.parametrize(
    ("middle", "sync", "why"),
    [
        ("noslog-throughput", "disabled", "'logbias=throughput' concerns the intent log"),
        ("noslog-zilnocacheflush", "disabled", "'zilnocacheflush' concerns the intent log"),
        (
            "noslog-record4k",
            "always",
            "'recordsize=4K' applies to a dataset, and 'iscsi' is on a zvol",
        ),
    ],
)
def test_a_setting_that_means_nothing_is_refused(middle: str, sync: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        cell_of(middle, sync=sync)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("volblock4k", "'volblocksize=4K' applies to a zvol, and 'fileio' is on a dataset"),
        ("blkmq", "'zfs.zvol_use_blk_mq=1' applies to a zvol, and 'fileio' is on a dataset"),
        ("lun4k", "'lun4k' is the sector size of a LUN, and 'fileio' has none"),
    ],
)
def test_settings_of_zvols_are_refused_on_a_dataset(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Cell.parse(f"fileio-always-noslog-{name}-btrfs-bothdie")
    cell = Cell.parse("fileio-always-noslog-record16k-btrfs-bothdie")
    assert volume_options_of(cell).properties == {"recordsize": "16K"}


HOLDS = {
    "noslog-throughput": (SAFE, SAFE),
    "noslog-volblock64k": (SAFE, SAFE),
    "noslog-blkmq": (SAFE, SAFE),
    "noslog-special-lz4-dedup-lun4k": (SAFE, SAFE),
    "noslog-draid1": (SAFE, SAFE),
    "lying-throughput": (ROLLS_BACK, LOSES),
    "noslog-zilnocacheflush": (ROLLS_BACK, LOSES),
    "noslog-plpdisks-zilnocacheflush": (SAFE, SAFE),
    "plp-zilnocacheflush": (SAFE, SAFE),
    "plp-throughput-zilnocacheflush": (ROLLS_BACK, LOSES),
    "plp-throughput-plpdisks-zilnocacheflush": (SAFE, SAFE),
    "volatile-plpdisks-zilnocacheflush": (ROLLS_BACK, LOSES),
    "mirror-plpdisks-zilnocacheflush": (ROLLS_BACK, LOSES),
    "lost-plpdisks-zilnocacheflush": (ROLLS_BACK, LOSES),
    "noslog-nocacheflush": (MAY_LOSE_POOL, MAY_LOSE_POOL),
    "plp-nocacheflush": (MAY_LOSE_POOL, MAY_LOSE_POOL),
    "noslog-plpdisks-nocacheflush": (SAFE, SAFE),
    "volatile-plpdisks-nocacheflush": (ROLLS_BACK, LOSES),
}
"""Under sync=always, with a client that dies and one that lives: zfs(4), zfsprops(7)."""


@pytest.mark.parametrize("middle", HOLDS)
def test_a_cell_with_settings_has_the_guarantee_of_theory(middle: str) -> None:
    fates = (Fate.BOTH_DIE, Fate.CLIENT_LATER, Fate.NAS_ONLY)
    dies, dies_later, lives = (guarantee_of(cell_of(middle, fate=fate)) for fate in fates)
    assert (dies, lives) == HOLDS[middle]
    assert dies_later is dies


OF_OTHERS = (*hypervisor.AXES, NAS_LINK, AWAY, PATIENCE, EVENT, EARLY)


@given(any_cell())
def test_where_zfs_flushes_its_settings_change_no_guarantee(cell: Cell) -> None:
    """Those of a hypervisor, a full pool and an outage do: they are not ZFS's."""
    if flushes_its_log(cell):
        of_zfs = (axis for axis in SETTINGS if axis not in OF_OTHERS)
        usual = cell.but(**{axis.field: axis.default or "" for axis in of_zfs})
        assert guarantee_of(cell) is guarantee_of(usual)


@given(any_cell())
def test_only_findings_that_rest_on_missing_flushes_are_waived(cell: Cell) -> None:
    administration = cell[ADMINISTRATION]
    own = frozenset[Invariant]() if administration is None else administration.waived
    waived = waived_in(cell.but(administration="none"), issued_seq=7)
    assert waived_in(cell, issued_seq=7) == dict.fromkeys(own, 7) | waived
    assert set(waived.values()) <= {0}
    assert bool(waived) is not flushes_its_log(cell)
    assert (Invariant.TXG_IS_DURABLE in waived) is (cell.axes["zfs_nocacheflush"] == "nocacheflush")
    assert not waived.keys() & {
        Invariant.UBERBLOCKS_ASCEND, Invariant.EXTENT_IS_KEPT, Invariant.TXG_IS_IN_TIME,
        Invariant.TRIMMED_IS_FREE, Invariant.LOGGED_IS_WHOLE,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "late_ms"),
    [
        ({}, LATE_MS),
        ({"zfs.zil_slog_bulk": "1"}, LATE_MS),
        ({"zfs.zfs_txg_timeout": "1"}, LATE_MS),
        ({"zfs.zfs_txg_timeout": "5"}, LATE_MS),
        ({"zfs.zfs_txg_timeout": "60"}, LATE_MS + 55_000),
        ({"zfs.zfs_txg_timeout": "0x3c"}, LATE_MS),
    ],
)
def test_a_group_is_late_by_the_timeout_that_zfs_is_set_to(
    settings: dict[str, str], late_ms: int
) -> None:
    """With a longer one the audit accused ZFS of the things that its owner had asked for."""
    cell = Cell.parse("iscsi-always-noslog-btrfs-bothdie").with_settings(settings)
    assert late_ms_of(cell) == late_ms
    assert waived_in(cell, issued_seq=7) == {}


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("local_files-rawimage-disabled-noslog-ext4-bothdie", (Role.DATA,)),
        ("local_files-disabled-noslog-files-bothdie", TXG_ROLES),
        ("local-disabled-noslog-ext4-bothdie", ()),
        ("nfs4-rawimage-disabled-noslog-ext4-bothdie", ()),
    ],
)
def test_only_a_program_on_the_nas_writes_around_groups(name: str, roles: tuple[Role, ...]) -> None:
    assert early_roles_in(Cell.parse(name)) == roles


@pytest.mark.parametrize(
    ("name", "is_real"),
    [
        ("nfs4-rawimage-locked-forgotten-standard-noslog-ext4-nasonly", True),
        ("nfs4-rawimage-locked-standard-noslog-ext4-nasonly", True),
        ("nfs4-standard-noslog-files-nasonly", False),
    ],
)
def test_a_grace_period_is_real_once_an_image_is_there(name: str, is_real: bool) -> None:
    cell = Cell.parse(name)
    script = cell[TRANSPORT].publish_script(volume_options_of(cell))
    assert "lockd/nlm_end_grace" in script
    assert ('test -n "$(ls -A /tank/vm)" || for end in' in script) is is_real


def test_no_group_is_late_where_a_hypervisor_keeps_all_writes() -> None:
    """In one cut of four the audit accused ZFS of writes that it had not got."""
    kept = Cell.parse("nfs4-rawimage-unsafe-always-noslog-ext4-bothdie")
    assert late_ms_of(kept) > 1e9
    assert late_ms_of(kept.but(cache="noflush")) == LATE_MS


def test_a_page_names_only_settings_that_are_not_as_usual() -> None:
    usual, set_otherwise = cell_of("noslog").axes, cell_of("noslog-zstd").axes
    assert "compression" not in common_in_words([usual], ())
    assert "compression=zstd" in common_in_words([set_otherwise], ())
    assert varying_axes([usual, set_otherwise]) == ("settings",)
