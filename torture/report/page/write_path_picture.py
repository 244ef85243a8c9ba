"""The picture of the write path: a synchronous and an asynchronous write, with their counts.

Like the page's charts it is inline SVG in the page's own colours. Its description has every number in
words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from torture.facts.speed.write_path import Traffic, WritePath
from torture.facts.speed.written_places import PathPlace
from torture.report.figures.wording import latency_in_words

_WIDTH, _HEIGHT = 900, 506
_FONT = "Arial, Liberation Sans, Helvetica, sans-serif"
_LEFT, _RIGHT, _LOWEST = 20, 880, 396
_CLIENT, _LINK, _ARC, _LOG, _GROUP, _DISKS = 70, 215, 375, 540, 690, 825
_STATIONS = (
    (_CLIENT, "client", "its cache"),
    (_LINK, "link", ""),
    (_ARC, "NAS's memory", "ARC"),
    (_GROUP, "transaction", "group"),
    (_DISKS, "disks", "of the pool"),
)
_US_MAX_MS = 0.0995
_STYLE = Path(__file__).parent / "templates" / "style.css"
_COLOURS = re.compile(r":root \{.*?\n\}\n@media [^\n]*\n.*?\n\}\n", re.DOTALL)
_PLACES = (
    (PathPlace.ZIL_SLOG, "ZIL on the SLOG", "rolled-back"),
    (PathPlace.ZIL_POOL, "ZIL in the pool", "rolled-back"),
    (PathPlace.POINTED, "data the ZIL points to", "intact"),
    (PathPlace.DATA, "data", "link"),
    (PathPlace.METADATA, "metadata", "unavailable"),
    (PathPlace.UBERBLOCK, "uberblocks", "unrepairable"),
)
_NOTE = (
    "Times are without slow motion; bars of time have one scale. These jobs write past the "
    "client's cache (O_DIRECT)."
)
_LATER = (PathPlace.DATA, PathPlace.METADATA, PathPlace.UBERBLOCK)


@dataclass(frozen=True, kw_only=True, slots=True)
class PathOfJob:
    """A counted job for the picture."""

    words: str
    """Its row or cell."""
    path: WritePath
    mean_ms: float
    """Of one operation, in real time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """A part of a bar."""

    words: str
    size: float
    number: str
    colour: str


def write_path_picture(synchronous: PathOfJob, asynchronous: PathOfJob | None = None) -> str:
    """An inline SVG of the path that writes take, with the times and bytes of these jobs."""
    longest_ms = max(synchronous.mean_ms, asynchronous.mean_ms if asynchronous else 0.0)
    pieces = [
        *_stations(synchronous.path),
        *_synchronous_lane(synchronous, longest_ms),
        *_asynchronous_lane(asynchronous, longest_ms),
        *_group_lane(synchronous.path),
        *_bytes_lane(synchronous.path),
        _text(_LEFT, _HEIGHT - 10, _NOTE, more=_SOFT),
    ]
    said = escape(_in_words(synchronous, asynchronous))
    return (
        f'<svg role="img" aria-labelledby="path-title path-said" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" xmlns="http://www.w3.org/2000/svg" '
        f'font-family="{_FONT}" font-size="12" fill="currentColor">'
        f'<title id="path-title">the path of a write</title><desc id="path-said">{said}</desc>'
        f"{_ARROWHEAD}{''.join(pieces)}</svg>\n"
    )


def alone(svg: str) -> str:
    """The picture as a file of its own: with the page's colours and background."""
    found = _COLOURS.search(_STYLE.read_text())
    assert found is not None, "the page's style begins with its colours"
    style = f"<style>{found[0]}svg {{ background: var(--page); color: var(--ink); }}</style>"
    return svg.replace("<title ", f"{style}<title ", 1)


_ARROWHEAD = (
    '<defs><marker id="path-end" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
    'markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z"/></marker></defs>'
)


def _text(x: float, y: float, words: str, *, anchor: str = "start", more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" stroke="var(--page)" stroke-width="4" '
        f'paint-order="stroke"{more}>{escape(words)}</text>'
    )


_SOFT = ' style="fill:var(--soft)"'
_BOLD = ' font-weight="bold"'


def _line(x1: float, x2: float, y: float, *, is_back: bool = False) -> str:
    dashes = ' stroke-dasharray="5 4"' if is_back else ""
    return (
        f'<line x1="{x1}" y1="{y}" x2="{x2}" y2="{y}" stroke="currentColor" stroke-width="1.5" '
        f'marker-end="url(#path-end)"{dashes}/>'
    )


def _dot(x: float, y: float, colour: str = "") -> str:
    fill = f' style="fill:var(--{colour})"' if colour else ""
    return f'<circle cx="{x}" cy="{y}" r="4.5"{fill}/>'


def _stations(path: WritePath) -> list[str]:
    where = "SLOG" if PathPlace.ZIL_SLOG in path.places else "in the pool"
    pieces = []
    for x, name, below in (*_STATIONS, (_LOG, "intent log", where)):
        pieces.append(
            f'<line x1="{x}" y1="40" x2="{x}" y2="{_LOWEST}" style="stroke:var(--line)"/>'
            + _text(x, 16, name, anchor="middle", more=_BOLD)
            + _text(x, 32, below, anchor="middle", more=_SOFT)
        )
    return pieces


def _lane_title(y: float, words: str, job: PathOfJob | None) -> str:
    own = f": {job.words}" if job is not None else ""
    return _text(_LEFT, y, words, more=_BOLD).replace(
        "</text>",
        f'<tspan font-weight="normal" style="fill:var(--soft)">{escape(own)}</tspan></text>',
    )


def _synchronous_lane(job: PathOfJob, longest_ms: float) -> list[str]:
    path = job.path
    top = 88
    log = path.places.get(PathPlace.ZIL_SLOG) or path.places.get(PathPlace.ZIL_POOL)
    pieces = [
        _lane_title(64, "synchronous write", job),
        _line(_CLIENT, _LOG - 6, top),
        *(_dot(x, top) for x in (_CLIENT, _LINK, _ARC)),
        _dot(_LOG, top, "rolled-back"),
        _line(_LOG, _CLIENT + 6, top + 22, is_back=True),
        _text(_LEFT + 60, top + 37, f"acknowledged after {_time(job.mean_ms)}", more=_SOFT),
    ]
    if log is not None:
        each = f"{_per_operation(path, log)} a write, {_time(log.median_ms)}"
        flushes = f"{path.flushes_per_operation or 0:.2g} flushes a write"
        pieces += [
            _text(_LOG + 14, top + 4, each),
            _text(_LOG + 14, top + 22, f"{flushes}{_flush_time(path)}"),
        ]
    if path.wait is not None:
        wait = path.wait
        parts = [
            _part("ZIL", wait.zil_ms, "rolled-back"),
            _part("ZIL and flush", wait.both_ms, "back-deep"),
            _part("flush", wait.flush_ms, "corrupted"),
            _part("client, link, NAS", wait.rest_ms, "inconclusive"),
        ]
        pieces += _bar(top + 50, parts, longest_ms)
    return pieces


def _asynchronous_lane(job: PathOfJob | None, longest_ms: float) -> list[str]:
    """The path also where no job was measured on it."""
    top = 232
    answer, bar = "acknowledged from memory; no time was measured", []
    if job is not None:
        answer = f"acknowledged after {_time(job.mean_ms)}"
        parts = [_part("client, link, NAS", job.mean_ms, "inconclusive")]
        bar = _bar(top + 50, parts, longest_ms)
    return [
        _lane_title(208, "asynchronous write", job),
        _line(_CLIENT, _ARC - 6, top),
        *(_dot(x, top) for x in (_CLIENT, _LINK, _ARC)),
        _line(_ARC, _CLIENT + 6, top + 22, is_back=True),
        _text(_LEFT + 60, top + 37, answer, more=_SOFT),
        *bar,
    ]


def _group_lane(path: WritePath) -> list[str]:
    top = 342
    parts = [
        f"{name}: {_count(path.places[place])}"
        for place, name, _colour in _PLACES
        if place in _LATER and place in path.places
    ]
    return [
        _lane_title(top + 4, "later, both", None),
        _line(_ARC, _DISKS - 6, top),
        _dot(_ARC, top),
        _dot(_GROUP, top),
        _dot(_DISKS, top, "link"),
        *(
            _text(_ARC + 12, top + 19 + 16 * number, words, more=_SOFT)
            for number, words in enumerate(parts)
        ),
    ]


def _bytes_lane(path: WritePath) -> list[str]:
    """The bytes on all disks for each byte of the synchronous job."""
    if not path.client_bytes:
        return []
    parts = [
        _Part(words=name, size=share, number=f"{share:.2g}", colour=colour)
        for place, name, colour in _PLACES
        if place in path.places and (share := path.places[place].bytes / path.client_bytes)
    ]
    title = (
        f"the synchronous job's disks: {path.amplification or 0:.2f} bytes for each of the client's"
    )
    whole = max(sum(part.size for part in parts), 1.0)
    return [_lane_title(422, title, None), *_bar(434, parts, whole)]


def _part(words: str, ms: float, colour: str) -> _Part:
    return _Part(words=words, size=ms, number=_time(ms), colour=colour)


def _bar(top: float, parts: Sequence[_Part], whole: float) -> list[str]:
    """A stacked bar, its key below it: only the key has room for small parts."""
    pieces, x, key = [], float(_LEFT), float(_LEFT)
    for part in (part for part in parts if part.size > 0):
        width = part.size / whole * (_RIGHT - _LEFT) if whole else 0.0
        fill = f'style="fill:var(--{part.colour})"'
        words = f"{part.words} {part.number}"
        pieces += [
            f'<rect x="{x:.1f}" y="{top}" width="{max(width, 1):.1f}" height="16" {fill}/>',
            f'<rect x="{key:.1f}" y="{top + 24}" width="10" height="10" {fill}/>',
            _text(key + 15, top + 33, words),
        ]
        x, key = x + width, key + 35 + 6.4 * len(words)
    return pieces


def _time(ms: float) -> str:
    """E.g. `25 us`, `0.42 ms`, `12 ms`."""
    return latency_in_words(ms) if ms >= _US_MAX_MS else f"{ms * 1000:.0f} us"


def _per_operation(path: WritePath, traffic: Traffic) -> str:
    """The bytes of a place for one operation, e.g. `68 KiB`."""
    return f"{traffic.bytes / 1024 / (path.client_operations or 1):.3g} KiB"


def _count(traffic: Traffic) -> str:
    """E.g. `120 writes, 5.1 ms each`."""
    timed = f", {_time(traffic.median_ms)} each" if traffic.timed else ""
    return f"{traffic.requests:,} write{'s' if traffic.requests != 1 else ''}{timed}"


def _flush_time(path: WritePath) -> str:
    """The median time of the disk that is flushed most."""
    timed = [traffic for traffic in path.flushes.values() if traffic.timed]
    if not timed:
        return ""
    return f", {_time(max(timed, key=lambda one: one.timed).median_ms)}"


def _in_words(synchronous: PathOfJob, asynchronous: PathOfJob | None) -> str:
    """The picture for readers who do not see it."""
    path = synchronous.path
    said = [
        f"A synchronous write ({synchronous.words}) goes from the client over the link into the NAS's "
        f"memory and the intent log. It is acknowledged after {_time(synchronous.mean_ms)}."
    ]
    if (wait := path.wait) is not None:
        said.append(
            f"The log takes {_time(wait.zil_ms)} of it, flushes "
            f"{_time(wait.flush_ms)}, both at once {_time(wait.both_ms)}, and "
            f"client, link and NAS {_time(wait.rest_ms)}."
        )
    if asynchronous is not None:
        said.append(
            f"An asynchronous write ({asynchronous.words}) is acknowledged from memory after "
            f"{_time(asynchronous.mean_ms)}."
        )
    written = ", ".join(
        f"{name} {_count(path.places[place])}"
        for place, name, _colour in _PLACES
        if place in path.places
    )
    said.append(f"On disks, with the transaction groups that follow: {written}.")
    return " ".join(said)
