#!/usr/bin/env python3
"""Count the forced writes (FUA) of a raw image that QEMU answers before a flush can have covered them.

python3 qemu-forced-writes.py [QEMU-NBD] [CACHE]     # qemu-nbd writeback

It needs Debian's packages qemu-utils, strace and python3-libnbd. strace holds each fdatasync back for a
second. A forced write that is answered sooner after it was sent is not durable: no fdatasync that began
after it can have ended. This tells of aio=threads alone: io_uring and native write with RWF_DSYNC.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import nbd

HELD_MS, BLOCK_BYTES, SPACING_S, WRITES = 1000, 4096, 0.03, 6


def answered(number: int, sent_s: float, answers: dict[int, float], error: int) -> int:
    """Note how long a write took; the request is over."""
    answers[number] = (time.monotonic() - sent_s) * 1000
    if error:
        sys.exit(f"write {number}: error {error}")
    return 1


def main() -> None:
    """Send forced writes, and time their answers."""
    qemu, cache = [*sys.argv[1:], *("qemu-nbd", "writeback")[len(sys.argv) - 1 :]]
    image = Path(tempfile.mkdtemp()) / "image"
    image.write_bytes(bytes(64 << 20))
    node = f"driver=raw,file.driver=file,file.filename={image},file.locking=off"
    # -D keeps the process of QEMU the one that the library started
    holds = ["strace", "-D", "-f", "-o", "/dev/null", "-e", "trace=fdatasync"]
    holds += ["-e", f"inject=fdatasync:delay_enter={HELD_MS}ms"]
    client, answers = nbd.NBD(), dict[int, float]()
    client.connect_systemd_socket_activation(
        [*holds, qemu, f"--cache={cache}", "--aio=threads", "--image-opts", node]
    )
    for number in range(WRITES):
        completion = partial(answered, number, time.monotonic(), answers)
        data = nbd.Buffer.from_bytearray(bytearray(b"x" * BLOCK_BYTES))
        client.aio_pwrite(data, number << 20, completion, nbd.CMD_FLAG_FUA)
        next_s = time.monotonic() + SPACING_S
        while (left_s := next_s - time.monotonic()) > 0:
            client.poll(max(1, int(left_s * 1000)))
    while len(answers) < WRITES:
        client.poll(-1)
    for number, took_ms in sorted(answers.items()):
        word = "answered early" if took_ms < HELD_MS else "answered"
        print(f"write {number}: {word} after {took_ms:.0f} ms")
    early = sum(took_ms < HELD_MS for took_ms in answers.values())
    print(f"cache={cache} aio=threads: {early} of {WRITES} forced writes without a flush")
    client.kill_subprocess(signal.SIGTERM)


main()
