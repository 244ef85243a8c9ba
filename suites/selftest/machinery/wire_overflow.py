"""More passes a network card than a host that is busy elsewhere can write down."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Any

from torture.errors import HarnessError
from torture.machines.lab.lab import Lab
from torture.machines.lab.network.packets import PacketRecorder

_HERE = ("127.0.0.1", 9)
_DATAGRAM = bytes(60_000)
_FEW, _MANY = 10, 1_000
"""The kernel keeps 32 MiB for whoever writes them down."""


def overflow(_lab: Lab, scratch: Path) -> dict[str, Any]:
    """The reports of few datagrams, and of more than are kept while nothing can be written."""
    scratch.mkdir()
    return {"few": _said_of(scratch / "few", _FEW), "many": _said_of(scratch / "many", _MANY)}


def _said_of(pipe: Path, datagrams: int) -> str:
    os.mkfifo(pipe)
    slow_disk = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    recorder = PacketRecorder("lo", into=pipe)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(datagrams):
            sender.sendto(_DATAGRAM, _HERE)
    reader = threading.Thread(target=_read_all, args=(slow_disk,), name="slow disk")
    reader.start()
    try:
        recorder.stop()
    except HarnessError as error:
        return str(error)
    finally:
        reader.join()
    return ""


def _read_all(pipe: int) -> None:
    os.set_blocking(pipe, True)
    while os.read(pipe, 1 << 20):
        pass
    os.close(pipe)
