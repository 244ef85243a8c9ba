"""The picture of the write path: where a write waits, and which bytes reach the disks, with counts.

Each bar is a chart in the page's own colours; its key has the numbers, as small parts have no room. The
label for screen readers has every number in words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from torture.features.speed.jobs.write_path import PathPlace, Traffic, WritePath
from torture.report.figures.wording import latency_in_words
from torture.report.page.vega import (
    TEMPLATES,
    Frame,
    as_svg,
    chart_of,
    colour_scale,
    layer_of,
    nominal,
    numeric,
)

_FRAME = Frame(width_px=900, names_px=0, spare_px=12)
_US_MAX_MS = 0.0995
_STYLE = TEMPLATES / "style.css"
_COLOURS = re.compile(r":root \{.*?\n\}\n@media [^\n]*\n.*?\n\}\n", re.DOTALL)
_PLACES = (
    (PathPlace.ZIL_SLOG, "ZIL on the SLOG", "rolled-back"),
    (PathPlace.ZIL_POOL, "ZIL in the pool", "rolled-back"),
    (PathPlace.POINTED, "data the ZIL points to", "intact"),
    (PathPlace.DATA, "data", "link"),
    (PathPlace.METADATA, "metadata", "unavailable"),
    (PathPlace.UBERBLOCK, "uberblocks", "unrepairable"),
)
_REST, _REST_COLOUR = "client, link, NAS", "inconclusive"
_TO_MEMORY = "client, link, the NAS's memory"
_NOTE = "Times are without slow motion. These jobs write past the client's cache (O_DIRECT)."


@dataclass(frozen=True, kw_only=True, slots=True)
class PathOfJob:
    """A counted job for the picture."""

    words: str
    """Its row or cell."""
    path: WritePath
    mean_ms: float
    """Of one operation, in real time."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a bar."""

    words: str
    size: float
    colour: str


def write_path_picture(synchronous: PathOfJob, asynchronous: PathOfJob | None = None) -> str:
    """An SVG of the times and bytes of these jobs."""
    path = synchronous.path
    longest_ms = max(synchronous.mean_ms, asynchronous.mean_ms if asynchronous else 0.0)
    bars = [
        _bar(
            f"synchronous write: {synchronous.words}",
            [f"{_TO_MEMORY}, its intent log: {_acknowledged(synchronous)}", *_log_in_words(path)],
            _waits_of(synchronous),
            longest_ms,
        )
    ]
    if asynchronous is not None:
        words = f"asynchronous write: {asynchronous.words}"
        lines = [f"{_TO_MEMORY}: {_acknowledged(asynchronous)}"]
        bars.append(_bar(words, lines, _waits_of(asynchronous), longest_ms))
    if path.client_bytes:
        share = path.amplification or 0.0
        words = f"the synchronous job's disks: {share:.2f} bytes for each of the client's"
        bars.append(_bar(words, _written_in_words(path), _bytes_of(path), share))
    bars[-1]["title"]["subtitle"].append(_NOTE)
    chart = {"vconcat": bars, "spacing": 34, "resolve": {"scale": {"color": "independent"}}}
    return as_svg(chart, _FRAME, escape(" ".join(_in_words(synchronous, asynchronous))))


def alone(svg: str) -> str:
    """The picture as a file of its own: with the page's colours and background."""
    found = _COLOURS.search(_STYLE.read_text())
    assert found is not None, "the page's style begins with its colours"
    style = f"<style>{found[0]}svg {{ background: var(--page); color: var(--ink); }}</style>"
    return svg.replace(">", f">{style}", 1)


def _bar(title: str, lines: list[str], parts: Sequence[_Part], whole: float) -> dict[str, Any]:
    """A stacked bar with its key below it."""
    rows = [
        {"part": part.words, "size": part.size, "order": order} for order, part in enumerate(parts)
    ]
    scale = colour_scale({part.words: part.colour for part in parts})
    size = numeric("size", axis=None, scale={"domain": [0, whole or 1], "nice": False})
    colour = nominal("part", scale=scale, legend={"orient": "bottom", "columnPadding": 20})
    bar = layer_of({"type": "bar", "height": 16}, x=size, color=colour, order=numeric("order"))
    head = {"anchor": "start", "color": "currentColor", "subtitleColor": "var(--soft)"}
    return chart_of(rows, [bar]) | {
        "title": head | {"text": title, "subtitle": lines},
        "width": _FRAME.width_px - 40,
        "height": 18,
    }


def _waits_of(job: PathOfJob) -> list[_Part]:
    """The parts of an operation's time; of an asynchronous one nothing is the log's."""
    wait = job.path.wait
    if wait is None:
        return [_timed(_REST, job.mean_ms, _REST_COLOUR)]
    parts = [
        _timed("ZIL", wait.zil_ms, "rolled-back"),
        _timed("ZIL and flush", wait.both_ms, "back-deep"),
        _timed("flush", wait.flush_ms, "corrupted"),
        _timed(_REST, wait.rest_ms, _REST_COLOUR),
    ]
    return [part for part in parts if part.size > 0]


def _timed(words: str, ms: float, colour: str) -> _Part:
    return _Part(f"{words} {_time(ms)}", ms, colour)


def _bytes_of(path: WritePath) -> list[_Part]:
    """The bytes on all disks for each byte of the client."""
    shares = {place: own.bytes / path.client_bytes for place, own in path.places.items()}
    return [
        _Part(f"{words} {shares[place]:.2g}", shares[place], colour)
        for place, words, colour in _PLACES
        if shares.get(place)
    ]


def _acknowledged(job: PathOfJob) -> str:
    return f"acknowledged after {_time(job.mean_ms)}"


def _log_in_words(path: WritePath) -> list[str]:
    """E.g. `68 KiB a write into the intent log, 0.16 ms; 0.97 flushes a write, 50 us`."""
    log = path.places.get(PathPlace.ZIL_SLOG) or path.places.get(PathPlace.ZIL_POOL)
    if log is None:
        return []
    each = f"{log.bytes / 1024 / (path.client_operations or 1):.3g} KiB"
    timed = [traffic for traffic in path.flushes.values() if traffic.timed]
    took = f", {_time(max(timed, key=lambda one: one.timed).median_ms)}" if timed else ""
    flushes = f"{path.flushes_per_operation or 0:.2g} flushes a write{took}"
    return [f"{each} a write into the intent log, {_time(log.median_ms)}; {flushes}"]


def _written_in_words(path: WritePath) -> list[str]:
    """E.g. `data: 120 writes, 5.1 ms each`: a line for each place."""
    return [
        f"{words}: {_count(path.places[place])}"
        for place, words, _ in _PLACES
        if place in path.places
    ]


def _time(ms: float) -> str:
    """E.g. `25 us`, `0.42 ms`, `12 ms`."""
    return latency_in_words(ms) if ms >= _US_MAX_MS else f"{ms * 1000:.0f} us"


def _count(traffic: Traffic) -> str:
    """E.g. `120 writes, 5.1 ms each`."""
    timed = f", {_time(traffic.median_ms)} each" if traffic.timed else ""
    return f"{traffic.requests:,} write{'s' if traffic.requests != 1 else ''}{timed}"


def _in_words(synchronous: PathOfJob, asynchronous: PathOfJob | None) -> list[str]:
    """The picture for readers who do not see it."""
    said = []
    for kind, job in (("A synchronous", synchronous), ("An asynchronous", asynchronous)):
        if job is not None:
            parts = ", ".join(part.words for part in _waits_of(job))
            said.append(f"{kind} write ({job.words}) is {_acknowledged(job)}: {parts}.")
    path = synchronous.path
    said += [f"{line}." for line in (*_log_in_words(path), *_written_in_words(path))]
    return said
