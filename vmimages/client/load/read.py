"""`load read`: read every file or region back, and report its content. Judges nothing."""

from __future__ import annotations

import errno
import os

from .beside import files_not_as_they_were, garbage_behind
from .blocks import BLOCK_BYTES, decode_block
from .plan import busy_files, keepsakes
from .storage import TEMPORARY_SUFFIX, file_name

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

    from .blocks import Block

_BLOCKS_BEYOND_MAX = 16
"""A file longer than the load ever makes is read this much further, no more."""


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Read back the files of a write job (the same dictionary); errors of reading are observations.

    The answer holds:
    - `files` and `temporaries` (each: file, name, listed, and errno or size in bytes and blocks; a
      block is as in `decode_block`, or `errno:<number>`)
    - `unexpected` names
    - `looked`: how many files or regions were looked for; those missing in `files` are absent, or
      all zeros
    - `device_bytes` of a bare device
    - `beside`: the data from before the load that are not as they were (each: name, state)
    - `finds_halves`, which is true where `decode_block` names both halves of a sector
    - `complete`, which is true and last

    An application's answer is that of its own `read`.
    """
    if job["mode"] == "application":
        from .applications import application_of

        answer = application_of(job).read()
        return {"trial": job["trial"], "mode": job["mode"], **answer, "complete": True}
    looked = keepsakes(job).stop
    answer = {"mode": job["mode"], "trial": job["trial"], "looked": looked}
    answer["finds_halves"] = True
    if job["mode"] == "raw":
        answer |= _read_device(job) | {"temporaries": [], "unexpected": []}
        answer |= {"device_bytes": device_bytes(job["device"])}
    else:
        answer |= _read_directory(job) | {"beside": files_not_as_they_were(job)}
    answer["complete"] = True
    return answer


def device_bytes(device: str) -> int | None:
    """The size of a bare device; None where it cannot be opened."""
    try:
        descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.lseek(descriptor, 0, os.SEEK_END)
    finally:
        os.close(descriptor)


def _read_directory(job: dict[str, Any]) -> dict[str, Any]:
    try:
        listed = set(os.listdir(job["directory"]))  # noqa: PTH208 - pathlib is slow to import
    except OSError as error:
        return {
            "files": [],
            "temporaries": [],
            "unexpected": [],
            "directory_errno": error.errno,
        }
    busy = {file_name(file): file for file in busy_files(job)}
    kept = {file_name(file): file for file in keepsakes(job)}
    names = busy | {name: kept[name] for name in sorted(listed & kept.keys())}
    temporaries = {name + TEMPORARY_SUFFIX: file for name, file in busy.items()}
    return {
        "files": [_read_file(job, name, file, name in listed) for name, file in names.items()],
        "temporaries": [
            _read_file(job, name, file, True)
            for name, file in temporaries.items()
            if name in listed
        ],
        "unexpected": sorted(listed - names.keys() - temporaries.keys()),
    }


def _read_file(job: dict[str, Any], name: str, file: int, listed: bool) -> dict[str, Any]:
    seen: dict[str, Any] = {"file": file, "name": name, "listed": listed}
    try:
        descriptor = os.open(f"{job['directory']}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return seen | {"errno": error.errno}
    try:
        size = os.fstat(descriptor).st_size
        longest = (job["blocks_per_file_max"] + _BLOCKS_BEYOND_MAX) * BLOCK_BYTES
        blocks = _read_blocks(descriptor, job["trial"], file, 0, min(size, longest))
        return seen | {"size": size, "blocks": blocks}
    except OSError as error:
        return seen | {"errno": error.errno}
    finally:
        os.close(descriptor)


def _read_device(job: dict[str, Any]) -> dict[str, Any]:
    length = job["blocks_per_file_max"] * BLOCK_BYTES
    files = range(keepsakes(job).stop)
    seen = []
    try:
        descriptor = os.open(job["device"], os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        failed = {"listed": True, "errno": error.errno}
        return {
            "files": [{"file": file, "name": f"region-{file}", **failed} for file in files],
            "beside": [],
        }
    # No read-ahead: NVMe/TCP from a zvol requests 8 MiB at once then. Linux 6.12's target refuses
    # that, and a failing disk proves nothing.
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    for file in files:
        blocks = _read_blocks(descriptor, job["trial"], file, file * length, length)
        if all(block == "zero" for block in blocks):
            continue
        seen.append(
            {
                "file": file,
                "name": f"region-{file}",
                "listed": True,
                "size": length,
                "blocks": blocks,
            }
        )
    beside = garbage_behind(descriptor, files.stop * length)
    os.close(descriptor)
    return {"files": seen, "beside": beside}


def _read_blocks(descriptor: int, trial: int, file: int, start: int, length: int) -> list[Block]:
    try:
        data = os.pread(descriptor, length, start)
    except OSError:
        data = b""
    blocks: list[Block] = []
    for index in range((length + BLOCK_BYTES - 1) // BLOCK_BYTES):
        offset = index * BLOCK_BYTES
        block = data[offset : offset + BLOCK_BYTES]
        wanted = min(BLOCK_BYTES, length - offset)
        if len(block) < wanted:  # it fails at some block: find out where
            try:
                block = os.pread(descriptor, wanted, start + offset)
            except OSError as error:
                blocks.append(f"errno:{error.errno or errno.EIO}")
                continue
            if len(block) < wanted:  # the device ends here, or the file is too short
                blocks.append(f"errno:{errno.ENODATA}")
                continue
        blocks.append(decode_block(block, trial=trial, file=file, index=index))
    return blocks
