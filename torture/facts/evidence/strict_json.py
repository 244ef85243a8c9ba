"""JSON from files of any origin: its data can be processed and written again."""

from __future__ import annotations

import codecs
import re
from itertools import accumulate
from typing import Any

try:
    import msgspec
except ModuleNotFoundError:  # as in `torture.facts.evidence.documents`
    msgspec = None  # type: ignore[assignment]

_NESTING_MAX = 100
"""The depth of objects and lists; deeper data would overflow the stack of its readers."""
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_WHOLE = rb"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w"
_HALF = rb"\\u[dD][89a-fA-F]\w\w"
_ESCAPED = re.compile(rb"\\\\|%b|(%b)" % (_WHOLE, _HALF))


def strict_json(raw: bytes) -> Any:
    """The data of a JSON text: no NaN, nothing infinite or too deep, and only text that can be written.

    Raises `ValueError` that names the broken rule.
    """
    text = readable(raw)
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not JSON") from error


def readable(raw: bytes) -> bytes:
    """The JSON text as msgspec takes it; raises `ValueError` where it is nested too deeply.

    Half a surrogate pair is valid JSON, but no file can hold such text: it becomes U+FFFD.
    """
    text = raw.removeprefix(codecs.BOM_UTF8)
    if b"\\ud" in text or b"\\uD" in text:
        text = _ESCAPED.sub(lambda found: rb"\ufffd" if found[1] else found[0], text)
    if text.count(b"{") + text.count(b"[") > _NESTING_MAX and _nesting(text) > _NESTING_MAX:
        raise ValueError("it is nested too deeply")
    return text


def _nesting(text: bytes) -> int:
    brackets = _STRING.sub(b"", text).translate(None, _NO_BRACKETS)
    return max(accumulate(1 if bracket in b"[{" else -1 for bracket in brackets), default=0)


def json_object(raw: bytes) -> dict[str, Any] | None:
    """The object that a JSON text is; None for any other text."""
    try:
        data = strict_json(raw)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None
