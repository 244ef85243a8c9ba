"""git: each writer has a repository of its own, and commits files that identify themselves.

`core.fsync=all` with `core.fsyncMethod=fsync`: all additions of a commit are synced
(git-config(1)), namely files before they get their names. git syncs no names. So the writer syncs
them, and only then acknowledges the commit. With its default git guarantees nothing: "Items that
are not hardened may be lost in the event of an unclean system shutdown". Loose objects and
references are not hardened.

Reflogs are off: `core.fsync` has no component for them.
"""

from __future__ import annotations

import json
import os
import time

from . import (
    TRANSACTION,
    Application,
    ApplicationError,
    Performer,
    Transaction,
    TransactionPlanner,
    found_of_each,
)
from ._programs import checked_output, run_program, sync_names, words_of, write_file
from .rows import payload_of

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    import subprocess
    from typing import Any

_SETTINGS = {
    "core.fsync": "all",
    "core.fsyncMethod": "fsync",
    "core.logAllRefUpdates": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "safe.directory": "*",
}
_IDENTITY = {"NAME": "load", "EMAIL": "load@load.invalid"}
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    **{
        f"GIT_{who}_{what}": text
        for who in ("AUTHOR", "COMMITTER")
        for what, text in _IDENTITY.items()
    },
}
_FOLDERS, _FILES_IN_FOLDER = 3, 4
_FILES_MAX = 3
_BYTES_MAX = 12_000


class _Planner(TransactionPlanner):
    def draw(self) -> Transaction:
        names = {
            f"d{self.dice.below(_FOLDERS)}/f{self.dice.below(_FILES_IN_FOLDER)}"
            for _ in range(1 + self.dice.below(_FILES_MAX))
        }
        files = {name: 1 + self.dice.below(_BYTES_MAX) for name in sorted(names)}
        return Transaction(kind=TRANSACTION, what={"files": files})


class _Performer(Performer):
    def __init__(self, application: Git, writer: int) -> None:
        super().__init__()
        self._application = application
        self._repository = application.repository(writer)
        self._known = self._names()

    def perform(self, transaction: Transaction, seq: int) -> None:
        begun_ns = time.monotonic_ns()
        files: dict[str, int] = transaction.what["files"]
        try:
            self.step = "write"
            for number, (name, size) in enumerate(files.items()):
                content = payload_of(self._application.job["trial"], seq, number, size)
                write_file(f"{self._repository}/{name}", content)
            self.step = "git commit"
            message = json.dumps({"seq": seq, "files": files})
            checked_output(
                git(self._repository, "commit", "--quiet", "--all", "--message", message)
            )
            self.step = "fsync"
            self._sync_names()
        except ApplicationError as error:
            self.step = f"{self.step}: {error}"
            raise
        self.durable_call_took(begun_ns)

    def _names(self) -> dict[str, list[str]]:
        objects = f"{self._repository}/.git/objects"
        return {name: os.listdir(f"{objects}/{name}") for name in os.listdir(objects)}  # noqa: PTH208

    def _sync_names(self) -> None:
        """Objects first: a branch never leads to an object without a name."""
        before, self._known = self._known, self._names()
        dot_git = f"{self._repository}/.git"
        changed = [name for name, names in self._known.items() if names != before.get(name)]
        sync_names(f"{dot_git}/objects/{name}" for name in changed)
        sync_names((f"{dot_git}/objects", f"{dot_git}/refs/heads", dot_git))


def git(repository: str, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git in a repository, with this module's settings alone."""
    settings = [word for name, text in _SETTINGS.items() for word in ("-c", f"{name}={text}")]
    return run_program(
        ["git", *settings, *arguments], directory=repository, stdin=stdin, environment=_ENVIRONMENT
    )


class Git(Application):
    """Its repositories are folders of one directory."""

    def repository(self, writer: int) -> str:
        """The path of a writer's repository."""
        return f"{self.directory}/{writer}"

    def prepare(self) -> None:
        """Make a repository for each writer, whose first commit has all files; no git templates."""
        for writer in range(self.job["writers"]):
            repository = self.repository(writer)
            for folder in range(_FOLDERS):
                os.makedirs(f"{repository}/d{folder}")  # noqa: PTH103 - pathlib is slow to import
                for file in range(_FILES_IN_FOLDER):
                    write_file(f"{repository}/d{folder}/f{file}", b"")
            branch = "--initial-branch=main"
            checked_output(git(repository, "init", "--quiet", branch, "--template="))
            checked_output(git(repository, "add", "--all"))
            checked_output(git(repository, "commit", "--quiet", "--message", "{}"))

    def planner(self, writer: int) -> TransactionPlanner:
        """Commits of a few files."""
        return _Planner(self.job, writer)

    def performer(self, writer: int) -> Performer:
        """One commit after another, as one user does."""
        return _Performer(self, writer)

    def read(self) -> dict[str, Any]:
        """Every commit that `main` leads to, with its files, and the output of `git fsck --full`."""
        return found_of_each(
            self.job["writers"], self._read_one, noun="repository", errors=(OSError, ValueError)
        )

    def _read_one(
        self, writer: int, whole: list[int], parts: dict[int, str], complaints: list[str]
    ) -> None:
        repository = self.repository(writer)
        checked = git(repository, "fsck", "--full", "--no-dangling", "--no-progress")
        if checked.returncode != 0:
            said = words_of(checked.stdout + checked.stderr, lines_max=20)
            complaints.append(f"git fsck of {writer} returned {checked.returncode}: {said}")
        history = checked_output(git(repository, "log", "-z", "--format=%H%n%B", "main"))
        for entry in history.decode().rstrip("\0").split("\0"):
            commit, _, message = entry.partition("\n")
            said = json.loads(message)
            if "seq" not in said:
                continue
            wrong = self._wrong_with(repository, commit, said["seq"], said["files"])
            if wrong:
                parts[said["seq"]] = wrong
            else:
                whole.append(said["seq"])

    def _wrong_with(self, repository: str, commit: str, seq: int, files: dict[str, int]) -> str:
        """The difference between a commit's files and the committed ones, if any."""
        asked = "".join(f"{commit}:{name}\n" for name in files).encode()
        done = git(repository, "cat-file", "--batch", stdin=asked)
        said = done.stdout
        for number, (name, size) in enumerate(files.items()):
            head, _, rest = said.partition(b"\n")
            words = head.split(b" ")
            if words[1:] != [b"blob", b"%d" % size]:
                return f"{name}: {words_of(head) or words_of(done.stderr) or 'nothing'}"
            if rest[:size] != payload_of(self.job["trial"], seq, number, size):
                return f"{name} holds something else"
            said = rest[size + 1 :]
        return ""


APPLICATION = Git
