"""A quick cell whose client lives on, run by a user without privileges, whose machines boot for real."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from torture.files import CHECKOUT
from torture.machines.host.native import shelf_plugin
from torture.machines.images import IMAGES, find
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.trials_file import read_records

_USER = "nobody"
_DEADLINE_S = 500
_LOAD_S = 1
"""Long enough for acknowledgements of which none may be lost."""
_NEEDED = ("torture", "fixtures", "suites", "vmimages", "pytest.ini", "pyproject.toml")
"""Of the checkout, to cut."""
_REFUSAL = "from torture.machines.host.scratch import sandbox_refusal; print(sandbox_refusal())"


@dataclass(frozen=True, kw_only=True, slots=True)
class Guest:
    """A user without privileges, with all that a run needs in a folder of their own.

    They get copies. The checkout may lie where they cannot look, as in the home of root. A cautious umask
    may have made it unreadable for them.
    """

    user: pwd.struct_passwd
    home: Path
    environment: Path = Path(sys.prefix)
    """Of Python."""

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Python with these arguments, in their checkout."""
        own = {
            "HOME": str(self.home),
            "TORTURE_CACHE": str(self.home / "cache"),
        }
        return subprocess.run(
            [self.environment / "bin" / "python", *arguments],
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

    def own(self, *, copy_of: Path, at: Path) -> Path:
        """Give them a copy of a file or folder."""
        target = self.home / at
        target.parent.mkdir(parents=True, exist_ok=True)
        if copy_of.is_dir():
            shutil.copytree(copy_of, target, symlinks=True)
        else:
            shutil.copy2(copy_of, target)
        for path in (*target.relative_to(self.home).parents[:-1], at, *target.rglob("*")):
            os.chown(self.home / path, self.user.pw_uid, self.user.pw_gid, follow_symlinks=False)
        return target


@pytest.fixture
def guest() -> Iterator[Guest]:
    if os.geteuid() != 0:
        pytest.skip("every test of this session is run by an unprivileged user already")
    user = pwd.getpwnam(_USER)
    with TemporaryDirectory(prefix="torture-home-", dir="/var/tmp") as name:
        guest = _furnished(Guest(user=user, home=Path(name)))
        asked = guest.run("-c", _REFUSAL)
        assert asked.returncode == 0, asked.stdout + asked.stderr
        if (refusal := asked.stdout.strip()) != "None":
            pytest.skip(f"{_USER} cannot have a sandbox here: {refusal}")
        yield guest


def _furnished(guest: Guest) -> Guest:
    """With the checkout, the guest images and the shelf; and with an environment, if they need one."""
    os.chown(guest.home, guest.user.pw_uid, guest.user.pw_gid)
    for name in _NEEDED:
        guest.own(copy_of=CHECKOUT / name, at=Path("checkout", name))
    built = [found.root for found in map(find, IMAGES) if found is not None]
    for file in (*built, shelf_plugin()):
        at = Path("cache", *file.parts[-3:-1])
        guest.own(copy_of=file.parent, at=at)
    with suppress(OSError):
        if guest.run("-c", "import libvirt, numpy, pytest").returncode == 0:
            return guest
    # it is large: a copy takes longer than all the rest
    return replace(guest, environment=guest.own(copy_of=guest.environment, at=Path("environment")))


def test_an_unprivileged_user_gets_the_same_verdict(guest: Guest, tmp_path: Path) -> None:
    results, kept = guest.home / "results", tmp_path / "results"
    completed = guest.run(
        "-m", "pytest", "suites/powercut", "-p", "no:cacheprovider",
        "--matrix", "quick", "-k", "always and nasonly", "--trials", "1", "--duration", str(_LOAD_S),
        "--boot", "cold",
        "--results", str(results), "--scratch", str(guest.home),
    )  # fmt: skip
    if results.exists():  # their home is removed in any case, and with it each console
        shutil.copytree(results, kept, symlinks=True)
    records = read_records(kept / "latest" / TRIALS_FILE).records
    output = f"{completed.stdout}{completed.stderr}\nconsoles: {kept}/latest/trials"
    assert completed.returncode == 0, output
    assert {record.axes["fate"]: record.verdict for record in records} == {
        "nasonly": Verdict.INTACT,
    }, output
