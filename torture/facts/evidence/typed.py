"""Values of a JSON object by name, believed only if they have the right type."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

_WHOLE_MAX = 2**64 - 1


def text_of(data: Mapping[str, Any], name: str) -> str:
    """The text of this name; empty where there is none."""
    value = data.get(name)
    return value if isinstance(value, str) else ""


def whole_of(data: Mapping[str, Any], name: str) -> int | None:
    """The number from 0 to 2^64 - 1 of this name; None where there is none."""
    value = data.get(name)
    return value if type(value) is int and 0 <= value <= _WHOLE_MAX else None


def number_of(data: Mapping[str, Any], name: str) -> float | None:
    """The finite number of this name; None where there is none."""
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def flag_of(data: Mapping[str, Any], name: str) -> bool | None:
    """The truth value of this name; None where there is none."""
    value = data.get(name)
    return value if isinstance(value, bool) else None


def object_of(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object of this name; empty where there is none."""
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def texts_of(data: Mapping[str, Any], name: str) -> dict[str, str]:
    """The texts in the object of this name."""
    return {key: text for key, text in object_of(data, name).items() if isinstance(text, str)}


def list_of_texts(data: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The texts in the list of this name."""
    value = data.get(name)
    if not isinstance(value, list | tuple):
        return ()
    return tuple(text for text in value if isinstance(text, str))


def others_of(data: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """What a version that knows these names does not know, so that it can be written again."""
    return {key: value for key, value in data.items() if key not in known}
