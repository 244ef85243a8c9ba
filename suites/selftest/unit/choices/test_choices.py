"""Choices of cells by options, and `--shard`: every cell in exactly one.

Transports: which tear sectors or keep names, whose client lives, and how a client attaches.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import re
import struct
from random import Random
from typing import Any
from unittest.mock import mock_open, patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.selftest.unit.every_cell import any_cell, usual_cell
from torture.choices.matrix.cell_terms import terms_of
from torture.choices.matrix.cells import AXES, FATE, TRANSPORT, Cell, cells_of
from torture.choices.matrix.choices import (
    meaningless_cells,
    missing_in_version,
    parse_choices,
    with_choices,
)
from torture.choices.matrix.shards import Shard
from torture.choices.transports.nvme_tcp import IDENTITY_SCRIPT
from torture.choices.volumes import VolumeOptions
from torture.facts.axes.fate import Fate
from torture.facts.axes.free_settings import MODULE, FreeSettings
from torture.facts.axes.sweeps import Matrix
from torture.facts.axes.sync import Sync
from torture.facts.zfs.versions import name_of_source, version_names, zfs_version
from torture.oracles.verdict.guarantee import Terms
from torture.records.record.trials import parse_protocol
from torture.trials.plan.draw import draw_trials

ALWAYS = Cell.parse("iscsi-always-noslog-btrfs-bothdie")
DISABLED = Cell.parse("iscsi-disabled-noslog-btrfs-bothdie")


@given(st.lists(any_cell(), max_size=5), st.data())
def test_every_cell_that_is_left_has_the_choice_and_is_else_as_it_was(
    cells: list[Cell], data: st.DataObject
) -> None:
    axis = data.draw(st.sampled_from(list(AXES.values())))
    name = data.draw(st.sampled_from(axis.names))
    try:
        made = with_choices(cells, {axis.field: name})
    except ValueError:
        return
    before = [dict(zip(AXES, cell.choices, strict=True)) for cell in cells]
    assert len(set(made)) == len(made)
    for cell in made:
        value = axis.choice(name).value
        assert axis.composed is not None or cell[axis] == value
        expected = dict(zip(AXES, cell.choices, strict=True))
        assert expected[axis.field] == name
        assert any(expected == choices | {axis.field: name} for choices in before)


def test_a_matrix_gets_the_choice_where_it_means_something() -> None:
    chosen = parse_choices([], properties=["logbias=throughput"])
    assert parse_choices(["logbias=throughput"]) == chosen, "as it was said as an axis"
    made = with_choices(cells_of(Matrix.QUICK), chosen)
    assert [cell.name for cell in made] == [
        f"iscsi-{sync}-noslog-logbias=throughput-btrfs-{fate}"
        for sync in ("standard", "always")
        for fate in ("bothdie", "nasonly")
    ] + [
        f"{transport}-standard-noslog-logbias=throughput-{filesystem}-{fate}"
        for transport, filesystem in (("nfs_image", "btrfs"), ("nfs4", "files"))
        for fate in ("bothdie", "nasonly")
    ]


def test_several_axes_are_chosen_on_at_once_and_nothing_is_no_choice() -> None:
    chosen = parse_choices(["compression=lz4", "dedup=dedup"])
    (made,) = with_choices([ALWAYS], chosen)
    assert made.name == "iscsi-always-noslog-compression=lz4+dedup=on-btrfs-bothdie"
    assert with_choices([ALWAYS, DISABLED], parse_choices([])) == (ALWAYS, DISABLED)


def test_cells_that_are_left_out_come_with_the_reason() -> None:
    cells = cells_of(Matrix.QUICK)
    left_out = meaningless_cells(cells, {"settings": "logbias=throughput"})
    assert set(left_out) == {cell for cell in cells if cell.axes["sync"] == "disabled"}
    assert all("logbias" in why or "throughput" in why for why in left_out.values())
    assert meaningless_cells(cells, {"settings": "compression=lz4"}) == {}


def test_cells_that_become_one_are_one() -> None:
    assert with_choices([ALWAYS, DISABLED], {"sync": "always"}) == (ALWAYS,)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["throughput"], "'throughput' is no choice: write an axis and its choice, FIELD=CHOICE"),
        (["logbais=throughput"], "no axis is called 'logbais'; there are transport, .*settings, "),
        (["logbias=throughputt"], "logbias is a setting of ZFS: use --property or --tunable log"),
        (["logbias=blkmq"], "logbias is a setting of ZFS"),
        (["sync="], "'' is no choice of sync; there are standard, always"),
        (["compression=lz4", "compression=zstd"], "compression is 'lz4' or 'zstd', and not both"),
        (["sync=always", "sync=standard"], "a cell is 'always' or 'standard', and not both"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(texts: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_choices(texts)


def test_choices_that_no_cell_allows_are_refused_with_the_reason_and_an_alternative() -> None:
    with pytest.raises(ValueError, match="'logbias=throughput' concerns the intent log") as caught:
        with_choices([DISABLED], {"settings": "logbias=throughput"})
    assert str(caught.value).startswith(DISABLED.name)
    assert str(caught.value).endswith("possible there: settings (zfsdefaults)")


def test_of_several_impossible_cells_the_first_is_named() -> None:
    with pytest.raises(ValueError, match=f"{DISABLED.name}: "):
        with_choices([DISABLED, DISABLED.but(fate="nasonly")], {"settings": "logbias=throughput"})


MULTI_QUEUE = ALWAYS.with_settings({"zfs.zvol_use_blk_mq": "1"})


@pytest.mark.parametrize(
    ("version", "is_known"),
    [
        ("2.1.11", False),
        ("2.3.2", True),
        ("2.3.9", True),
        (name_of_source("2.1.99", "0" * 64), False),
        (name_of_source("2.2.0", "0" * 64), True),
    ],
)
def test_a_tunable_that_a_version_of_zfs_lacks_is_refused_with_the_reason(
    version: str, is_known: bool
) -> None:
    why = missing_in_version(zfs_version(version), MULTI_QUEUE)
    assert why == ("" if is_known else f"OpenZFS {version} has no zvol_use_blk_mq")
    assert missing_in_version(zfs_version(version), ALWAYS) == ""


@pytest.mark.parametrize("version", version_names())
def test_a_version_lacks_only_tunables(version: str) -> None:
    tunables = {f"{MODULE}{name}": "1" for name in zfs_version(version).lacks}
    assert FreeSettings.of(tunables).tunables.keys() == zfs_version(version).lacks


@pytest.mark.parametrize(
    ("properties", "tunables", "said"),
    [
        (["recordsize"], [], "'recordsize' is no setting: write NAME=VALUE"),
        (["zfs.zil_slog_bulk=1"], [], "is no setting: write NAME=VALUE, with its own name"),
        (["com.sun:auto=1"], [], "is no setting: write NAME=VALUE, with its own name"),
        (["COM:auto=1"], [], "'COM:auto' is no valid name"),
        (["recordsize=8 K"], [], "'8 K' is no value of recordsize"),
        (["sync=always"], [], "sync is an axis of its own: use --axis sync=CHOICE"),
        ([], ["zfs_nocacheflush=1"], "zfs_nocacheflush is an axis of its own"),
        (["atime=on", "atime=off"], [], "atime is 'on' or 'off', and not both"),
    ],
)
def test_an_invalid_setting_is_refused(
    properties: list[str], tunables: list[str], said: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_choices([], properties=properties, tunables=tunables)


def test_settings_come_beside_those_of_the_cell_in_one_place() -> None:
    cell = Cell.parse("iscsi-always-noslog-volblocksize=4K-btrfs-bothdie")
    chosen = parse_choices([], properties=["compression=zstd-3"], tunables=["zil_slog_bulk=1"])
    [made] = with_choices([cell], chosen)
    assert made.name == (
        "iscsi-always-noslog-compression=zstd~3+volblocksize=4K+zfs.zil_slog_bulk=1-btrfs-bothdie"
    )
    assert Cell.parse(made.name) == made
    assert made.axes["settings"] == made.name.split("-")[3]


# `--shard`: every cell in exactly one shard, shards of one size, and only after all other
# choices.

some_cells = st.lists(usual_cell(), max_size=60, unique=True)
some_counts = st.integers(min_value=1, max_value=80)


@given(cells=some_cells, count=some_counts)
def test_each_cell_is_in_exactly_one_shard(cells: list[Cell], count: int) -> None:
    shares = [shard.share_of(cells) for shard in Shard.all_of(count)]
    assert sum(map(len, shares)) == len(cells)
    assert frozenset().union(*shares) == set(cells)


@given(cells=some_cells, count=some_counts)
def test_no_shard_has_two_cells_more_than_another_nor_two_slow_ones(
    cells: list[Cell], count: int
) -> None:
    shares = [shard.share_of(cells) for shard in Shard.all_of(count)]
    for fates in (set(Fate), *({fate} for fate in Fate)):
        sizes = [sum(one[FATE] in fates for one in share) for share in shares]
        assert max(sizes) - min(sizes) <= 1


@given(cells=some_cells, count=some_counts, random=st.randoms(use_true_random=False))
def test_the_order_of_the_cells_does_not_matter(
    cells: list[Cell], count: int, random: Random
) -> None:
    shuffled = random.sample(cells, len(cells))
    for shard in Shard.all_of(count):
        assert shard.share_of(shuffled + cells) == shard.share_of(cells)


@given(count=st.integers(min_value=1, max_value=12), trials=st.integers(1, 3))
def test_the_trials_of_the_shards_are_those_of_the_whole_run(count: int, trials: int) -> None:
    cells = cells_of(Matrix.QUICK)
    whole = draw_trials(cells, trials=trials, run_seed=7, load_ms=1000)
    split = [
        spec
        for shard in Shard.all_of(count)
        for spec in draw_trials(
            sorted(shard.share_of(cells)), trials=trials, run_seed=7, load_ms=1000
        )
    ]
    assert len(split) == len(whole)
    assert set(split) == set(whole)


@pytest.mark.parametrize("text", ["1/1", "3/12", "12/12"])
def test_a_shard_is_read_as_it_is_written(text: str) -> None:
    assert str(Shard.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["0/12", "13/12", "0/0", "-1/4", "3", "3/", "/3", "3/12/1", " 3/12", "a/b", "٣/١٢", ""]
)
def test_an_invalid_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"shard"):
        Shard.parse(text)


FILES = ("nfs3", "nfs4", "ganesha", "smb", "samba", "local_files")


def test_sectors_of_files_tear_and_a_disk_keeps_its_own_whole() -> None:
    traits = {choice.name: choice.value.traits for choice in TRANSPORT.choices}
    assert {name for name, has in traits.items() if has.tears_sectors} == set(FILES)
    for name in FILES:
        terms = terms_of(Cell.parse(f"{name}-always-noslog-files-bothdie"))
        is_knfsd, is_nfs = name in ("nfs3", "nfs4"), name in ("nfs3", "nfs4", "ganesha")
        assert terms == Terms(
            tears_sectors=True, names_are_stable=is_knfsd, repeats_requests=is_nfs
        )


@pytest.mark.parametrize(
    ("name", "is_safe"),
    [
        *(
            (f"{files}-standard-noslog-files-bothdie", True)
            for files in ("smb", "samba", "ganesha")
        ),
        ("smb-standard-noslog-files-clientlater", True),
        ("smb-standard-plp-files-bothdie", True),
        # theory lets these lose content, too
        ("smb-standard-noslog-files-nasonly", False),
        ("smb-standard-lost-files-bothdie", False),
        ("smb-standard-noslog-zilnocacheflush-files-bothdie", False),
        ("smb-disabled-noslog-files-bothdie", False),
        # and these may lose no name
        ("smb-always-noslog-files-bothdie", False),
        ("nfs4-standard-noslog-files-bothdie", False),
        ("nfs4-export_async-standard-noslog-files-bothdie", False),
    ],
)
def test_volatile_names_excuse_no_content(name: str, is_safe: bool) -> None:
    assert terms_of(Cell.parse(name)).content_is_safe is is_safe


@pytest.mark.parametrize(
    ("fate", "client_lives"), [("nasonly", True), ("bothdie", False), ("clientlater", False)]
)
def test_a_client_lives_where_the_nas_alone_is_cut(fate: str, client_lives: bool) -> None:
    cell = Cell.parse(f"iscsi-always-noslog-ext4-{fate}")
    assert terms_of(cell) == Terms(client_lives=client_lives)
    assert terms_of(cell, is_replay=True) == Terms(client_lives=client_lives, is_replay=True)


# iSCSI over two paths: a session for each address of the NAS, and one disk of both.


def test_a_client_logs_in_at_both_addresses_before_it_makes_one_disk() -> None:
    two, one = (TRANSPORT.choice(name).value for name in ("iscsi_two", "iscsi_guest"))
    attachment = two.attachment(nas_host="10.77.0.2")
    script = attachment.attach_script
    for host in ("10.77.0.2", "10.77.0.12"):
        assert f"-p {host}:3260 --login" in script
        assert (
            f"-p {host}:3260 -o update -n 'node.session.timeo.replacement_timeout' -v 2" in script
        )
        assert f"-p {host}:3260 --logout" in attachment.detach_script
    assert script.rindex("--login") < script.index("multipathd")
    assert attachment.device == "/dev/mapper/mpatha"
    assert two.traits.client_image == "client_multipath"
    alone = one.attachment(nas_host="10.77.0.2")
    assert alone.attach_script.count("--login") == alone.detach_script.count("--logout") == 1
    assert "'node.session.timeo.replacement_timeout' -v -1" in alone.attach_script
    assert one.traits.client_image == "client"


@pytest.mark.parametrize("image", ["rawimage", "qcow2", "lvm"])
@pytest.mark.parametrize("transport", ["iscsi_guest", "nvme_tcp"])
def test_a_hypervisor_opens_its_lun_once_the_kernel_has_it(transport: str, image: str) -> None:
    cell = Cell.parse(f"{transport}-{image}-standard-noslog-ext4-bothdie")
    held = cell[TRANSPORT].below.attachment(nas_host="10.77.0.2")
    attached = cell[TRANSPORT].attachment(nas_host="10.77.0.2")
    before, _, waits = attached.guest_script.rpartition("udevadm wait")
    assert before.startswith(held.attach_script)
    assert str(held.device) in waits


def test_the_nas_has_the_second_address_before_it_listens() -> None:
    two = TRANSPORT.choice("iscsi_two").value
    published = two.publish_script(VolumeOptions(sync=Sync.STANDARD))
    assert published.index("addr replace 10.77.0.12/24") < published.index("/np/0.0.0.0:3260")
    assert two.traits.path_scripts is not None


# NVMe over TCP with native multipath and without: the client's kernel gets the setting as it
# boots.


@pytest.mark.parametrize(
    ("name", "parameter", "words"),
    [
        ("nvme_tcp", "Y", ""),
        ("nvme_tcp_single", "N", "nvme_core.multipath=N"),
        ("nvme_tcp_two", "Y", ""),
    ],
)
def test_a_client_attaches_with_the_multipath_its_name_says_or_not_at_all(
    name: str, parameter: str, words: str
) -> None:
    attachment = TRANSPORT.choice(name).value.attachment(nas_host="10.0.0.1")
    assert attachment.kernel_words == words
    script = attachment.attach_script
    check = f'test "$(cat /sys/module/nvme_core/parameters/multipath)" = {parameter} || '
    assert check in script
    assert script.index(check) < script.index("/dev/nvme-fabrics")
    assert script.count("/dev/nvme-fabrics") == (2 if name == "nvme_tcp_two" else 1)


def test_a_nas_with_two_paths_keeps_the_second_address_when_the_first_one_goes() -> None:
    two, one = (TRANSPORT.choice(name).value for name in ("nvme_tcp_two", "nvme_tcp"))
    published = two.publish_script(VolumeOptions(sync=Sync.STANDARD))
    assert published.index("promote_secondaries") < published.index("addr replace 10.77.0.12/24")
    assert "ip addr" not in one.publish_script(VolumeOptions(sync=Sync.STANDARD))
    assert "traddr=10.77.0.12," in two.attachment(nas_host="10.77.0.2").attach_script
    assert one.traits.path_scripts is None
    assert two.traits.path_scripts is not None
    lose, regain = two.traits.path_scripts
    assert "addr del" in lose
    assert "addr add" in regain


# The script that reads NVMe's Identify structures, played on made ones.

_PROGRAM = IDENTITY_SCRIPT.partition("<< 'END'\n")[2].removesuffix("END")


def _structure(**fields: tuple[int, int, int]) -> bytes:
    """4 KiB with these fields: each has a place, a length and a value."""
    data = bytearray(b"\xee" * 4096)
    for at, length, value in fields.values():
        data[at : at + length] = value.to_bytes(length, "little")
    return bytes(data)


def _printed(controller: bytes, namespace: bytes) -> str:
    """The line of the program, whose ioctl answers with these structures."""

    def ioctl(_device: Any, request: int, command: bytearray) -> None:
        opcode, _flags, _reserved, nsid = struct.unpack_from("<BBHI", command)
        address, _metadata_bytes, length, cns = struct.unpack_from("<QIII", command, 24)
        assert (request, opcode, len(command), length) == (0xC0484E41, 6, 72, 4096)
        assert (nsid, cns) in ((0, 1), (1, 0))
        ctypes.memmove(address, controller if cns else namespace, length)

    said = io.StringIO()
    with (
        patch("fcntl.ioctl", ioctl),
        patch("glob.glob", lambda _pattern: ["/dev/nvme1", "/dev/nvme0"]),
        contextlib.redirect_stdout(said),
    ):
        exec(_PROGRAM, {"open": mock_open()})
    return said.getvalue()


@pytest.mark.parametrize(("has_own", "bytes_"), [(True, 8 * 4096), (False, 2 * 4096)])
def test_the_atomic_unit_is_the_namespaces_or_else_the_controllers(
    has_own: bool, bytes_: int
) -> None:
    controller = _structure(mdts=(77, 1, 5), vwc=(525, 1, 0b111), awupf=(528, 2, 1))
    namespace = _structure(
        nsfeat=(24, 1, 2 if has_own else 0),
        flbas=(26, 1, 0x12),
        nawupf=(36, 2, 7),
        lbads=(128 + 4 * 2 + 2, 1, 12),
    )
    assert parse_protocol(_printed(controller, namespace)) == {
        "nvme_vwc": "1",
        "nvme_mdts": "5",
        "nvme_awupf": "1",
        "nvme_nawupf_bytes": str(bytes_),
    }


@pytest.mark.parametrize(
    ("name", "nv_cache", "write_through", "threads"),
    [
        ("scst", 0, 0, 32),
        ("scst_file", 0, 0, 8),
        ("scst_file_nv", 1, 0, 8),
        ("scst_file_through", 0, 1, 8),
    ],
)
def test_each_attribute_of_scst_is_written_and_proven(
    name: str, nv_cache: int, write_through: int, threads: int
) -> None:
    transport = Cell.parse(f"{name}-standard-noslog-ext4-bothdie")[TRANSPORT]
    options = VolumeOptions(sync=Sync.STANDARD, sector_bytes=4096)
    _, line = transport.proofs(options)["scst device"]
    assert line.split()[:5] == [str(nv_cache), str(write_through), str(threads), "4096", "0"]
    script = transport.publish_script(options)
    assert "blocksize=4096; rotational=0" in script
    assert ("nv_cache=1" in script, "write_through=1" in script) == (nv_cache, write_through)
