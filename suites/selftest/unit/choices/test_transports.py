"""Transports: which tear sectors or keep names, whose client lives, and how a client attaches."""

from __future__ import annotations

import contextlib
import ctypes
import io
import struct
from typing import Any
from unittest.mock import mock_open, patch

import pytest

from torture.choices.matrix.cell_terms import terms_of
from torture.choices.matrix.cells import TRANSPORT, Cell
from torture.choices.transports.nvme_tcp import IDENTITY_SCRIPT
from torture.choices.volumes import VolumeOptions
from torture.facts.axes.sync import Sync
from torture.oracles.verdict.guarantee import Terms
from torture.records.record.trials import parse_protocol

FILES = ("nfs3", "nfs4", "ganesha", "smb", "samba")


def test_sectors_of_files_tear_and_a_disk_keeps_its_own_whole() -> None:
    traits = {choice.name: choice.value.traits for choice in TRANSPORT.choices}
    assert {name for name, has in traits.items() if has.tears_sectors} == set(FILES)
    for name in FILES:
        terms = terms_of(Cell.parse(f"{name}-always-noslog-files-bothdie"))
        is_knfsd, is_nfs = name in ("nfs3", "nfs4"), name not in ("smb", "samba")
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
