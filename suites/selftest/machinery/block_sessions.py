"""The few words of iSCSI and NVMe/TCP that show whether a target knows a session of before, by hand.

RFC 7143 (iSCSI), NVM Express Base Specification 2.0 (Fabrics' Connect), NVMe/TCP Transport
Specification 1.0. No initiator would show it: each begins anew when it is not known any more. And a write
and a flush, so that what passes on the wire is known.
"""

from __future__ import annotations

import socket
import struct

from suites.selftest.machinery.nfs_client import read_exactly

NO_SESSION = (2, 0x0A)
"""Class and detail of a login whose session does not exist (RFC 7143, 11.13.5)."""
NO_CONTROLLER = 0x182
"""Connect Invalid Parameters, which also says that there is no such controller."""

_DEADLINE_S = 20
_ISID = bytes.fromhex("800000000001")
_LOGIN, _LOGIN_ANSWER = 0x43, 0x23
_TRANSIT = 0x80
_TO_FULL_FEATURES = _TRANSIT | 0x07
"""From operational negotiation."""
_ALL_KEYS = {
    "SessionType": "Normal", "HeaderDigest": "None", "DataDigest": "None", "MaxConnections": "1",
    "InitialR2T": "Yes", "ImmediateData": "Yes", "MaxRecvDataSegmentLength": "8192",
    "MaxBurstLength": "262144", "FirstBurstLength": "65536", "DefaultTime2Wait": "2",
    "DefaultTime2Retain": "20", "MaxOutstandingR2T": "1", "DataPDUInOrder": "Yes",
    "DataSequenceInOrder": "Yes", "ErrorRecoveryLevel": "0",
}  # fmt: skip
"""One that is left out LIO proposes itself, and waits for what is said to that."""
_LOGIN_HEADER = struct.Struct(">BBBBI6sHIHHII16x")
_HEADER_BYTES = 48
_COMMAND = struct.Struct(">BBHI8xIIII16s")
_WRITES, _READS_NOTHING = 0xA1, 0x81
"""That it is final and simple, too."""
_WRITE_10, _SYNCHRONIZE_CACHE_10 = 0x2A, 0x35
_SECTOR_BYTES = 512

_INITIALIZE = struct.Struct("<BBBBIHBBI112x")
_INITIALIZE_BYTES = 128
_CONNECT = struct.Struct("<BBHB19xQI3xBHHHBxI12x")
_CONNECT_DATA = struct.Struct("<16sH238x256s256s256x")
_COMMAND_HEADER_BYTES, _COMMAND_BYTES, _DATA_BYTES = 8, 64, 1024
_ANSWER_BYTES = 24
_SET_PROPERTY = struct.Struct("<BBHB39xIQ8x")
_CONFIGURATION, _ENABLED = 0x14, 0x460001
"""CC: entries of 64 and 16 bytes, as Linux has them."""
_IO = struct.Struct("<BBHI16xQI3xBQI12x")
_ANY_CONTROLLER = 0xFFFF
_HOST_NQN, _HOST_ID = "nqn.2014-08.org.nvmexpress:torture:test", bytes(range(16))


class IscsiSession:
    """A login as part of a session, 0 for a new one; what came of it is in `session` and `status`."""

    def __init__(self, host: str, port: int, *, target: str, session: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=_DEADLINE_S)
        names = {"InitiatorName": "iqn.1993-08.org.debian:01:test", "TargetName": target}
        text = "".join(f"{key}={value}\0" for key, value in (names | _ALL_KEYS).items()).encode()
        header = _LOGIN_HEADER.pack(
            _LOGIN, _TO_FULL_FEATURES, 0, 0, len(text), _ISID, session, 1, 0, 0, 1, 0
        )
        self._socket.sendall(header + text + bytes(-len(text) % 4))
        answer = self._answer()
        (self.session,) = struct.unpack_from(">H", answer, 14)
        self.status = (answer[36], answer[37])
        assert answer[0] == _LOGIN_ANSWER, answer.hex()
        assert answer[1] & _TRANSIT or any(self.status), f"it negotiates on: {answer.hex()}"
        (self._answers,) = struct.unpack_from(">I", answer, 24)
        self._commands = 0

    def write(self, sector: int, *, is_forced: bool) -> None:
        """Write a sector."""
        self._command(
            struct.pack(">BBIBHB6x", _WRITE_10, is_forced << 3, sector, 0, 1, 0),
            data=bytes(_SECTOR_BYTES),
        )

    def flush(self) -> None:
        """Synchronize the cache."""
        self._command(struct.pack(">B15x", _SYNCHRONIZE_CACHE_10))

    def _command(self, described: bytes, *, data: bytes = b"") -> None:
        """Give a command, and repeat it if the target answers that it was switched on."""
        for _ in range(2):
            self._commands += 1
            self._answers += 1
            flags = _WRITES if data else _READS_NOTHING
            header = _COMMAND.pack(
                1, flags, 0, len(data), self._commands, len(data), self._commands, self._answers,
                described,
            )  # fmt: skip
            self._socket.sendall(header + data)
            answer = self._answer()
            if answer[2:4] == bytes(2):
                return
        raise AssertionError(answer.hex())

    def _answer(self) -> bytes:
        """The header of what it says next; the data behind it are passed over."""
        header = read_exactly(self._socket, _HEADER_BYTES)
        read_exactly(self._socket, -(-int.from_bytes(header[5:8], "big") // 4) * 4)
        return header

    def close(self) -> None:
        """Hang up, without a word."""
        self._socket.close()


class NvmeQueue:
    """A queue that is connected, to a new controller or as another queue of one that was made before.

    The outcome is in `controller` and `status`, which is 0 for success.
    """

    def __init__(self, host: str, port: int, *, subsystem: str, controller: int | None) -> None:
        self._socket = socket.create_connection((host, port), timeout=_DEADLINE_S)
        self._socket.sendall(
            _INITIALIZE.pack(0, 0, _INITIALIZE_BYTES, 0, _INITIALIZE_BYTES, 0, 0, 0, 0)
        )
        read_exactly(self._socket, _INITIALIZE_BYTES)
        wanted = _ANY_CONTROLLER if controller is None else controller
        queue = 0 if controller is None else 1
        in_capsule = 0x01
        command = _CONNECT.pack(0x7F, 0x40, 0, 0x01, 0, _DATA_BYTES, in_capsule, 0, queue, 31, 0, 0)
        data = _CONNECT_DATA.pack(_HOST_ID, wanted, subsystem.encode(), _HOST_NQN.encode())
        length = _COMMAND_HEADER_BYTES + _COMMAND_BYTES
        header = struct.pack("<BBBBI", 4, 0, length, length, length + len(data))
        self._socket.sendall(header + command + data)
        answer = read_exactly(self._socket, _ANSWER_BYTES)
        (self.controller,) = struct.unpack_from("<H", answer, 8)
        self.status = _status_of(answer)

    def enable(self) -> None:
        """Have the controller of this queue take commands."""
        self._command(_SET_PROPERTY.pack(0x7F, 0x40, 1, 0, _CONFIGURATION, _ENABLED))

    def write(self, sector: int, *, is_forced: bool) -> None:
        """Write a sector."""
        data, forced = bytes(_SECTOR_BYTES), is_forced << 30
        self._command(_IO.pack(1, 0x40, 2, 1, 0, len(data), 0x01, sector, forced), data=data)

    def flush(self) -> None:
        """Flush the namespace."""
        self._command(_IO.pack(0, 0x40, 3, 1, 0, 0, 0, 0, 0))

    def _command(self, entry: bytes, *, data: bytes = b"") -> None:
        length = _COMMAND_HEADER_BYTES + _COMMAND_BYTES
        offset = length if data else 0
        header = struct.pack("<BBBBI", 4, 0, length, offset, length + len(data))
        self._socket.sendall(header + entry + data)
        answer = read_exactly(self._socket, _ANSWER_BYTES)
        assert _status_of(answer) == 0, answer.hex()

    def close(self) -> None:
        """Hang up, without a word."""
        self._socket.close()


def _status_of(answer: bytes) -> int:
    return int((struct.unpack_from("<H", answer, 22)[0] >> 1) & 0x7FF)
