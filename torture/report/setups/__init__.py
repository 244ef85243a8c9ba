"""The set-ups that people have, as choices of a cell: each is a file in `products/`.

`controls.toml` has the questions about them: the NAS, `sync`, SLOG, pool, and what happens.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
_FOLDER = Path(__file__).parent
CONTROLS = ("run", "on", "sync", "slog", "layout", "event")
"""The controls of a page, in their order."""


class SetUp(msgspec.Struct, frozen=True, kw_only=True):
    """A product's way to attach a disk or a directory, and the cell that is the same."""

    name: str
    group: str
    """The product."""
    words: str
    place: int
    on: str
    """The kind of its NAS, by which options of `Controls` apply to it."""
    cell: dict[str, str]
    """Its choices away from the defaults."""
    source: str
    """Where one reads that the product does it so, with its version."""
    differs: str = ""
    """In what the cell is not the product."""
    patience: str = "forever"
    """How long it waits for its NAS as shipped."""
    lasting: str = ""
    """The setting for an outage that lasts longer."""
    is_model: bool = False
    """Whether it was not that product's own code that was measured."""

    @property
    def title(self) -> str:
        """E.g. `Proxmox VE, NFS storage, raw image`."""
        return f"{self.group}, {self.words}"

    @property
    def hosts(self) -> tuple[Option, ...]:
        """The NASes that it can have."""
        return tuple(option for option in controls().on if self.on in option.of)


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """An option of a control."""

    name: str
    words: str
    of: tuple[str, ...] = ()
    """The kinds of NAS that have it; empty: all."""
    change: dict[str, str] = {}
    """The choices that it sets."""
    differs: str = ""


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """An option of the last control: each of `changes` is a cell of its own."""

    name: str
    words: str
    changes: tuple[dict[str, str], ...]
    of: tuple[str, ...] = ()
    waits: bool = False
    """Whether it lasts longer than some clients wait."""


class Near(msgspec.Struct, frozen=True, kw_only=True):
    """Which cell is nearest to one that was not measured."""

    same: frozenset[str]
    """The axes on which it may not differ."""
    kinds: tuple[frozenset[str], ...]
    """Transports of one kind."""
    small: frozenset[str]
    """Axes on which another choice is another disk or load."""
    far: dict[str, int]
    """How far another choice is."""

    def kind_of(self, transport: str) -> frozenset[str]:
        """The transports of its kind; itself alone, if none lists it."""
        return next((kind for kind in self.kinds if transport in kind), frozenset({transport}))


class Controls(msgspec.Struct, frozen=True, kw_only=True):
    """All options, in their order: the first that applies is the default."""

    on: tuple[Option, ...]
    sync: tuple[Option, ...]
    slog: tuple[Option, ...]
    layout: tuple[Option, ...]
    event: tuple[Happening, ...]
    near: Near


@cache
def setups() -> tuple[SetUp, ...]:
    """All set-ups, in the order of a page."""
    found = [_read(file, SetUp, name=file.stem) for file in (_FOLDER / "products").glob("*.toml")]
    return tuple(sorted(found, key=lambda own: (own.place, own.name)))


@cache
def controls() -> Controls:
    """The controls."""
    return _read(_FOLDER / "controls.toml", Controls)


def _read(file: Path, kind: type[T], **more: Any) -> T:
    content: Mapping[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    return msgspec.convert({**content, **more}, kind)
