"""The script that reads NVMe's Identify structures, played on made ones."""

from __future__ import annotations

import contextlib
import ctypes
import io
import struct
from typing import Any
from unittest.mock import mock_open, patch

import pytest

from torture.choices.transports._nvme_identity import IDENTITY_SCRIPT
from torture.records.record.advertised import parse_protocol

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
