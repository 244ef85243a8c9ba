"""Documents that are exactly as this version writes them: they are read in one pass.

Reports read a hundred thousand documents. A document's twin has its fields, properties and methods, and
is made in less than half the time. It is for reading only: no twin is changed, compared or written.
"""

from __future__ import annotations

import types
from dataclasses import MISSING
from functools import reduce
from operator import or_
from typing import Any, Union, cast, get_args, get_origin

from torture.facts.evidence.documents import (
    NOTHING,
    OTHERS,
    Document,
    Own,
    fields_of,
    plain_of,
    values_in,
)

try:
    import msgspec
except ModuleNotFoundError:  # as in `torture.facts.evidence.documents`
    msgspec = None  # type: ignore[assignment]

_DECODERS: dict[Any, Any] = {}
_DEPTH = 5
"""The levels of plain data in a document; only the patient reader measures how deep other data is."""


def exactly(cls: type[Own], raw: bytes) -> Own | None:
    """The twin of a JSON text that is exactly as this version writes it; None for another text."""
    if cls not in _DECODERS:
        _DECODERS[cls] = msgspec.json.Decoder(_exact(cls))
    try:
        return cast(Own, _DECODERS[cls].decode(raw))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def document_of(cls: type[Own], twin: Own) -> Own:
    """The document that a twin stands for; a document stands for itself."""
    return twin if isinstance(twin, cls) else msgspec.convert(twin, cls, from_attributes=True)


def _exact(cls: Any, outside: tuple[Any, ...] = ()) -> Any:
    """A type with the same fields that refuses unknown fields, and texts without those always written."""
    outside = (*outside, cls)
    shape: list[Any] = []
    for own in fields_of(cls):
        if own.name == OTHERS:
            continue
        hint = _exact_in(own.type, outside)
        if own.default is MISSING or plain_of(own.default) not in NOTHING:
            shape.append((own.name, hint))
        else:
            empty = own.default if own.default_is is None else _exact(own.default_is, outside)()
            shape.append((own.name, hint, empty))
    namespace = {
        name: own for name, own in vars(cls).items()
        if isinstance(own, property | types.FunctionType) and not name.startswith("__")
    }  # fmt: skip
    most = {own.name: own.extra["most"] for own in fields_of(cls) if "most" in own.extra}

    def check(exact: Any) -> None:
        for name, value in most.items():
            if getattr(exact, name) > value:
                raise ValueError("it is too large")

    return msgspec.defstruct(
        f"Exact{cls.__name__}", shape, namespace=namespace | ({"__post_init__": check} if most else {}),
        frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False,
    )  # fmt: skip


def _exact_in(hint: Any, outside: tuple[Any, ...]) -> Any:
    """The type of a field, with exact types for documents; a document is twice inside itself at most."""
    if hint is Any:
        return _plain(_DEPTH)
    if isinstance(hint, type) and not get_args(hint):
        if not issubclass(hint, Document):
            return hint
        return None if outside.count(hint) > 1 else _exact(hint, outside)
    if get_origin(hint) in (Union, types.UnionType):
        return reduce(or_, [_exact_in(one, outside) for one in get_args(hint)])
    of = values_in(hint)
    return hint if of is None else types.GenericAlias(dict, (str, _exact_in(of, outside)))


def _plain(depth: int) -> Any:
    """The type of plain data that is no deeper."""
    scalar: Any = None | bool | int | float | str
    if not depth:
        return scalar
    inner = _plain(depth - 1)
    return scalar | types.GenericAlias(list, (inner,)) | types.GenericAlias(dict, (str, inner))
