#!/usr/bin/env python3
"""Count the forced writes (FUA) of a raw image that QEMU answers before a flush can have covered them.

python3 qemu-forced-writes.py [QEMU-NBD] [CACHE] [AIO]     # qemu-nbd writeback threads; needs strace

strace holds each fdatasync back for a second. A forced write that is answered sooner after it was
sent is not durable: no fdatasync that began after it can have ended. QEMU with aio=io_uring writes
with RWF_DSYNC instead, which strace does not hold back. NBD's protocol: NetworkBlockDevice/nbd,
doc/proto.md.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HELD_MS, BLOCK_BYTES, SPACING_S, WRITES = 1000, 4096, 0.03, 6
WRITE, FLAG_FUA = 1, 1


def connected(path: Path) -> socket.socket:
    """A connection to the server's default export, once it listens."""
    for _ in range(200):
        nbd = socket.socket(socket.AF_UNIX)
        try:
            nbd.connect(str(path))
        except OSError:
            time.sleep(0.05)
            continue
        taken(nbd, 18)
        nbd.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 1, 0))
        taken(nbd, 10)
        return nbd
    sys.exit("qemu-nbd does not listen after 10 s")


def taken(nbd: socket.socket, size: int) -> bytes:
    """The next bytes from the server."""
    data = b""
    while len(data) < size:
        piece = nbd.recv(size - len(data))
        if not piece:
            sys.exit("qemu-nbd closed the connection")
        data += piece
    return data


def main() -> None:
    """Send forced writes, and time their answers."""
    qemu, cache, aio = [*sys.argv[1:], *("qemu-nbd", "writeback", "threads")[len(sys.argv) - 1 :]]
    folder = Path(tempfile.mkdtemp())
    image, listening = folder / "image", folder / "socket"
    image.write_bytes(bytes(64 << 20))
    node = f"driver=raw,file.driver=file,file.filename={image},file.locking=off"
    holds = ["strace", "-f", "-o", "/dev/null", "-e", "trace=fdatasync"]
    holds += ["-e", f"inject=fdatasync:delay_enter={HELD_MS}ms"]
    argv = [*holds, qemu, "-k", listening, f"--cache={cache}", f"--aio={aio}", "--image-opts", node]
    with subprocess.Popen(argv) as server:
        nbd = connected(listening)
        sent_s = {}
        for number in range(WRITES):
            sent_s[number] = time.monotonic()
            request = struct.pack(
                ">IHHQQI", 0x25609513, FLAG_FUA, WRITE, number, number << 20, BLOCK_BYTES
            )
            nbd.sendall(request + b"x" * BLOCK_BYTES)
            time.sleep(SPACING_S)
        early = 0
        for _ in range(WRITES):
            _magic, error, number = struct.unpack(">IIQ", taken(nbd, 16))
            took_ms = (time.monotonic() - sent_s[number]) * 1000
            is_early = took_ms < HELD_MS
            early += is_early
            word = "answered early" if is_early else "answered"
            print(f"write {number}: {word} after {took_ms:.0f} ms, error {error}")
        nbd.close()
        server.terminate()
    print(f"cache={cache} aio={aio}: {early} of {WRITES} forced writes without a flush")


main()
