"""Draws chains: some changes of a few names within one commit of the filesystem, with late syncs.

A filesystem that logs single inodes between its commits has to notice which names changed hands in
the meantime (btrfs: fs/btrfs/tree-log.c). `Drawing` seldom draws all steps of such a chain before a
sync or a commit comes in between. A round makes a place for each chain, commits all with a syncfs,
and carries out each chain once. A cut in a round so meets all chains that have ended.
"""

from __future__ import annotations

from .. import LAZY_TRANSACTION, TRANSACTION, Transaction, TransactionPlanner
from .drawing import NAMING
from .editing import SECTORS_MAX, Entry

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

CHAINS = (
    # fstests generic/784: a file takes the name of a moved directory, and moves on
    "move a b/a; create a; sync a; move a b/x; sync b/x",
    # fstests generic/785: a file that was synced is renamed beside a new directory with a file
    "write f; sync f; mkdir d; create d/n; move f g; sync d; sync .",
    # fstests generic/790: a file takes the name of a removed directory, and gets another one
    "rmdir a; mkdir d; mkdir e; create a; link a e/l; sync e; sync .",
    # docs/findings.md: a new symbolic link is synced, renamed and synced
    "symlink s; sync .; move s t; sync .",
    # fstests generic/376: a file takes the name of a renamed file
    "move f g; create f; sync g; sync .",
    # fstests generic/322: a new file is synced, moved, and its new directory is synced
    "create n; sync n; move n b/n; sync b; sync .",
    # fstests generic/498: a new directory gets a new link to an old file
    "mkdir d; create n; sync n; link n d/l; unlink n; sync d; sync .",
    # an editor's save: a new file replaces the old one
    "create n; sync n; replace n f; sync .",
)
"""The names `a` and `b` are directories and `f` is a file, committed before; `.` is their directory.

The syncs at the end make all of a chain's names durable (`torture/oracles/verdict/trees`). The first
chain goes first: btrfs commits with it, and a cut would find nothing of those before it in its log.
"""
_FILLERS = ("create y", "mkdir y", "symlink y", "mkdir y; sync .")
"""Half of the chains get one of these somewhere within. Each sync has something to do everywhere."""
_TARGET = "to-elsewhere"


class _Place:
    """A directory for one chain, and the numbers of all that is in it, by paths from there."""

    def __init__(self, number: int) -> None:
        self.numbers = {".": number}

    def entry(self, path: str) -> Entry:
        """The directory of a path by its number, and the name in it."""
        above, _, name = path.rpartition("/")
        return self.numbers[above or "."], name

    def move(self, old: str, new: str) -> int:
        """Move an object, with all below it; returns its number."""
        for path in [path for path in self.numbers if path == old or path.startswith(f"{old}/")]:
            self.numbers[new + path.removeprefix(old)] = self.numbers.pop(path)
        return self.numbers[new]


class Chains(TransactionPlanner):
    """One writer's chains, in rounds."""

    def __init__(self, job: dict[str, Any], writer: int, supported: frozenset[str]) -> None:
        super().__init__(job, writer)
        self._writers: int = job["writers"]
        self._names_are_stable: bool = job.get("names_are_stable", False)
        missing = {"symlink", "link"} - supported
        self._chains, self._fillers = (
            [text for text in texts if not missing & {step.split()[0] for step in text.split("; ")}]
            for texts in (CHAINS, _FILLERS)
        )
        self._made = 0
        self._drawn: list[dict[str, Any]] = []
        self._open: list[int] = []
        """The directories and files of this round."""

    def draw(self) -> Transaction:
        """The next transaction."""
        if not self._drawn:
            self._draw_round()
        what = self._drawn.pop(0)
        is_stable = self._names_are_stable and what["do"] in NAMING
        if is_stable:
            what["names_are_stable"] = True
        is_durable = is_stable or what["syncs"]
        return Transaction(kind=TRANSACTION if is_durable else LAZY_TRANSACTION, what=what)

    def _draw_round(self) -> None:
        closed, self._open = self._open, []
        chains = [self._varied(chain) for chain in self._in_order()]
        places = [self._place() for _ in chains]
        self._drawn[0]["closes"] = closed
        committed = [] if self._names_are_stable else [["syncfs", self.writer]]  # see `Drawing`
        self._drawn[-1]["syncs"] = [*committed, ["fsync", self._open[-1]]]
        for place, chain in zip(places, chains, strict=True):
            for step in chain:
                self._add(place, step)

    def _place(self) -> _Place:
        """Made, with its two directories and its file."""
        root = _Place(self.writer)
        place = _Place(self._born(root, "mkdir", f"p{self._made}"))
        for step in ("mkdir a", "mkdir b", "create f"):
            self._add(place, step)
        return place

    def _in_order(self) -> list[str]:
        first, *left = self._chains
        return [first, *(left.pop(self.dice.below(len(left))) for _ in self._chains[1:])]

    def _varied(self, chain: str) -> list[str]:
        steps = chain.split("; ")
        if self.dice.below(2):
            filler = self._fillers[self.dice.below(len(self._fillers))]
            at = 1 + self.dice.below(len(steps) - 1)
            steps[at:at] = filler.split("; ")
        return steps

    def _add(self, place: _Place, step: str) -> None:
        verb, *paths = step.split()
        if verb == "sync":
            self._drawn[-1]["syncs"].append(["fsync", place.numbers[paths[0]]])
        elif verb in ("mkdir", "create", "symlink"):
            self._born(place, verb, *paths)
        else:
            getattr(self, f"_{verb}")(place, *paths)

    def _say(self, do: str, whom: int, **more: Any) -> None:
        self._drawn.append({"do": do, "whom": whom, **more, "syncs": []})

    def _born(self, place: _Place, verb: str, path: str) -> int:
        self._made += 1
        number = place.numbers[path] = self.writer + self._made * self._writers
        more: dict[str, Any] = {}
        if verb == "create":
            more["runs"] = [[0, 1 + self.dice.below(SECTORS_MAX)]]
        elif verb == "symlink":
            more["target"] = _TARGET
        self._say(verb, number, at=place.entry(path), **more)
        if verb != "symlink":
            self._open.append(number)
        return number

    def _write(self, place: _Place, path: str) -> None:
        runs = [[self.dice.below(SECTORS_MAX), 1 + self.dice.below(SECTORS_MAX)]]
        self._say("write", place.numbers[path], how="buffered", runs=runs)

    def _rmdir(self, place: _Place, path: str) -> None:
        self._say("rmdir", place.numbers.pop(path), at=place.entry(path))

    def _unlink(self, place: _Place, path: str) -> None:
        self._say("unlink", place.numbers.pop(path), at=place.entry(path))

    def _link(self, place: _Place, path: str, new: str) -> None:
        place.numbers[new] = place.numbers[path]
        self._say("link", place.numbers[path], at=place.entry(new))

    def _move(self, place: _Place, path: str, new: str) -> None:
        was, at = place.entry(path), place.entry(new)
        self._say("rename", place.move(path, new), was=was, at=at)

    def _replace(self, place: _Place, path: str, victim: str) -> None:
        instead_of = place.numbers[victim]
        self._move(place, path, victim)
        self._drawn[-1]["instead_of"] = instead_of
