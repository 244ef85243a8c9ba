"""One quick cell, both fates, run by a user without privileges: the same verdicts as for root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from torture.checkout import CHECKOUT
from torture.images import IMAGES, find
from torture.record.run_layout import TRIALS_FILE
from torture.record.trials import read_records
from torture.verdict.verdicts import Verdict

_USER = "nobody"
_DEADLINE_S = 300
_NEEDED = ("torture", "fixtures", "suites", "vmimages", "pytest.ini", "pyproject.toml")
"""Of the checkout, to cut."""
_REFUSAL = "from torture.host.sandbox import sandbox_refusal; print(sandbox_refusal())"


@dataclass(frozen=True, kw_only=True, slots=True)
class Guest:
    """A user without privileges, with all that a run needs in a folder of their own.

    Theirs are copies: the checkout may lie where they cannot look, as in the home of root, and a cautious
    umask may have made it unreadable for them.
    """

    user: pwd.struct_passwd
    home: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Python with these arguments, in their checkout."""
        own = {"HOME": str(self.home), "TORTURE_CACHE": str(self.home / "cache")}
        return subprocess.run(
            [self.home / "environment" / "bin" / "python", *arguments],
            cwd=self.home / "checkout",
            env=os.environ | own,
            user=self.user.pw_uid,
            group=self.user.pw_gid,
            extra_groups=(),
            umask=0o077,
            capture_output=True,
            text=True,
            timeout=_DEADLINE_S,
            check=False,
        )


@pytest.fixture
def guest() -> Iterator[Guest]:
    if os.geteuid() != 0:
        pytest.skip("every test of this session is run by an unprivileged user already")
    user = pwd.getpwnam(_USER)
    with TemporaryDirectory(prefix="torture-home-", dir="/var/tmp") as name:
        home = Path(name)
        _furnish(home)
        for path in (home, *home.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
        guest = Guest(user=user, home=home)
        asked = guest.run("-c", _REFUSAL)
        assert asked.returncode == 0, asked.stdout + asked.stderr
        if (refusal := asked.stdout.strip()) != "None":
            pytest.skip(f"{_USER} cannot have a sandbox here: {refusal}")
        yield guest


def _furnish(home: Path) -> None:
    """Put copies of the checkout, of this Python's environment and of the guest images there."""
    for name in _NEEDED:
        copied = _copied_tree if (CHECKOUT / name).is_dir() else shutil.copy2
        (home / "checkout").mkdir(exist_ok=True)
        copied(CHECKOUT / name, home / "checkout" / name)
    _copied_tree(Path(sys.prefix), home / "environment")
    for image in IMAGES:
        found = find(image)
        assert found is not None
        folder = found.root.parent
        _copied_tree(folder, home / "cache" / "images" / folder.name)


def _copied_tree(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True)


def test_an_unprivileged_user_gets_the_same_verdicts(guest: Guest) -> None:
    results = guest.home / "results"
    completed = guest.run(
        "-m", "pytest", "suites/powercut", "-p", "no:cacheprovider",
        "--matrix", "quick", "-k", "always", "--trials", "1",
        "--results", str(results), "--scratch", str(guest.home),
    )  # fmt: skip
    records = read_records(results / "latest" / TRIALS_FILE).records
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert {record.axes["fate"]: record.verdict for record in records} == {
        "bothdie": Verdict.INTACT,
        "nasonly": Verdict.INTACT,
    }
