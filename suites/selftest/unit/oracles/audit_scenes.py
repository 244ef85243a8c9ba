"""Scenes of the audit's tests: a recording in words, one step after the other.

A step is `[name=]verb [content] [options]`. `lost=write data on b at 8` writes to disk b at 8 MiB,
and is `lost` from there on. A place or length is in MiB, `8K` in KiB, `512B` in bytes, or their sum:
`8+512B`. The verbs:

- `write` and `submit`, with a content, and perhaps `fua`;
- `flush`, `flush b`, `failing flush`, `flush begins`; `end NAME` and `fail NAME` of a submission;
- `trim` and `zero` with a length;
- `begin` and `done` with the number of an operation of the load;
- `ask` for a write of the client at a place, perhaps `forced` or `double`, or for a `flush`;
- `answer NAME` to the client;
- `group` with a number: a flush, the uberblock of a transaction group, a flush;
- `later` with milliseconds;
- `is` with the phase that a cut would meet now;
- `accuses` with the names or places that the audit accuses now, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from suites.selftest.unit.audit_story import BLOCK, METADATA, Story, label, uberblock, zil_block
from torture.facts.axes.sync import Sync
from torture.facts.evidence.requests import BlockRequest, FileRequest
from torture.oracles.audit.invariants import Invariant

_CONTENTS = {"data": BLOCK, "metadata": METADATA, "zil": zil_block(), "label": label()}

Accused = Callable[[Story], Sequence[int]]
"""The events, or the places in bytes, that the audit of a story accuses."""


def accused_of(
    invariant: Invariant, *, sync: Sync = Sync.STANDARD, has_others: bool = False
) -> Accused:
    """By findings of this kind: the event of each, and the writes that it needs.

    `has_others`: there may be findings of other kinds.
    """

    def accused(story: Story) -> list[int]:
        found = story.findings(sync=sync)
        own = [finding for finding in found if finding.invariant is invariant]
        assert has_others or own == found
        return [event for finding in own for event in (finding.event, *finding.uncovered)]

    return accused


Verbs = Mapping[str, Callable[..., Any]]
"""Further verbs: each is called with the words behind it, and gives its event or request, if any."""


class Stage:
    """Plays scenes on a story, with the contents and the further verbs of one file of tests."""

    def __init__(
        self,
        story: Story,
        *,
        accused: Accused | None = None,
        contents: Mapping[str, bytes] | None = None,
        verbs: Verbs | None = None,
    ) -> None:
        self.story = story
        self._accused = accused
        self._contents = _CONTENTS | dict(contents or {})
        self._verbs = verbs or {}
        self._events: dict[str, int] = {}
        self._requests: dict[str, BlockRequest | FileRequest] = {}
        self._checks = 0

    def play(self, scene: str) -> None:
        for step in scene.split(","):
            name, _, words = step.strip().rpartition("=")
            self._step(name, *words.split())
        assert self._checks, "a scene has to show something"

    def _step(self, name: str, verb: str, *words: str) -> None:
        match [verb, *words]:
            case ["is", phase]:
                self._checks += 1
                assert self.story.phase() == phase, f"after {len(self.story.events)} events"
            case ["accuses", *names]:
                self._checks += 1
                assert self._accused is not None
                wanted = [
                    self._events[one] if one in self._events else _bytes(one) for one in names
                ]
                assert list(self._accused(self.story)) == wanted
            case ["answer", request]:
                self.story.completes(self._requests[request])
            case _:
                done = (
                    self._verbs[verb](*words) if verb in self._verbs else self._does(verb, *words)
                )
                if isinstance(done, int):
                    self._events[name] = done
                elif done is not None:
                    self._requests[name] = done

    def _does(self, verb: str, *words: str) -> int | BlockRequest | None:
        story = self.story
        match [verb, *words]:
            case ["write", content, *options]:
                return story.write(self._content(content), **_options(options))
            case ["submit", content, *options]:
                return story.submit(self._content(content), **_options(options))
            case ["trim", length, *options]:
                return story.trim(length=_bytes(length), **_options(options))
            case ["zero", length, *options]:
                return story.zero(length=_bytes(length), **_options(options))
            case ["flush", "begins"]:
                return story.begin_flush()
            case ["flush", *disk]:
                story.flush(disk=disk.count("b"))
            case ["failing", "flush"]:
                story.flush(error=5)
            case ["end" | "fail", submission]:
                story.complete(self._events[submission], error=5 * (verb == "fail"))
            case ["begin", seq, *kind]:
                return story.begins(int(seq), *kind)
            case ["done", seq]:
                return story.is_done(int(seq))
            case ["group", txg]:
                story.flush()
                story.write(uberblock(int(txg)))
                story.flush()
            case ["later", ms]:
                story.now_ns += int(ms) * 1_000_000
            case ["ask", "flush"]:
                return story.client_flushes()
            case ["ask", place, *options]:
                request = story.client_writes(_bytes(place), 8192 if "double" in options else 4096)
                return replace(request, is_forced="forced" in options)
            case _:
                raise ValueError(f"no step of a scene: {verb} {' '.join(words)}")
        return None

    def _content(self, words: str) -> bytes:
        name, _, txg = words.partition(":")
        return uberblock(int(txg)) if name == "uberblock" else self._contents[words]


_UNITS = {"K": 1 << 10, "B": 1}


def _bytes(words: str) -> int:
    if "+" in words:
        return sum(map(_bytes, words.split("+")))
    unit = _UNITS.get(words[-1])
    return int(words) << 20 if unit is None else int(words[:-1]) * unit


def _options(words: Sequence[str]) -> dict[str, Any]:
    """The disk and the offset of a request, and whether it is forced."""
    found: dict[str, Any] = {"fua": True} if "fua" in words else {}
    pairs = dict(pairwise(words))
    if "on" in pairs:
        found["disk"] = "ab".index(pairs["on"])
    if "at" in pairs:
        found["offset"] = _bytes(pairs["at"])
    return found
