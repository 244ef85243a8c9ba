"""The versions of a search, from one without the bug to one with it: packaged ones, or commits."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torture.errors import HarnessError
from torture.facts.linux.kernels import BACKPORTS, linux_names, linux_version
from torture.facts.zfs.versions import version_names

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
