"""The parts of a volume that hold data (pure)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_GRAIN_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranges:
    """Offsets and lengths in bytes, ascending, apart from each other."""

    spans: tuple[tuple[int, int], ...]

    @classmethod
    def whole(cls, size: int) -> Self:
        """All of a volume."""
        return cls(spans=((0, size),))

    @classmethod
    def of_grains(cls, grains: set[int]) -> Self:
        """The ranges of these grains of 64 KiB, by number."""
        spans: list[tuple[int, int]] = []
        for grain in sorted(grains):
            offset = grain * _GRAIN_BYTES
            if spans and sum(spans[-1]) == offset:
                spans[-1] = (spans[-1][0], spans[-1][1] + _GRAIN_BYTES)
            else:
                spans.append((offset, _GRAIN_BYTES))
        return cls(spans=tuple(spans))

    @property
    def packed(self) -> bytes:
        """As the guest's program reads them."""
        return b"".join(struct.pack("<QQ", *span) for span in self.spans)

    @property
    def bytes(self) -> int:
        """The sum of the lengths."""
        return sum(length for _, length in self.spans)

    def chunks(self, most: int) -> Iterator[tuple[int, int]]:
        """The ranges in pieces of at most so many bytes."""
        for offset, length in self.spans:
            for at in range(offset, offset + length, most):
                yield at, min(most, offset + length - at)


def grains_with_data(image: Path) -> set[int]:
    """The grains of an image that are not all zeroes."""
    grains = set()
    with image.open("rb") as file:
        for number in range(-(-image.stat().st_size // _GRAIN_BYTES)):
            if file.read(_GRAIN_BYTES).strip(b"\0"):
                grains.add(number)
    return grains


def grains_of(offset: int, length: int) -> range:
    """The grains that a write touches."""
    return range(offset // _GRAIN_BYTES, -(-(offset + length) // _GRAIN_BYTES))
