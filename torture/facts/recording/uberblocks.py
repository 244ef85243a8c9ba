"""An uberblock's root block (OpenZFS `include/sys/uberblock_impl.h`)."""

from __future__ import annotations

from dataclasses import dataclass

from torture.facts.recording.intent_log import Extent, addresses_in

_ROOT_AT = 40
"""The offset of `ub_rootbp`, behind five numbers."""
_BYTES_MAX = 8 << 10
"""An uberblock is no larger (`MAX_UBERBLOCK_SHIFT`); a larger block of a file may begin like one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Root:
    """The block from which all of a pool is found."""

    txg: int
    """The group of its birth: an older one, if the uberblock's own group changed nothing."""
    extents: tuple[Extent, ...]
    """Copies: each extent holds the whole block."""


def root_in(uberblock: bytes) -> Root | None:
    """The root block of an uberblock; None without one, and for a gang block."""
    if len(uberblock) > _BYTES_MAX:
        return None
    found = addresses_in(uberblock, _ROOT_AT)
    return None if found is None else Root(txg=found[1], extents=found[0])
