"""From the ledger to the allowed states of each thing in the writers' trees after a crash at each moment.

- **Begun.** A transaction has changed nothing at moments up to its `begin`: the client waits for
  the host's answer before its first call.
- **Durable.** Its changes hold from the `done` of the transaction that synced them. `tree_syncs.py`
  has the coverage of each sync. Until then each thing may be old or new on its own. This includes
  earlier changes by other transactions that are not durable.
- **Sizes** on their way may be anything between the old one and the new. Writing back extends a
  file bit by bit, and large files are truncated in the same way. Data not written yet are zero.
- **Sectors.** In a write that is under way a sector is old or new. The ledger's `Hello` may say
  that sectors tear. Then one sector of a block may be half of each, as one split leaves it.
- **Truncation.** Data that were cut off are zero when the file is long again, truncate(2); so are
  holes, fallocate(2).
- **Times.** Every change of a file's content sets its time of modification to an unknown one.
- **Failure.** A failed call is no acknowledgement and forbids nothing: in flight for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torture.facts.evidence.ledger import Begin, Done, Ledger
from torture.oracles.verdict.guarantee import UnreadableError
from torture.oracles.verdict.trees.tree_syncs import (
    Key,
    Thing,
    is_covered,
    is_durable_by_itself,
    names_are_stable,
    sectors_of,
)

SECTOR_BYTES = 512
ANY = "any"
"""An unpredictable value."""
ZERO = "zero"
_MODE_NEW, _MODE_UNSET = 0o644, 0
Value = int | str | None

# One pass over the ledger builds these classes, and nothing changes them afterwards; so not frozen.


@dataclass(kw_only=True, slots=True)
class Change:
    """One change of one thing. `durable`: the place of the `done` that made it so.

    `leans_on`: for a name that was renamed away, the change of the new name, which it requires.
    `slack_of`: for a number of links, the names' changes that were on their way at its change.
    """

    seq: int
    begin: int
    value: Value
    durable: int | None = None
    acknowledgement: int | None = None
    leans_on: tuple[Key, int] | None = None
    slack_of: tuple[Change, ...] = ()


@dataclass(kw_only=True, slots=True)
class Trees:
    """The whole history of the writers' trees; `end` is the moment after everything.

    `kinds`: by number `dir`, `file` or `symlink`. `roots`: the writers' own directories.
    """

    end: int
    roots: tuple[int, ...]
    tears_sectors: bool = False
    kinds: dict[int, str] = field(default_factory=dict)
    targets: dict[int, str] = field(default_factory=dict)
    changes: dict[Key, list[Change]] = field(default_factory=dict)
    names: dict[int, list[str]] = field(default_factory=dict)
    """By directory, every name that was ever in it."""
    xattrs: dict[int, set[str]] = field(default_factory=dict)
    """By file, every attribute that it ever had."""
    sectors: dict[int, set[int]] = field(default_factory=dict)
    """By file, every sector that was ever written; all others were zero at all times."""
    acknowledged: dict[int, int] = field(default_factory=dict)

    def changes_of(self, key: Key) -> list[Change]:
        """From the first, which was always so, to the last."""
        if key not in self.changes:
            value: Value = {
                Thing.NAME: None,
                Thing.SIZE: 0,
                Thing.SECTOR: ZERO,
                Thing.MODE: _MODE_NEW,
                Thing.MTIME: ANY,
                Thing.XATTR: None,
                Thing.LINKS: 1,
            }[key[0]]
            return [Change(seq=0, begin=-1, value=value)]
        return self.changes[key]

    def current(self, key: Key) -> Value:
        """The value once everything is done."""
        return self.changes_of(key)[-1].value


def build_trees(
    ledger: Ledger, *, writers: int, garbage: int = 0, tears_sectors: bool = False
) -> Trees:
    """The history in a ledger; raises `UnreadableError` when the ledger contradicts itself.

    `garbage`: the number of the trees' sectors that are of no single write. A cut leaves one at
    most (`torture.oracles.verdict.blocks.halves`): if there are more, none is excused.
    """
    trees = Trees(
        end=len(ledger.events),
        roots=tuple(range(writers)),
        tears_sectors=tears_sectors and garbage <= max(1, ledger.cuts),
    )
    builder = _Builder(trees)
    try:
        for place, event in enumerate(ledger.events):
            match event:
                case Begin():
                    builder.begin(event, place)
                case Done():
                    builder.done(event.seq, place)
                case _:
                    pass
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UnreadableError(f"the ledger has an unknown call: {error!r}") from error
    return builder.trees


class _Builder:
    def __init__(self, trees: Trees) -> None:
        self.trees = trees
        trees.kinds.update(dict.fromkeys(trees.roots, "dir"))
        self._open: dict[int, tuple[Begin, list[tuple[Key, Change]]]] = {}
        self._unsynced: dict[int, list[tuple[Key, Change]]] = {}
        """By writer, the changes that returned and are not durable."""
        self._own: list[tuple[Key, Change]] = []
        self._place = self._seq = self._writer = 0

    def begin(self, event: Begin, place: int) -> None:
        what: dict[str, Any] = dict(event.what)
        self._own = []
        self._place, self._seq, self._writer = place, event.seq, event.writer
        getattr(self, f"_{what['do']}")(what)
        self._open[event.seq] = (event, self._own)

    def done(self, seq: int, place: int) -> None:
        if seq not in self._open:
            raise UnreadableError(f"the ledger ends transaction {seq}, which had not begun")
        event, own = self._open.pop(seq)
        what: dict[str, Any] = dict(event.what)
        if event.kind.is_durable:
            self.trees.acknowledged[seq] = place
        durable = [change for key, change in own if is_durable_by_itself(key, what)]
        waiting = self._unsynced.setdefault(event.writer, []) + own
        for call, whom in what["syncs"]:
            durable += [change for key, change in waiting if is_covered(key, call, whom)]
        for change in durable:
            change.durable, change.acknowledgement = place, seq
        self._keep_links(waiting)
        self._unsynced[event.writer] = [
            (key, change) for key, change in waiting if change.durable is None
        ]

    def _keep_links(self, waiting: list[tuple[Key, Change]]) -> None:
        """A number of links is not durable before the name it counts."""
        for key, change in waiting:
            if key[0] is Thing.LINKS and change.leans_on is not None:
                name, index = change.leans_on
                if self.trees.changes[name][index].durable is None:
                    change.durable = change.acknowledgement = None

    def _change(
        self,
        key: Key,
        value: Value,
        *,
        leans_on: tuple[Key, int] | None = None,
        slack_of: tuple[Change, ...] = (),
    ) -> tuple[Key, int]:
        change = Change(
            seq=self._seq, begin=self._place, value=value, leans_on=leans_on, slack_of=slack_of
        )
        changes = self.trees.changes.setdefault(key, self.trees.changes_of(key))
        changes.append(change)
        self._own.append((key, change))
        return key, len(changes) - 1

    def _name(self, at: Any, value: Value, **more: Any) -> tuple[Key, int]:
        directory, name = int(at[0]), str(at[1])
        names = self.trees.names.setdefault(directory, [])
        if name not in names:
            names.append(name)
        return self._change((Thing.NAME, directory, name), value, **more)

    def _count(self, number: int, more: int, name: tuple[Key, int], *also: Change) -> None:
        key: Key = (Thing.LINKS, number, 0)
        links = self.trees.current(key)
        assert isinstance(links, int)
        on_their_way = [
            change
            for of, change in self._unsynced.get(self._writer, [])
            if of[0] is Thing.NAME and self._concerns(of, change, number)
        ]
        self._change(key, links + more, leans_on=name, slack_of=(*on_their_way, *also))

    def _concerns(self, key: Key, change: Change, number: int) -> bool:
        """Whether a name's change gives one to this file, or takes one from it."""
        changes = self.trees.changes[key]
        before = changes[next(at for at, one in enumerate(changes) if one is change) - 1]
        return number in (change.value, before.value)

    def _born(self, what: dict[str, Any], kind: str) -> int:
        number = int(what["whom"])
        self.trees.kinds[number] = kind
        self._name(what["at"], number)
        return number

    def _create(self, what: dict[str, Any]) -> None:
        number = self._born(what, "file")
        if names_are_stable(what):
            mode: Key = (Thing.MODE, number, 0)
            self.trees.changes[mode] = [Change(seq=0, begin=-1, value=_MODE_UNSET)]
            self._change(mode, _MODE_NEW)
        self._write(what)

    def _write(self, what: dict[str, Any]) -> None:
        number = int(what["whom"])
        written = list(sectors_of(what))
        self.trees.sectors.setdefault(number, set()).update(written)
        for sector in written:
            self._change((Thing.SECTOR, number, sector), self._seq)
        size = self.trees.current((Thing.SIZE, number, 0))
        assert isinstance(size, int)
        if (1 + max(written)) * SECTOR_BYTES > size:
            self._change((Thing.SIZE, number, 0), (1 + max(written)) * SECTOR_BYTES)
        self._change((Thing.MTIME, number, 0), ANY)

    def _zeroed(self, number: int, sectors: set[int]) -> None:
        for sector in sorted(sectors & self.trees.sectors.get(number, set())):
            self._change((Thing.SECTOR, number, sector), ZERO)
        self._change((Thing.MTIME, number, 0), ANY)

    def _truncate(self, what: dict[str, Any]) -> None:
        number, sectors = int(what["whom"]), int(what["sectors"])
        self._change((Thing.SIZE, number, 0), sectors * SECTOR_BYTES)
        cut_off = {sector for sector in self.trees.sectors.get(number, set()) if sector >= sectors}
        self._zeroed(number, cut_off)

    def _punch(self, what: dict[str, Any]) -> None:
        self._zeroed(int(what["whom"]), set(sectors_of(what)))

    _zero = _punch

    def _xattr(self, what: dict[str, Any]) -> None:
        number, name = int(what["whom"]), str(what["name"])
        self.trees.xattrs.setdefault(number, set()).add(name)
        self._change((Thing.XATTR, number, name), what["value"])

    def _chmod(self, what: dict[str, Any]) -> None:
        self._change((Thing.MODE, int(what["whom"]), 0), int(what["mode"]))

    def _utimens(self, what: dict[str, Any]) -> None:
        self._change((Thing.MTIME, int(what["whom"]), 0), int(what["mtime"]) * 10**9)

    def _mkdir(self, what: dict[str, Any]) -> None:
        self._born(what, "dir")

    def _symlink(self, what: dict[str, Any]) -> None:
        self.trees.targets[self._born(what, "symlink")] = str(what["target"])

    def _rmdir(self, what: dict[str, Any]) -> None:
        self._name(what["at"], None)

    def _link(self, what: dict[str, Any]) -> None:
        number = int(what["whom"])
        self._count(number, +1, self._name(what["at"], number))

    def _rename(self, what: dict[str, Any]) -> None:
        number = int(what["whom"])
        new = self._name(what["at"], number)
        old, index = self._name(what["was"], None, leans_on=new)
        if self.trees.kinds[number] == "file":  # counted twice while it has both names
            self._count(number, 0, new, self.trees.changes[old][index])
        if "instead_of" in what:
            self._count(int(what["instead_of"]), -1, new)

    def _unlink(self, what: dict[str, Any]) -> None:
        self._count(int(what["whom"]), -1, self._name(what["at"], None))
