"""The trees of the writers that a crash may leave: a small filesystem with all versions of everything.

Slow and obvious: it replays the ledger up to a moment. Each thing has its versions, oldest first; what
is synced loses all older ones. A crash picks any version of each thing, on its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from suites.selftest.unit.tree_versions import HALF, Entry, Thing, Version, halves_in
from torture.facts.evidence.ledger import Begin, Done, Event

WRITERS = 2
SECTOR_BYTES = 512
ANY_TIME = -1
"""An unknown time. It reads as 1, which is never set."""
_HALVES = 0.2
"""The read-back's mark of half a sector, and how often one is left where it may be."""
Seen = dict[str, Any]


@dataclass
class Model:
    """Everything a crash may leave after the events replayed so far."""

    tears_sectors: bool = False
    is_whole: bool = True  # until the crash that is drawn leaves a half sector
    names: dict[Entry, Thing] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=lambda: dict.fromkeys(range(WRITERS), "dir"))
    targets: dict[int, str] = field(default_factory=dict)
    files: dict[int, dict[str, Thing]] = field(default_factory=dict)
    begun: dict[int, tuple[Begin, list[tuple[Any, Version]]]] = field(default_factory=dict)
    unsynced: dict[int, list[tuple[Any, Version]]] = field(default_factory=dict)

    @classmethod
    def after(cls, events: tuple[Event, ...], *, tears_sectors: bool = False) -> Model:
        model = cls(tears_sectors=tears_sectors)
        for event in events:
            if isinstance(event, Begin):
                model.begin(event)
            elif isinstance(event, Done):
                model.done(event.seq)
        return model

    def thing(self, key: Any) -> Thing:
        """By `name`, directory and name, or by `file`, number and word."""
        kind, number, word = key
        if kind == "name":
            return self.names.setdefault((number, word), Thing([Version(None)]))
        first: Any = {"size": 0, "mode": 0o644, "mtime": ANY_TIME, "links": 1}.get(word)
        things = self.files.setdefault(number, {})
        return things.setdefault(word, Thing([Version("zero" if "sector" in word else first)]))

    def begin(self, event: Begin) -> None:
        what = dict(event.what)
        changes: list[tuple[Any, Version]] = []

        def change(key: Any, value: Any, **more: Any) -> Version:
            version = Version(value, **more)
            self.thing(key[:3]).versions.append(version)
            changes.append((key, version))
            return version

        def last(key: Any) -> Any:
            return self.thing(key[:3]).versions[-1].value

        def count(number: int, more: int, name: Version, *also: Version) -> None:
            waiting = self.unsynced.get(event.writer, [])
            slack_of = tuple(
                version for key, version in waiting if key[0] == "name" and number in key[3]
            )
            links = ("file", number, "links")
            change(links, last(links) + more, slack_of=(*slack_of, *also), name=name)

        number = what.get("whom", -1)
        at = tuple(what.get("at", ()))
        before = last(("name", *at)) if at else None
        named: Any = ("name", *at, (number, before)) if at else None
        match what["do"]:
            case "mkdir":
                self.kinds[number] = "dir"
                change(named, number)
            case "symlink":
                self.kinds[number], self.targets[number] = "symlink", what["target"]
                change(named, number)
            case "rmdir":
                change(named, None)
            case "link":
                count(number, 1, change(named, number))
            case "unlink":
                count(number, -1, change(named, None))
            case "rename":
                new = change(named, number)
                old = ("name", *what["was"], (number,))
                gone = change(old, None, pair=((at[0], at[1]), new))
                if self.kinds[number] == "file":
                    count(number, 0, new, gone)
                if "instead_of" in what:
                    count(what["instead_of"], -1, new)
            case "create" | "write":
                if what["do"] == "create":
                    self.kinds[number] = "file"
                    change(named, number)
                    if what.get("names_are_stable"):  # as NFSv3 makes a file: without a mode
                        self.thing(("file", number, "mode")).versions = [Version(0)]
                        change(("file", number, "mode"), 0o644)
                written = [
                    place for first, size in what["runs"] for place in range(first, first + size)
                ]
                for place in written:
                    change(("file", number, f"sector {place}"), event.seq)
                if (end := SECTOR_BYTES * (max(written) + 1)) > last(("file", number, "size")):
                    change(("file", number, "size"), end)
                change(("file", number, "mtime"), ANY_TIME)
            case "truncate" | "punch" | "zero":
                if what["do"] == "truncate":
                    first, end = what["sectors"], 1 << 30
                    change(("file", number, "size"), first * SECTOR_BYTES)
                else:
                    first, end = what["run"][0], sum(what["run"])
                for word in list(self.files[number]):
                    if word.startswith("sector") and first <= int(word.split()[1]) < end:
                        change(("file", number, word), "zero")
                change(("file", number, "mtime"), ANY_TIME)
            case "xattr":
                change(("file", number, f"xattr {what['name']}"), what["value"])
            case "chmod":
                change(("file", number, "mode"), what["mode"])
            case "utimens":
                change(("file", number, "mtime"), what["mtime"] * 10**9)
        self.begun[event.seq] = event, changes

    def done(self, seq: int) -> None:
        event, own = self.begun.pop(seq)
        what = event.what
        waiting = self.unsynced.setdefault(event.writer, []) + own
        synced: list[tuple[Any, Version]] = []
        if what.get("how") in ("dsync", "osync", "mmap"):
            synced += [one for one in own if one[0][2] == "size" or "sector" in str(one[0][2])]
        if what.get("names_are_stable"):
            synced += [one for one in own if one[0][0] == "name" or one[0][2] == "mode"]
        for call, whom in what["syncs"]:
            for key, version in waiting:
                is_data = key[2] == "size" or "sector" in str(key[2])
                if call == "syncfs" or (key[1] == whom and (call == "fsync" or is_data)):
                    synced.append((key, version))
        done = [version for _, version in synced]
        names = [version for _, version in waiting if version not in done]
        done = [version for version in done if version.name not in names]  # links wait for names
        for key, version in waiting:
            if version in done:
                version.is_settled = True
                self.thing(key[:3]).settle(version)
        self.unsynced[event.writer] = [one for one in waiting if one[1] not in done]

    def crash(self, dice: random.Random, *, newest: float = 0.5) -> list[Seen]:
        """The read-back after a crash now; each thing is at its newest with this probability."""
        self.is_whole = True
        picked: dict[Entry, Version] = {}
        for entry, thing in self.names.items():
            is_newest = dice.random() < newest
            picked[entry] = thing.versions[-1] if is_newest else dice.choice(thing.versions)
        self._settle_renames(picked)
        while stale := self._stale_on_circle(picked):  # no filesystem shows a tree without an end
            for entry in stale:
                picked[entry] = self.names[entry].versions[-1]
            self._settle_renames(picked)
        files = {number: self._file(number, dice, newest) for number in self.files}
        return [self._directory(root, picked, files) for root in range(WRITERS)]

    def _settle_renames(self, picked: dict[Entry, Version]) -> None:
        """A renamed thing is where it went, or has gone on from there."""
        is_settled = False
        while not is_settled:
            is_settled = True
            for entry, version in list(picked.items()):
                if version.pair is None or version not in self.names[entry].versions:
                    continue
                there, new = version.pair
                versions = self.names[there].versions
                place = versions.index(new) if new in versions else 0
                if versions.index(picked[there]) < place:
                    picked[there], is_settled = new, False

    def _stale_on_circle(self, picked: dict[Entry, Version]) -> list[Entry]:
        """Old names that lead to a directory that lies in itself; there are none once all are new."""
        inside = {
            entry: version.value
            for entry, version in picked.items()
            if self.kinds.get(version.value) == "dir"
        }
        while leaves := [
            e for e, number in inside.items() if all(at != number for at, _ in inside)
        ]:
            for entry in leaves:
                del inside[entry]
        return [one for one in inside if picked[one] is not self.names[one].versions[-1]]

    def _directory(self, number: int, picked: dict[Entry, Version], files: dict[int, Seen]) -> Seen:
        entries: dict[str, Seen] = {}
        for (directory, name), version in picked.items():
            if directory != number or version.value is None:
                continue
            match self.kinds[version.value]:
                case "dir":
                    entries[name] = self._directory(version.value, picked, files)
                case "symlink":
                    entries[name] = {"type": "symlink", "target": self.targets[version.value]}
                case _:
                    entries[name] = files[version.value]
        return {"type": "dir", "entries": entries}

    def _file(self, number: int, dice: random.Random, newest: float) -> Seen:
        def pick(word: str) -> Any:
            thing = self.thing(("file", number, word))
            version = thing.versions[-1]
            if dice.random() >= newest:
                version = dice.choice(thing.versions)
            if slack := version.slack:
                return version.value + dice.choice((-slack, 0, slack))
            return version.value

        size = pick("size")
        while not self._may_be_short(number, size):
            size = pick("size")
        sectors = [pick(f"sector {place}") for place in range(size // SECTOR_BYTES)]
        for place in dice.sample(range(len(sectors)), len(sectors)) if self.tears_sectors else ():
            sector = self.thing(("file", number, f"sector {place}"))
            if self.is_whole and sector.may_be_half_written and dice.random() < _HALVES:
                sectors[place] = HALF
                self.is_whole = False  # a cut leaves one half sector, of all files
        mtime = pick("mtime")
        xattrs = {
            word.split()[1]: value
            for word in list(self.files[number])
            if word.startswith("xattr") and (value := pick(word)) is not None
        }
        return {
            "type": "file",
            "inode": number,
            "links": pick("links"),
            "mode": pick("mode"),
            "mtime_ns": 1 if mtime == ANY_TIME else mtime,
            "size": size,
            "xattrs": xattrs,
            "runs": [[place, 1, holder] for place, holder in enumerate(sectors)],
        }

    def _may_be_short(self, number: int, size: int) -> bool:
        """Whether nothing beyond a size is settled; a sector there reads as nothing."""
        beyond = -(-size // SECTOR_BYTES)
        return all(
            "zero" in [version.value for version in thing.versions]
            for word, thing in self.files[number].items()
            if word.startswith("sector") and int(word.split()[1]) >= beyond
        )

    def _may_be_half(self, number: int, place: int, held: dict[int, Any]) -> bool:
        """Whether a sector may be half old and half new: no other is, in any file."""
        sector = self.thing(("file", number, f"sector {place}"))
        return self.tears_sectors and held[place] == HALF and sector.may_be_half_written

    def explains(self, trees: list[Seen]) -> bool:
        """Whether a crash now may leave just this; a directory that is there twice, in both places."""
        if len(halves_in(trees)) > 1:
            return False
        found: dict[int, Seen] = {}
        places: list[tuple[int, Seen]] = []

        def gather(number: int, seen: Seen) -> None:
            found[number] = seen
            places.append((number, seen))
            for name, entry in seen["entries"].items():
                thing = self.names.get((number, name))
                for version in thing.versions if thing else ():
                    if entry["type"] == "dir" and self.kinds.get(version.value) == "dir":
                        gather(version.value, entry)

        for root, seen in enumerate(trees):
            gather(root, seen)
        for number, seen in places:
            here = {name for directory, name in self.names if directory == number}
            if not seen["entries"].keys() <= here:
                return False
            if not all(any(self._could_be(found, seen, (number, name))) for name in here):
                return False
        return True

    def _could_be(self, found: dict[int, Seen], directory: Seen, entry: Entry) -> Iterator[bool]:
        seen = directory["entries"].get(entry[1])
        for version in self.names[entry].versions:
            yield self._is_like(found, seen, version)

    def _is_like(self, found: dict[int, Seen], seen: Seen | None, version: Version) -> bool:
        if version.value is None or seen is None:
            if version.value is not None or seen is not None:
                return False
            if version.pair is None or version.pair[0][0] not in found:
                return True
            (number, name), new = version.pair
            there = found[number]["entries"].get(name)
            versions = self.names[number, name].versions
            later = versions[versions.index(new) :] if new in versions else versions
            return any(self._is_like(found, there, one) for one in later)
        kind = self.kinds[version.value]
        if seen["type"] != kind:
            return False
        if kind == "symlink":
            return bool(seen["target"] == self.targets[version.value])
        return kind == "dir" or self._is_file(version.value, seen)

    def _is_file(self, number: int, seen: Seen) -> bool:
        def values(word: str) -> list[Any]:
            return [version.value for version in self.thing(("file", number, word)).versions]

        sizes, times = values("size"), values("mtime")
        held = {
            place: holder
            for first, size, holder in seen["runs"]
            for place in range(first, first + size)
        }
        between = any(min(pair) < seen["size"] < max(pair) for pair in pairwise(sizes))
        words = {word.split()[1] for word in list(self.files[number]) if word.startswith("xattr")}
        return (
            (seen["size"] in sizes or between)
            and self._may_be_short(number, seen["size"])
            and (seen["mtime_ns"] in times or ANY_TIME in times)
            and seen["mode"] in values("mode")
            and any(
                abs(seen["links"] - version.value) <= version.slack
                for version in self.thing(("file", number, "links")).versions
            )
            and all(
                seen["xattrs"].get(name) in values(f"xattr {name}")
                for name in words | seen["xattrs"].keys()
            )
            and held.keys() >= set(range(seen["size"] // SECTOR_BYTES))
            and all(
                holder in values(f"sector {place}") or self._may_be_half(number, place, held)
                for place, holder in held.items()
            )
        )
