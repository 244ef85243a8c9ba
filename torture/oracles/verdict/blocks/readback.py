"""The report of `load read` after recovery, as text -> plain values. Judges nothing."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Annotated, Any

from torture.facts.evidence.documents import Meta, strictly
from torture.oracles.verdict.verdicts import read_whole

SECTORS = 8
"""The number of sectors in a block, as in the guest's `blocks.py`."""

Sector = int | Annotated[str, Meta(pattern=r"^(zero|garbage|partial|foreign|errno|half)(:|\Z)")]
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
class BesideSeen:
    """A file from before the load, or a place of the bare device, that is not as it was."""

    name: str
    state: str
    """`missing`, `changed`, `garbage` or `errno:<n>`."""

    @property
    def in_words(self) -> str:
        """E.g. `file 2 missing`."""
        return f"{self.name} {self.state}"


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
    beside: tuple[BesideSeen, ...] = ()
    """The data from before the load that are not as they were; older read-backs do not look."""


def parse_readback(text: str) -> Readback:
    """The read-back of a stored document; raises `UnreadableError` for a cut-off or garbled one."""
    return read_whole(text, _readback)


def _readback(raw: dict[str, Any]) -> Readback:
    seen = {of: [_file(entry) for entry in raw[of]] for of in ("files", "temporaries")}
    return strictly(Readback, {"directory_errno": None} | raw | seen)


def _file(raw: dict[str, Any]) -> dict[str, Any]:
    """The fields of `FileSeen`; a file that was not opened has no content."""
    if raw.get("errno") is not None:
        return raw | {"size_bytes": 0, "blocks": ()}
    blocks = [block if isinstance(block, list) else [block] * SECTORS for block in raw["blocks"]]
    return {"errno": None} | raw | {"size_bytes": raw["size"], "blocks": blocks}
