"""The search for the first version that loses: which version to try, how often, and when to stop.

First the ends are tried. The last version has to lose, and the first one has to lose less. Then each
step tries the version that is as probably with the bug as without it. So trials go where they tell most,
and a version that loses seldom is tried more often. At the end some earlier versions are tried, amid
those that were not: a bug that was mended and came back may show there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from torture.errors import HarnessError
from torture.facts.linux.kernels import BACKPORTS, linux_names, linux_version
from torture.facts.zfs.versions import version_names
from torture.features.bisect.change_point import (
    Tried,
    credible,
    differ_p,
    first_probabilities,
    to_try_next,
    unlikeness,
)

_DEADLINE_S = 600


class Versions(Protocol):
    """Versions in their order. The first one is without the bug, and the last one has it."""

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, or the hashes of commits."""

    @property
    def is_of_a_fix(self) -> bool:
        """Whether the order goes back in time, as the version without the bug is the newer one."""

    def words(self, number: int) -> str:
        """A version's name, and the words of its author."""

    def choice(self, number: int) -> str:
        """The value of `--zfs` or `--linux` for this version; it holds until the next call."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PackagedVersions:
    """Versions that the suite has recipes for."""

    names: tuple[str, ...]
    is_of_a_fix: bool = False

    def words(self, number: int) -> str:
        """See `Versions`."""
        return self.names[number]

    def choice(self, number: int) -> str:
        """See `Versions`."""
        return self.names[number]


def packaged_between(varied: str, *, good: str, bad: str) -> PackagedVersions:
    """The packaged versions of OpenZFS (`zfs`) or Linux from one to the other.

    Raises `HarnessError` for an unknown one.
    """
    if varied == "zfs":
        ordered = sorted(version_names(), key=_numbers_in)
    else:
        ordered = sorted(linux_names(), key=_age_of_linux)
    for name in (good, bad):
        if name not in ordered:
            raise HarnessError(
                f"no version {name} is packaged", hint=f"known: {', '.join(ordered)}"
            )
    first, last = ordered.index(good), ordered.index(bad)
    if first == last:
        raise HarnessError(f"{good} is both ends of the search", hint="name two versions")
    if first < last:
        return PackagedVersions(names=tuple(ordered[first : last + 1]))
    return PackagedVersions(names=tuple(reversed(ordered[last : first + 1])), is_of_a_fix=True)


def _age_of_linux(name: str) -> tuple[tuple[int, ...], bool]:
    """A suite's backports end with the next suite: of one series theirs is the older release."""
    return _numbers_in(linux_version(name).series), not name.endswith(BACKPORTS)


def _numbers_in(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitVersions:
    """Commits of a tree, checked out in a clone of our own."""

    clone: Path
    names: tuple[str, ...]
    is_of_a_fix: bool

    @classmethod
    def between(
        cls, tree: Path, *, good: str, bad: str, clone: Path, paths: Sequence[str] = ()
    ) -> CommitVersions:
        """The commits between these two, along first parents: those that touch one of `paths`.

        Both ends belong to them. The user's tree stays as it is. Raises `HarnessError` for unknown
        commits, or if neither is an ancestor of the other.
        """
        if not clone.exists():
            _clone(tree, clone)
        ends = [_commit_of(clone, tree, name) for name in (good, bad)]
        is_of_a_fix = _is_ancestor(clone, ends[1], ends[0])
        older, newer = reversed(ends) if is_of_a_fix else ends
        if not _is_ancestor(clone, older, newer):
            raise HarnessError(
                f"neither {good} nor {bad} is an ancestor of the other",
                hint=f"git -C {tree} merge-base {good} {bad}",
            )
        listed = _git(
            clone, "rev-list", "--reverse", "--first-parent", f"{older}..{newer}", "--", *paths
        ).split()
        names = (older, *(commit for commit in listed if commit != newer), newer)
        return cls(
            clone=clone,
            names=tuple(reversed(names)) if is_of_a_fix else names,
            is_of_a_fix=is_of_a_fix,
        )

    def words(self, number: int) -> str:
        """See `Versions`."""
        return _git(self.clone, "show", "--no-patch", "--format=%h %s", self.names[number]).strip()

    def choice(self, number: int) -> str:
        """See `Versions`."""
        _git(self.clone, "checkout", "--quiet", "--force", "--detach", self.names[number])
        _git(self.clone, "clean", "--quiet", "-d", "-x", "--force")
        return str(self.clone)


def _clone(tree: Path, clone: Path) -> None:
    """Clone a tree that lends its objects; an interrupted clone begins anew."""
    part = clone.with_name(f"{clone.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)
    source = str(tree.absolute())
    _git(tree, "clone", "--quiet", "--shared", "--no-checkout", source, str(part))
    part.rename(clone)


def _commit_of(clone: Path, tree: Path, name: str) -> str:
    """The hash of a commit. A clone has no branches of the tree's other remotes: the tree is asked."""
    commit = _git(tree, "rev-parse", "--verify", f"{name}^{{commit}}").strip()
    return _git(clone, "rev-parse", "--verify", f"{commit}^{{commit}}").strip()


def _is_ancestor(clone: Path, older: str, newer: str) -> bool:
    return _git(clone, "merge-base", older, newer).strip() == older


def _git(folder: Path, *arguments: str) -> str:
    """The output of git; raises `HarnessError` with its complaint."""
    done = subprocess.run(
        ("git", "-C", folder, *arguments),
        capture_output=True, text=True, timeout=_DEADLINE_S, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise HarnessError(
            f"git {arguments[0]} in {folder} failed: {done.stderr.strip()}",
            hint=f"git -C {folder} {' '.join(arguments)}",
        )
    return done.stdout


LOSSES_OF_LAST = 2
"""So many must be seen at the last version, or the search has nothing to look for."""
TRIALS_MAX = 64
"""Of one version: a cell that loses less often takes too long."""
_DIFFER_P_MAX = 0.03
"""The ends differ if chance alone makes ends that lose alike so different this often, at most.

They are compared after each step, so 6 % of such ends pass (simulated)."""
_HOPELESS_LOSSES = 4
"""A first version with so many, and no smaller share than the last one, does not lose less."""
_CHECKS = 3
"""So many versions before the first one that loses are tried at the end, amid untried ones."""
_STRETCH_MIN = 3
"""Stretches of fewer untried versions are not checked."""
_MISFIT_P_MAX, _DOUBTFUL_P_MAX = 0.01, 0.3
"""A version that chance alone makes so unlike its side is named, or is tried again."""
_DOUBTFUL_TRIALS_MAX = 20


class Trier(Protocol):
    """Tries versions."""

    def try_version(self, number: int, *, batch: int) -> Step:
        """Some trials of a version. `batch`: how many steps of it were before, which draws the trials."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """Some trials of a version, or the reason why there are none."""

    version: str
    trials: int = 0
    """Conclusive ones."""
    losses: int = 0
    """Trials that broke the cell's guarantee."""
    skipped: str = ""
    """The reason why this version cannot be tried; empty where it was."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Journal:
    """The file of a search. Its first line is the question."""

    file: Path

    def begin(self, question: Mapping[str, object]) -> None:
        """Begin it, or check that it is of the same question; raises `HarnessError` where it is not."""
        text = json.dumps(question, sort_keys=True)
        if not self.file.exists():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._add(text)
            return
        earlier = self._lines()[0]
        if earlier != text:
            raise HarnessError(
                f"{self.file} is of another search: {earlier}",
                hint="name another folder with --state",
            )

    def steps(self) -> list[Step]:
        """All steps, in their order; a line that was cut off is left out."""
        return [Step(**json.loads(line)) for line in self._lines()[1:]]

    def add(self, step: Step) -> None:
        """Write down a step."""
        self._add(json.dumps(asdict(step)))

    def _lines(self) -> list[str]:
        """Those that were written whole."""
        text = self.file.read_text()
        return text[: text.rfind("\n") + 1].splitlines()

    def _add(self, line: str) -> None:
        whole = self.file.read_bytes() if self.file.exists() else b""
        with self.file.open("r+b" if whole else "wb") as file:
            file.truncate(whole.rfind(b"\n") + 1)
            file.seek(0, 2)
            file.write(line.encode() + b"\n")


def tried_of(steps: list[Step], version: str) -> Tried:
    """All trials of a version."""
    tried = Tried()
    for step in steps:
        if step.version == version:
            tried += Tried(trials=step.trials, losses=step.losses)
    return tried


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The versions one of which is the first that loses, and the probability that it is."""

    versions: tuple[int, ...]
    """Their numbers. Several where those between them cannot be tried."""
    certainty: float
    """It holds if from one version on each has the bug, and loses in the same share of its trials."""
    misfits: tuple[int, ...] = ()
    """The versions by which that is not so: then there is no first one."""
    tried_before: int = 0
    """How many of the versions before them had trials."""


class Search:
    """A search over versions; its journal has all that it knows, of earlier runs, too."""

    def __init__(
        self,
        versions: Versions,
        trier: Trier,
        journal: Journal,
        *,
        certainty: float,
        say: Callable[[str], None],
    ) -> None:
        self._versions = versions
        self._trier = trier
        self._journal = journal
        self._certainty = certainty
        self._say = say
        self._steps = journal.steps()

    def run(self) -> Found:
        """Search to the end. Raises `HarnessError` where the ends do not differ or cannot be tried."""
        self._try_ends()
        checks = 0
        while True:
            found = self._narrowed()
            number = self._doubtful(found)
            if number is None and checks < _CHECKS:
                checks += 1
                number = self._amid_untried(range(1, found.versions[0]))
            if number is None:
                return self._with_misfits(found)
            self._say("checking that no earlier version loses")
            self._try(number)

    def _with_misfits(self, found: Found) -> Found:
        unlike = unlikeness(self._all_tried(), found.versions[-1])
        unlike_model = sorted(number for number, p in unlike.items() if p < _MISFIT_P_MAX)
        tried_before = sum(self._tried(one).trials > 0 for one in range(found.versions[0]))
        return replace(found, misfits=tuple(unlike_model), tried_before=tried_before)

    def _doubtful(self, found: Found) -> int | None:
        """The version that fits worst, if some more trials may tell whether it does."""
        unlike = unlikeness(self._all_tried(), found.versions[-1])
        number = min(unlike, key=lambda one: unlike[one])
        is_open = _MISFIT_P_MAX <= unlike[number] < _DOUBTFUL_P_MAX
        return number if is_open and self._tried(number).trials < _DOUBTFUL_TRIALS_MAX else None

    def _narrowed(self) -> Found:
        """The versions left, once one of them is certain or none can be tried."""
        while True:
            probabilities = first_probabilities(len(self._versions.names), self._all_tried())
            following = to_try_next(probabilities, self._untriable())
            if max(probabilities) >= self._certainty or following is None:
                found = credible(probabilities, self._certainty)
                certainty = sum(probabilities[number] for number in found)
                return Found(versions=tuple(found), certainty=certainty)
            left = len(credible(probabilities, self._certainty))
            self._say(f"{left} versions left")
            self._try(following)

    def _amid_untried(self, side: range) -> int | None:
        """The middle of the longest stretch without a trial; None where all are short."""
        skipped = self._untriable()
        stretches: list[list[int]] = [[]]
        for number in side:
            if self._tried(number).trials:
                stretches.append([])
            elif number not in skipped:
                stretches[-1].append(number)
        longest = max(stretches, key=len)
        return longest[len(longest) // 2] if len(longest) >= _STRETCH_MIN else None

    def _try_ends(self) -> None:
        first, last = 0, len(self._versions.names) - 1
        while self._tried(last).losses < LOSSES_OF_LAST:
            if self._tried(last).trials >= TRIALS_MAX:
                raise HarnessError(
                    f"{self._words(last)} lost something in {self._share(last)} trials",
                    hint="choose a cell that loses more often, or a longer --duration",
                )
            self._try(last, must_be_tried=True)
        while differ_p(self._tried(first), self._tried(last)) > _DIFFER_P_MAX:
            following = min(first, last, key=lambda end: self._tried(end).trials)
            without, with_it = self._tried(first), self._tried(last)
            is_no_less = without.losses * with_it.trials >= with_it.losses * without.trials
            is_hopeless = is_no_less and without.losses >= _HOPELESS_LOSSES
            if is_hopeless or self._tried(following).trials >= TRIALS_MAX:
                raise HarnessError(
                    f"{self._words(first)} lost something in {self._share(first)} trials, "
                    f"{self._words(last)} in {self._share(last)}",
                    hint="choose another --good, or a cell that loses more often",
                )
            self._try(following, must_be_tried=True)

    def _try(self, number: int, *, must_be_tried: bool = False) -> None:
        name = self._versions.names[number]
        batch = sum(step.version == name for step in self._steps)
        self._say(f"trying {self._words(number)}")
        step = self._trier.try_version(number, batch=batch)
        if step.skipped and must_be_tried:
            raise HarnessError(
                f"{self._words(number)} cannot be tried: {step.skipped}",
                hint="choose another end for the search",
            )
        self._journal.add(step)
        self._steps.append(step)
        self._say(f"  {step.skipped or f'lost something in {self._share(number)} trials'}")

    def _all_tried(self) -> dict[int, Tried]:
        return {number: self._tried(number) for number in range(len(self._versions.names))}

    def _untriable(self) -> frozenset[int]:
        """Those that were skipped, or tried often enough."""
        skipped = {step.version for step in self._steps if step.skipped}
        return frozenset(
            number
            for number, name in enumerate(self._versions.names)
            if name in skipped or self._tried(number).trials >= TRIALS_MAX
        )

    def _tried(self, number: int) -> Tried:
        return tried_of(self._steps, self._versions.names[number])

    def _share(self, number: int) -> str:
        tried = self._tried(number)
        return f"{tried.losses} of {tried.trials}"

    def _words(self, number: int) -> str:
        return self._versions.words(number)
