"""Text from records and runs, which may hold anything, made fit to be printed; JSON, to be used."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

_NESTING_MAX = 100
"""Of objects and lists; what is deeper would overflow those who walk through it."""

_UNPRINTABLE = re.compile(
    "[\0-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
"""Controls, halves of surrogate pairs, what is no character of XML, and what turns or hides text."""

_NOT_PLAIN = re.compile(r"[^\w ,.;:()%/'\"+-]|_|:(?! )")
"""What could mean something in Markdown or HTML; a colon within a word makes a link, or an emoji."""


def shortened(text: str, most: int = 60) -> str:
    """Text on one line, and not too much of it."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def printable(text: str) -> str:
    """Text on one line, without what a terminal, XML or a reader's eye could trip over."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))


def escaped(text: str) -> str:
    """Text as Markdown that shows it, and nothing else, on one line, also in a table.

    A character given by its number is never syntax (CommonMark 0.31, section 2.5), also not of
    GitHub's links without brackets, once `www.` is broken up, too.
    """
    plain = _NOT_PLAIN.sub(lambda found: f"&#{ord(found[0])};", printable(text))
    plain = re.sub(r"(?i)\b(www)\.", r"\1&#46;", plain)
    # at the beginning of a line a list's mark or a number would be syntax
    return re.sub(r"^([+-]|\d+(?=[.)]))", lambda found: _as_numbers(found[0]), plain)


def _as_numbers(text: str) -> str:
    return "".join(f"&#{ord(one)};" for one in text)


def strict_json(raw: bytes) -> Any:
    """The data of a JSON text: no NaN, nothing infinite or too deep, and text that can be written.

    Raises `ValueError` that says what it is not.
    """
    try:
        data = _DECODER.decode(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not JSON") from error
    if raw.count(b"{") + raw.count(b"[") > _NESTING_MAX and _nesting(data) > _NESTING_MAX:
        raise ValueError("it is nested too deeply")
    # half a surrogate pair is JSON, but no text that could be written anywhere
    if b"\\ud" in raw or b"\\uD" in raw:
        data = _without_surrogates(data)
    return data


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
        inside = [one.values() if isinstance(one, dict) else one for one in level]
        level = [one for many in inside for one in many if isinstance(one, dict | list)]
    return depth


def _without_surrogates(data: Any) -> Any:
    match data:
        case str():
            return data.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_without_surrogates(one) for one in data]
        case dict():
            return {_without_surrogates(key): _without_surrogates(one) for key, one in data.items()}
    return data
