"""Values of a JSON object by name, believed only if they have the right type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_WHOLE_MAX = 2**64 - 1


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
