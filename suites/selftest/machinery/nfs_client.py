"""The few calls of NFS that tell one life of a server from the next, by hand: no client would show them.

RFC 5531 (RPC), RFC 1813 (NFSv3 and its MOUNT), RFC 8881 (NFSv4.1).
"""

from __future__ import annotations

import socket
import struct

_DEADLINE_S = 20
_CALL, _RPC_VERSION, _AUTH_SYS, _AUTH_NONE = 0, 2, 1, 0
_LAST_FRAGMENT = 1 << 31
_REPLY_HEADER_BYTES = 24
"""Number, reply, accepted, an empty verifier, success."""
_MOUNT, _NFS = 100005, 100003
_VERIFIER_BYTES = 8


class Server:
    """A connection to one port of an NFS server."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=_DEADLINE_S)
        self._number = 0

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def call(self, program: int, version: int, procedure: int, body: bytes) -> bytes:
        """The answer of a procedure, behind the header of RPC."""
        self._number += 1
        credential = struct.pack(">I", 0) + opaque(b"test") + struct.pack(">3I", 0, 0, 0)
        message = struct.pack(">6I", self._number, _CALL, _RPC_VERSION, program, version, procedure)
        message += struct.pack(">I", _AUTH_SYS) + opaque(credential)
        message += struct.pack(">2I", _AUTH_NONE, 0) + body
        self._socket.sendall(struct.pack(">I", _LAST_FRAGMENT | len(message)) + message)
        (length,) = struct.unpack(">I", read_exactly(self._socket, 4))
        reply = read_exactly(self._socket, length & ~_LAST_FRAGMENT)
        assert struct.unpack_from(">6I", reply) == (self._number, 1, 0, 0, 0, 0), reply.hex()
        return reply[_REPLY_HEADER_BYTES:]


def read_exactly(connection: socket.socket, length: int) -> bytes:
    """As many bytes of what a server sends."""
    data = b""
    while len(data) < length:
        more = connection.recv(length - len(data))
        assert more, "the server hung up"
        data += more
    return data


def opaque(data: bytes) -> bytes:
    """As XDR has it (RFC 4506, 4.10)."""
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def root_of(mountd: Server, path: str) -> bytes:
    """The handle of an exported directory (MOUNT's MNT)."""
    answer = mountd.call(_MOUNT, 3, 1, opaque(path.encode()))
    status, length = struct.unpack_from(">2I", answer)
    assert status == 0, f"MNT: {status}"
    return answer[8 : 8 + length]


def write_verifier(server: Server, root: bytes) -> bytes:
    """A server's verifier of each unstable write: another one means that it forgot those before."""
    attributes = struct.pack(">7I", 0, 1, 0o600, 0, 0, 0, 0) + bytes(4)
    made = server.call(_NFS, 3, 8, opaque(root) + opaque(b"verifier") + attributes)
    status, has_handle, length = struct.unpack_from(">3I", made)
    assert (status, has_handle) == (0, 1), f"CREATE: {status}"
    handle = made[12 : 12 + length]
    where = struct.pack(">QII", 0, 4, 0)
    written = server.call(_NFS, 3, 7, opaque(handle) + where + opaque(b"data"))
    assert struct.unpack_from(">I", written) == (0,), "WRITE"
    return written[-_VERIFIER_BYTES:]


def boot_time_s(server: Server) -> int:
    """When the server was made, as it tells a new client of NFSv4.1 by its id (EXCHANGE_ID).

    Linux puts the time first, in its own byte order (fs/nfsd/nfs4state.c, `gen_clid`).
    """
    owner = bytes(_VERIFIER_BYTES) + opaque(b"a client of the tests")
    exchange = struct.pack(">I", 42) + owner + struct.pack(">3I", 0, 0, 0)
    answer = server.call(_NFS, 4, 1, opaque(b"") + struct.pack(">2I", 1, 1) + exchange)
    status, _tag, count, operation, ended = struct.unpack_from(">5I", answer)
    assert (status, count, operation, ended) == (0, 1, 42, 0), f"EXCHANGE_ID: {answer.hex()}"
    (time_s,) = struct.unpack_from("<I", answer, 20)
    return int(time_s)
