"""Documents: values that are written as JSON, and read back from files of any origin.

The types of a document's fields are its reader: msgspec reads it as a whole, or not at all. It ignores
the fields of another version of the suite.
"""

from __future__ import annotations

import codecs
import re
import sys
from functools import cache
from itertools import accumulate
from typing import Annotated, Any, Self, TypeVar

try:
    import msgspec
    from msgspec import Meta, Struct, defstruct, field
    from msgspec.structs import fields, replace
except ModuleNotFoundError:  # `tools/run` and `tools/night plan` start without an environment
    from torture.facts.evidence.no_msgspec import (  # type: ignore[assignment,no-redef]
        Meta,
        Struct,
        defstruct,
        field,
        fields,
        replace,
    )

__all__ = ["Meta", "Struct", "defstruct", "field", "fields", "replace"]

COUNT_MAX = 2**63 - 1
FLOAT_MAX = sys.float_info.max
SEED_MAX = 2**64 - 1

Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
Number = Annotated[float, Meta(ge=-COUNT_MAX, le=COUNT_MAX)]
Finite = Annotated[float, Meta(ge=-FLOAT_MAX, le=FLOAT_MAX)]
Measure = Annotated[float, Meta(ge=0, le=FLOAT_MAX)]
Seed = Annotated[int, Meta(ge=0, extra_json_schema={"maximum": SEED_MAX})]
"""64 bits, more than msgspec's own bounds allow: its document has to look."""
Text = Annotated[str, Meta(min_length=1)]
Name = Annotated[str, Meta(min_length=1, max_length=1000)]

_EMPTY: tuple[Any, ...] = (None, "", (), {}, [])


class Document(Struct, frozen=True, kw_only=True):
    """A value that is written as JSON."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the fields."""
        return cls.__struct_fields__

    def as_json(self) -> dict[str, Any]:
        """The document as plain data; `from_json` takes it back. Empty fields are left out."""
        defaults = _defaults_of(type(self))
        values = ((name, getattr(self, name)) for name in defaults)
        plain = ((name, value, _plain_of(value)) for name, value in values)
        return {
            name: data
            for name, value, data in plain
            if data not in _EMPTY or value != defaults[name]
        }

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The document of plain data. Raises `ValueError` that names the wrong field."""
        return msgspec.convert(data, cls, dec_hook=lambda kind, text: kind(text))


_Own = TypeVar("_Own", bound=Document)
_Value = TypeVar("_Value")


def document_or_none(cls: type[_Own], data: Any) -> _Own | None:
    """The document; None where there is none."""
    try:
        return cls.from_json(data)
    except ValueError:
        return None


def strictly(cls: type[_Value], data: Any) -> _Value:
    """The value of another type in plain data. Raises `ValueError`."""
    return msgspec.convert(data, cls, str_keys=True)


def plainly(value: object) -> dict[str, Any]:
    """The value of another type as plain data, with its empty fields."""
    plain: dict[str, Any] = msgspec.to_builtins(value)
    return plain


@cache
def _defaults_of(cls: type[Document]) -> dict[str, Any]:
    """Each field's default; of a required field it is a value that no field has."""
    return {
        own.name: own.default if own.default_factory is msgspec.NODEFAULT else own.default_factory()
        for own in fields(cls)
    }


def _plain_of(value: Any) -> Any:
    match value:
        case Document():
            return value.as_json()
        case dict():
            return {key: _plain_of(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain_of(one) for one in value]
    return msgspec.to_builtins(value, order="deterministic", enc_hook=str)


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
