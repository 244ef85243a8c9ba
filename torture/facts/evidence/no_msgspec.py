"""Stands in for msgspec where a tool runs before there is an environment: it reads no document then."""

from __future__ import annotations

from typing import Any


class Struct:
    """Takes the options of msgspec's."""

    __struct_fields__: tuple[str, ...] = ()

    def __init__(self, **_values: Any) -> None: ...

    def __init_subclass__(cls, **_options: Any) -> None: ...


def _nothing(*_: Any, **_options: Any) -> Any:
    return None


def defstruct(name: str, _fields: Any, *, bases: tuple[type, ...], **_options: Any) -> type:
    """As msgspec's, without the fields."""
    return type(name, bases, {})


Meta = field = fields = replace = _nothing
