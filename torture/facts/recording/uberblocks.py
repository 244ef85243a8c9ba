"""What an uberblock points to: the root block of its group (OpenZFS `include/sys/uberblock_impl.h`)."""

from __future__ import annotations

from dataclasses import dataclass

from torture.facts.recording.intent_log import Extent, addresses_in

_ROOT_AT = 40
"""`ub_rootbp`, behind five numbers."""
_BYTES_MAX = 8 << 10
"""An uberblock is no larger (`MAX_UBERBLOCK_SHIFT`); a block of a file may begin like one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Root:
    """The block from which all of a pool is found."""

    txg: int
    """The group in which it was born: an older one, where the uberblock's own changed nothing."""
    extents: tuple[Extent, ...]
    """Each of these holds all of it."""


def root_in(uberblock: bytes) -> Root | None:
    """The root block of an uberblock; None of what has none, or is in several pieces (a gang block)."""
    if len(uberblock) > _BYTES_MAX:
        return None
    found = addresses_in(uberblock, _ROOT_AT)
    return None if found is None else Root(txg=found[1], extents=found[0])
