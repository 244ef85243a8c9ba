"""One quick cell, both fates, run by a user without privileges: the same verdicts as for root."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
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


_REFUSAL = "from torture.host.sandbox import sandbox_refusal; print(sandbox_refusal())"


def _as_user(
    user: pwd.struct_passwd, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Python with these arguments in the checkout, run by the user."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=CHECKOUT,
        env=os.environ | (environment or {}),
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=(),
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )


@pytest.fixture
def home() -> Iterator[Path]:
    """A home of the user's, with the images in its cache, outside of any folder of root's."""
    if os.geteuid() != 0:
        pytest.skip("every test of this session is run by an unprivileged user already")
    user = pwd.getpwnam(_USER)
    refusal = _as_user(user, "-c", _REFUSAL)
    if refusal.returncode != 0 or refusal.stdout.strip() != "None":
        pytest.skip(f"{_USER} cannot have a sandbox here: {refusal.stdout}{refusal.stderr}")
    with TemporaryDirectory(prefix="torture-home-", dir="/var/tmp") as name:
        folder = Path(name)
        for image in IMAGES:
            found = find(image)
            assert found is not None
            target = folder / "cache" / "images" / found.root.parent.name
            shutil.copytree(found.root.parent, target)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid)
        yield folder


def test_an_unprivileged_user_gets_the_same_verdicts(home: Path) -> None:
    user = pwd.getpwnam(_USER)
    environment = {"HOME": str(home), "TORTURE_CACHE": str(home / "cache")}
    completed = _as_user(
        user, "-m", "pytest", "suites/powercut", "-p", "no:cacheprovider",
        "--matrix", "quick", "-k", "always", "--trials", "1",
        "--results", str(home / "results"), "--scratch", str(home),
        environment=environment,
    )  # fmt: skip
    records = read_records(home / "results" / "latest" / TRIALS_FILE).records
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert {record.axes["fate"]: record.verdict for record in records} == {
        "bothdie": Verdict.INTACT,
        "nasonly": Verdict.INTACT,
    }
