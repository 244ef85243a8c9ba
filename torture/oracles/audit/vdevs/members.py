"""Which disks are part of the pool: a vdev may join it, or leave it, while the recording goes on.

`vdev_label_init` writes the labels of a disk that joins or leaves, its pads and its ring of uberblocks.
They name transaction group 0, belong to no group, and are not flushed (OpenZFS
`module/zfs/vdev_label.c`). The label of a joining disk names the group in which it was created. That of
a leaving disk names group 0 (`spa_vdev_remove_log` in `module/zfs/vdev_removal.c`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from torture.facts.recording.events import Event, RecordedDisk
from torture.facts.recording.intent_log import LABEL_BYTES, Role, role_of, txg_of

_AREA_BYTES = 256 * 1024
_LABEL_AT = 16 * 1024
"""The place of a label's configuration in its area (`include/sys/vdev_impl.h`, `vdev_label_t`)."""
_SPARE, _CACHE = 3, 4
"""`POOL_STATE_SPARE` and `POOL_STATE_L2CACHE` (`include/sys/fs/zfs.h`)."""


class Change(StrEnum):
    """How a write changes the pool's layout."""

    JOINS = "joined"
    LEAVES = "left"
    NONE = ""
    """It belongs to a disk that joins or leaves, and does not say which."""


def change_in(event: Event, payload: bytes) -> Change | None:
    """The change that a write of `vdev_label_init` makes; None for all other writes.

    The block layer may have merged the label with its neighbours. A spare or a cache device has another
    label, without any group (`vdev_aux_label_generate`). No uberblock depends on its content.
    """
    place = (_LABEL_AT - event.offset) % _AREA_BYTES
    label = payload[place : place + LABEL_BYTES]
    if role_of(label) is Role.LABEL:
        if _number(label, "state") in (_SPARE, _CACHE):
            return Change.LEAVES
        if _number(label, "txg") == 0:
            return Change.JOINS if _number(label, "create_txg") else Change.LEAVES
    is_uberblock = role_of(payload) is Role.UBERBLOCK
    return Change.NONE if is_uberblock and not txg_of(payload) else None


def _number(label: bytes, name: str) -> int | None:
    """The last number of this name, in XDR (`module/nvpair/nvpair.c`, `nvs_xdr_nvpair`).

    `create_txg` is in the trees of vdevs, too; the label's own is added behind them.
    """
    key = name.encode()
    head = struct.pack(">I", len(key)) + key + bytes(-len(key) % 4) + struct.pack(">II", 8, 1)
    place = label.rfind(head)
    found = label[place + len(head) : place + len(head) + 8]
    return None if place < 0 or len(found) < 8 else int.from_bytes(found, "big")


class _Known(Protocol):
    def forget(self, disk: int) -> None: ...


@dataclass(kw_only=True)
class Members:
    """Follows a recording."""

    known: Sequence[_Known]
    """They forget a disk that joins or leaves: its former content means nothing."""
    outside: set[int] = field(default_factory=set)
    """The disks that have left: the pool depends on nothing there."""
    _changes: list[tuple[int, Change]] = field(default_factory=list)
    _latest: dict[int, Change] = field(default_factory=dict)

    def hear(self, event: Event, change: Change | None) -> bool:
        """Note a write; returns whether the pool depends on none of it."""
        disk = event.disk
        if disk is None:
            return False
        if change in (Change.JOINS, Change.LEAVES) and change is not self._latest.get(disk):
            self._latest[disk] = change
            self._changes.append((disk, change))
            (self.outside.add if change is Change.LEAVES else self.outside.discard)(disk)
            for part in self.known:
                part.forget(disk)
        return change is not None or disk in self.outside

    def in_words(self, disks: Sequence[RecordedDisk]) -> tuple[str, ...]:
        """E.g. `slog0 left` and `slog0 joined`, in their order."""
        return tuple(f"{disks[disk].name} {change}" for disk, change in self._changes)
