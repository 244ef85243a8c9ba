"""JSON from files of any origin: its data can be processed and written again.

A value is believed only if it has the right type.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

try:
    import msgspec
except ModuleNotFoundError:  # as in `torture.facts.evidence.documents`
    msgspec = None  # type: ignore[assignment]

_NESTING_MAX = 100
"""The depth of objects and lists; deeper data would overflow the stack of its readers."""


def strict_json(raw: bytes) -> Any:
    """The data of a JSON text: no NaN, nothing infinite or too deep, and only text that can be written.

    Raises `ValueError` that names the broken rule.
    """
    data = _decoded(raw)
    if is_plain(raw):
        return data
    if _nesting(data) > _NESTING_MAX:
        raise ValueError("it is nested too deeply")
    return _without_surrogates(data)


def is_plain(raw: bytes) -> bool:
    """Whether a JSON text is surely not too deep, and surely has text that can be written."""
    return not has_surrogate(raw) and len(raw) - len(raw.translate(None, b"{[")) <= _NESTING_MAX


def has_surrogate(raw: bytes) -> bool:
    """Whether a JSON text may have half a surrogate pair: valid JSON, but no file can hold such text."""
    return b"\\" in raw and (b"\\ud" in raw or b"\\uD" in raw)


def json_object(raw: bytes) -> dict[str, Any] | None:
    """The object that a JSON text is; None for any other text."""
    try:
        data = strict_json(raw)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _decoded(raw: bytes) -> Any:
    """The data; msgspec takes half as long as Python's own reader, which has the last word."""
    if msgspec is not None:
        try:
            return msgspec.json.decode(raw)
        except (ValueError, RecursionError):
            pass
    try:
        return _DECODER.decode(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not JSON") from error


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def _nesting(data: Any) -> int:
    depth, level = 0, [data]
    while level:
        depth += 1
        inside = [value.values() if isinstance(value, dict) else value for value in level]
        level = [value for many in inside for value in many if isinstance(value, dict | list)]
    return depth


def _without_surrogates(data: Any) -> Any:
    match data:
        case str():
            return data.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_without_surrogates(value) for value in data]
        case dict():
            return {
                _without_surrogates(key): _without_surrogates(value) for key, value in data.items()
            }
    return data


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
