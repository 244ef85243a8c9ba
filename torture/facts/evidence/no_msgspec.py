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


Meta = field = fields = replace = _nothing
