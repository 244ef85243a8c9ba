"""An NBD client that says whatever it likes, byte by byte (the NBD protocol's doc/proto.md)."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import Self

_DEADLINE_S = 10.0
_GREETING_BYTES = 18
_OPTION_MAGIC = 0x49484156454F5054
_REPLY_MAGIC = 0x67446698
_OPT_GO = 7
_OPT_REPLY = struct.Struct(">QIII")
_REP_ACK = 1
_REQUEST = struct.Struct(">IHHQQI")
_REPLY = struct.Struct(">IIQ")

REQUEST_MAGIC = 0x25609513
CMD_READ, CMD_WRITE, CMD_FLUSH, CMD_TRIM, CMD_ZERO = 0, 1, 3, 4, 6
FLAG_FUA = 1


class RawClient:
    """A connection that has read the server's greeting and said nothing yet."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_DEADLINE_S)
        self._socket.connect(str(path))
        self.receive(_GREETING_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Go without a word."""
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send anything."""
        self._socket.sendall(data)

    def receive(self, length: int) -> bytes:
        """Exactly so many bytes; raises `ConnectionError` when the server hangs up first."""
        data = b""
        while len(data) < length:
            got = self._socket.recv(length - len(data))
            if not got:
                raise ConnectionError("the server hung up")
            data += got
        return data

    def go(self, export: str) -> bool:
        """Choose an export; whether there is one."""
        name = export.encode()
        data = struct.pack(">I", len(name)) + name + struct.pack(">H", 0)
        self.send(struct.pack(">I", 3))
        self.send(struct.pack(">QII", _OPTION_MAGIC, _OPT_GO, len(data)) + data)
        while True:
            _, _, kind, length = _OPT_REPLY.unpack(self.receive(_OPT_REPLY.size))
            self.receive(length)
            if kind == _REP_ACK:
                return True
            if kind >> 31:
                return False

    def request(
        self,
        command: int,
        *,
        offset: int = 0,
        length: int = 512,
        flags: int = 0,
        magic: int = REQUEST_MAGIC,
        payload: bytes = b"",
    ) -> None:
        """Send a request, sound or not."""
        self.send(_REQUEST.pack(magic, flags, command, 7, offset, length) + payload)

    def reply(self) -> int:
        """The error of the next answer, 0 for none; raises `ConnectionError` when there is none."""
        magic, error, _ = _REPLY.unpack(self.receive(_REPLY.size))
        assert magic == _REPLY_MAGIC
        return int(error)
