"""Data that were there before the load, beside its own: the places where they are not as they were.

`torture/choices/workloads/ledger.py` makes the files. The rest of a bare device has only zeros.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

FILE_BYTES = 16384
STRIDE_BYTES = 1 << 20
"""At this distance the rest of a device is looked at: garbage of this length cannot hide."""
_LOOK_BYTES = 4096
_REPORTED_MAX = 12


def content_of(number: int) -> bytes:
    """The content of a file from before the load."""
    line = b"%d was here before the load\n" % number
    return (line * (FILE_BYTES // len(line) + 1))[:FILE_BYTES]


def files_not_as_they_were(job: dict[str, Any]) -> list[dict[str, str]]:
    """The files that are missing or changed, or the errors of reading them."""
    looked = ((number, _state_of(job, number)) for number in range(job.get("before", 0)))
    return [{"name": f"file {number}", "state": state} for number, state in looked if state]


def _state_of(job: dict[str, Any], number: int) -> str:
    try:
        descriptor = os.open(f"{job['directory']}-before/{number}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return "missing" if error.errno == errno.ENOENT else f"errno:{error.errno}"
    try:
        found = os.pread(descriptor, FILE_BYTES + 1, 0)
    except OSError as error:
        return f"errno:{error.errno}"
    finally:
        os.close(descriptor)
    return "" if found == content_of(number) else "changed"


def garbage_behind(descriptor: int, start: int) -> list[dict[str, str]]:
    """The first places of a bare device, from `start` on, that are not zeros."""
    found: list[dict[str, str]] = []
    end = os.lseek(descriptor, 0, os.SEEK_END)
    for place in (start, *range(-(-start // STRIDE_BYTES) * STRIDE_BYTES, end, STRIDE_BYTES)):
        try:
            data = os.pread(descriptor, _LOOK_BYTES, place)
        except OSError as error:
            return [*found, {"name": f"byte {place}", "state": f"errno:{error.errno}"}]
        if data.strip(b"\0"):
            found.append({"name": f"byte {place}", "state": "garbage"})
        if len(found) == _REPORTED_MAX:
            break
    return found
