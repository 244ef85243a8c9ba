"""Documents: values that are written as JSON, and read back from files of any origin.

msgspec decodes a document strictly. If that fails, each field is decoded alone. A field of a wrong
type is left out; a wrong figure refuses the whole document.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from typing import (
    Annotated,
    Any,
    Generic,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

try:
    import msgspec
except ModuleNotFoundError:  # `tools/run` reads the names of cells before there is an environment
    msgspec = None  # type: ignore[assignment]

COUNT_MAX = 2**63 - 1
FLOAT_MAX = sys.float_info.max
_SEED_MAX = 2**64 - 1
NAME_CHARACTERS_MAX = 1000


def limits(**said: Any) -> Any:
    """Limits and marks of a type, as `msgspec.Meta` takes them."""
    return tuple(said) if msgspec is None else msgspec.Meta(**said)


Count = Annotated[int, limits(ge=0, le=COUNT_MAX)]
Number = Annotated[float, limits(ge=-COUNT_MAX, le=COUNT_MAX)]
Finite = Annotated[float, limits(ge=-FLOAT_MAX, le=FLOAT_MAX)]
Measure = Annotated[float, limits(ge=0, le=FLOAT_MAX)]
Seed = Annotated[
    int, limits(ge=0, extra={"most": _SEED_MAX}, extra_json_schema={"maximum": _SEED_MAX})
]
"""64 bits, more than msgspec's own bounds allow."""

Text = Annotated[str, limits(min_length=1)]
Name = Annotated[
    str,
    limits(min_length=1, max_length=NAME_CHARACTERS_MAX, extra={"refused": "is no name"}),
]
Figure = Annotated[int, limits(ge=0, le=COUNT_MAX, extra={"refused": "is no count", "due": True})]
"""A count in a rate. A wrong one refuses its document; a missing one is remarked."""
MeasuredFigure = Annotated[Measure | None, limits(extra={"refused": "is no time"})]

OTHERS = "others"
"""The field for the fields of another version of the suite."""
_UNWRITTEN = "unwritten"
NOTHING: tuple[Any, ...] = (None, "", (), {}, [])


def unwritten(default: Any) -> Any:
    """A field of a document that is neither written nor read nor compared."""
    return field(default=default, compare=False, metadata={_UNWRITTEN: True})


class RefusedError(ValueError):
    """The data are no document of that type; the message says why."""


class _LackingError(RefusedError):
    """A required field is missing: an optional part of a document is then left out."""


class Document:
    """A dataclass that is written as JSON.

    A field `others` of a subclass keeps the fields of another version, and writes them again.
    """

    __slots__ = ()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the fields that are written and read."""
        return tuple(own.name for own in fields_of(cls))

    def as_json(self) -> dict[str, Any]:
        """The document as plain data; `from_json` takes it back. Empty fields are left out."""
        plain: dict[str, Any] = plain_of(self)
        return plain

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The fields of the right type. Raises `RefusedError`."""
        return read_document(cls, data).document


Own = TypeVar("Own", bound=Document)
_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class Read(Generic[Own]):
    """A document, and its faulty fields by their paths in it."""

    document: Own
    left_out: tuple[str, ...] = ()
    """Fields of another type."""
    missing: tuple[str, ...] = ()
    """Figures that count as 0."""


def read_document(cls: type[Own], data: Any) -> Read[Own]:
    """The document in plain data of JSON. Raises `RefusedError` where there is none."""
    if not isinstance(data, Mapping):
        raise RefusedError("it is not a JSON object")
    sifted = _Sifted()
    data = sifted.of(cls, data)
    missing = tuple(sifted.missing)
    if sifted.is_within:
        try:
            return Read(document=msgspec.convert(data, cls), missing=missing)
        except msgspec.ValidationError:
            pass
    left_out: list[str] = []
    document = _believed(cls, data, left_out, "")
    return Read(document=document, left_out=tuple(dict.fromkeys(left_out)), missing=missing)


def strictly(cls: type[_Value], data: Any) -> _Value:
    """The value of another dataclass in plain data. Raises `ValueError`."""
    return msgspec.convert(data, cls, str_keys=True)


def document_or_none(cls: type[Own], data: Any) -> Own | None:
    """The document; None where there is none."""
    try:
        return cls.from_json(data)
    except RefusedError:
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Field:
    name: str
    type: Any
    default: Any
    """`MISSING` where the field is required."""
    inner: type[Document] | None
    """The type of the document in this field, if it holds one."""
    default_is: type[Document] | None
    """The type of the document that is the default."""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shape:
    """Of a document's type; reports read a hundred thousand documents."""

    written: frozenset[str]
    """The names of the fields, without that for the fields of another version."""
    has_others: bool
    looked_at: tuple[_Field, ...]
    """The fields that are more than their type: documents, and figures with marks."""


@cache
def _missing_without(cls: type[Document]) -> tuple[str, ...]:
    """The figures that are missing where the whole document is."""
    sifted = _Sifted()
    sifted.of(cls, {})
    return tuple(sifted.missing)


_KNOWN: dict[Any, tuple[_Field, ...]] = {}
_SHAPES: dict[Any, _Shape] = {}


def _shape_of(cls: Any) -> _Shape:
    if cls not in _SHAPES:
        known = fields_of(cls)
        names = {own.name for own in known}
        _SHAPES[cls] = _Shape(
            written=frozenset(names - {OTHERS}),
            has_others=OTHERS in names,
            looked_at=tuple(
                own
                for own in known
                if own.inner is not None
                or own.default_is is not None
                or not own.extra.keys().isdisjoint({"due", "most"})
            ),
        )
    return _SHAPES[cls]


def fields_of(cls: Any) -> tuple[_Field, ...]:
    """The fields of a document's type that are written and read."""
    if cls not in _KNOWN:
        _KNOWN[cls] = tuple(_looked_at(cls))
    return _KNOWN[cls]


def _looked_at(cls: Any) -> Iterator[_Field]:
    hints = get_type_hints(cls, include_extras=True)
    for own in fields(cls):
        if own.metadata.get(_UNWRITTEN):
            continue
        extra: dict[str, Any] = {}
        for meta in getattr(hints[own.name], "__metadata__", ()):
            extra |= meta.extra or {}
        default = own.default if own.default_factory is MISSING else own.default_factory()
        yield _Field(
            name=own.name,
            type=hints[own.name],
            default=default,
            default_is=type(default) if isinstance(default, Document) else None,
            inner=document_in(hints[own.name]),
            extra=extra,
        )


def document_in(hint: Any) -> type[Document] | None:
    """The type of the document in a field of this type; None where it is another thing, or several."""
    if isinstance(hint, type) and not get_args(hint):
        return hint if issubclass(hint, Document) else None
    if get_origin(hint) in (Annotated, Union, types.UnionType):
        return next(filter(None, map(document_in, get_args(hint))), None)
    return None


def values_in(hint: Any) -> Any:
    """The type of the values of an object; None for others."""
    return get_args(hint)[1] if get_origin(hint) is dict else None


class _Sifted:
    """Puts a document's unknown fields, and those within it, aside; collects the missing figures."""

    def __init__(self) -> None:
        self.missing: list[str] = []
        self.is_within = True

    def of(self, cls: type[Document], said: Mapping[str, Any]) -> dict[str, Any]:
        data = dict(said)
        shape = _shape_of(cls)
        if unknown := data.keys() - shape.written:
            others = {key: data.pop(key) for key in list(data) if key in unknown}
            if shape.has_others:
                data[OTHERS] = others
        for own in shape.looked_at:
            value = data.get(own.name)
            if own.inner is not None and (type(value) is dict or isinstance(value, Mapping)):
                data[own.name] = self.of(own.inner, value)
            elif own.name not in data and own.default_is is not None:
                self.missing += _missing_without(own.default_is)
            elif "due" in own.extra and own.name not in data:
                self.missing.append(own.name)
            elif "most" in own.extra:
                self.is_within &= not isinstance(value, int) or value <= own.extra["most"]
        return data


def _believed(cls: type[Own], data: Mapping[str, Any], left_out: list[str], path: str) -> Own:
    """The fields of the right type."""
    values: dict[str, Any] = {}
    for own in fields_of(cls):
        if own.name not in data:
            if own.default is MISSING:
                raise _LackingError(f"it has no {own.name}")
            continue
        value = data[own.name]
        try:
            values[own.name] = _converted(value, own.type, own.extra)
        except ValueError as error:
            if "refused" in own.extra:
                raise RefusedError(f"{own.name} {own.extra['refused']}") from error
            for kept in _kept(own, value, left_out, path + own.name):
                values[own.name] = kept
            if own.name not in values and own.default is MISSING:
                raise _LackingError(f"{own.name} has a wrong type or value") from error
    return cls(**values)


def _kept(own: _Field, value: Any, left_out: list[str], path: str) -> Iterator[Any]:
    """The good part of a field of a wrong type: none, or one value."""
    if own.inner is not None and isinstance(value, Mapping):
        try:
            yield _believed(own.inner, value, left_out, f"{path}.")
        except _LackingError:
            if own.default is MISSING:
                raise
            left_out.append(path)
        return
    if value is not None:
        left_out.append(path)
    if (of := values_in(own.type)) is not None and isinstance(value, Mapping):
        yield dict(_kept_of(of, value))


def _kept_of(of: Any, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    inner = document_in(of)
    for key, one in value.items():
        try:
            yield key, _converted(one, of)
        except ValueError:
            if inner is not None and isinstance(one, Mapping):
                yield key, _believed(inner, one, [], "")


def _converted(value: Any, hint: Any, extra: Mapping[str, Any] | None = None) -> Any:
    converted = msgspec.convert(value, hint)
    if extra and isinstance(converted, int) and converted > extra.get("most", converted):
        raise ValueError("it is too large")
    return converted


def plain_of(value: Any) -> Any:
    """The value as plain data of JSON, without the empty fields of documents."""
    if is_dataclass(value) and not isinstance(value, type):
        known = ((own, getattr(value, own.name)) for own in fields_of(type(value)))
        plain = {
            own.name: plain_of(said)
            for own, said in known
            if not (said == own.default and plain_of(said) in NOTHING)
        }
        return plain | plain.pop(OTHERS, {})
    if isinstance(value, dict):
        return {key: plain_of(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_of(one) for one in value]
    return msgspec.to_builtins(value)
