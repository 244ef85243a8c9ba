"""The report of `load read` after recovery, as text -> plain values. Judges nothing."""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass
from typing import Any

from torture.oracles.verdict.unreadable import UnreadableError

SECTORS = 8
"""The number of sectors in a block, as in the guest's `blocks.py`."""

Sector = int | str
"""A valid sector's operation, or `zero`, `garbage`, `partial`, `foreign:...`, `errno:<n>`.

Or `half:<n>:<m>`: it begins with operation n's data and ends with m's; 0 stands for zeros.
"""

GARBAGE = "garbage"
"""A sector that no single write left. Older read-backs use it for two halves, too."""
ABSENT = "nothing"
"""A sector inside the file, or the device, that the read-back lacks."""
ENDED = f"errno:{errno.ENODATA}"
"""The same, when the reader met the end of the device: no disk failed."""
_SECTOR_BYTES = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class FileSeen:
    """One name or region as found. With `errno` its opening failed (2: there is no file of this name).

    `blocks` holds the sectors of each block; the last block of a file may have fewer than eight.
    """

    file: int
    name: str
    listed: bool
    errno: int | None
    size_bytes: int
    blocks: tuple[tuple[Sector, ...], ...]

    def sectors_of(self, block: int, *, end_bytes: int | None = None) -> tuple[Sector, ...]:
        """The sectors of a block; `ABSENT` are those below `end_bytes` that were not read.

        By default the end is that of the file.
        """
        end = self.size_bytes if end_bytes is None else end_bytes
        whole = min(SECTORS, max(0, end // _SECTOR_BYTES - block * SECTORS))
        read = self.blocks[block] if block < len(self.blocks) else ()
        inside = [ABSENT if sector == "partial" else sector for sector in read[:whole]]
        return (*inside, *(ABSENT,) * (whole - len(inside)), *read[whole:])


@dataclass(frozen=True, kw_only=True, slots=True)
class Readback:
    """Everything found; with `directory_errno` the listing of the directory itself failed.

    Of the first `looked` files, those that `files` lacks are not there (regions: all zeros).
    """

    mode: str
    trial: int
    looked: int
    files: tuple[FileSeen, ...]
    temporaries: tuple[FileSeen, ...]
    unexpected: tuple[str, ...]
    directory_errno: int | None
    device_bytes: int | None = None
    """The size of the bare device, if the read-back has it."""
    finds_halves: bool = False
    """Whether it says `half` for a sector in which two writes met; older ones say `garbage`."""


def parse_readback(text: str) -> Readback:
    """The read-back of a stored document; raises `UnreadableError` for a cut-off or garbled one."""
    try:
        raw = json.loads(text)
        if raw["complete"] is not True:
            raise UnreadableError("the read-back does not say that it is complete")
        listing = raw.get("directory_errno")
        return Readback(
            mode=str(raw["mode"]),
            trial=int(raw["trial"]),
            looked=int(raw["looked"]),
            files=tuple(_file(entry) for entry in raw["files"]),
            temporaries=tuple(_file(entry) for entry in raw["temporaries"]),
            unexpected=tuple(str(name) for name in raw["unexpected"]),
            directory_errno=None if listing is None else int(listing),
            device_bytes=None if raw.get("device_bytes") is None else int(raw["device_bytes"]),
            finds_halves=raw.get("finds_halves") is True,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"the read-back cannot be read: {error!r}") from error


def _file(raw: dict[str, Any]) -> FileSeen:
    failure = raw.get("errno")
    return FileSeen(
        file=int(raw["file"]),
        name=str(raw["name"]),
        listed=bool(raw["listed"]),
        errno=None if failure is None else int(failure),
        size_bytes=0 if failure is not None else int(raw["size"]),
        blocks=() if failure is not None else tuple(_block(block) for block in raw["blocks"]),
    )


def _block(raw: Any) -> tuple[Sector, ...]:
    if isinstance(raw, list):
        return tuple(_sector(sector) for sector in raw)
    return (_sector(raw),) * SECTORS


def _sector(raw: Any) -> Sector:
    if isinstance(raw, bool) or not isinstance(raw, int | str):
        raise TypeError(f"no sector: {raw!r}")
    if isinstance(raw, str) and raw.split(":")[0] not in _REASONS:
        raise ValueError(f"no sector: {raw!r}")
    return raw


_REASONS = ("zero", GARBAGE, "partial", "foreign", "errno", "half")
