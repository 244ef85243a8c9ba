"""A user without privileges, for runs that are somebody else's."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from torture.checkout import CHECKOUT
from torture.host.native import shelf_plugin
from torture.images import IMAGES, find

_USER = "nobody"
_DEADLINE_S = 60
_NEEDED = ("torture", "fixtures", "suites", "vmimages", "pytest.ini", "pyproject.toml")
"""Of the checkout, to cut."""
_REFUSAL = "from torture.host.sandbox import sandbox_refusal; print(sandbox_refusal())"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stranger:
    """A user without privileges, with all that a run needs in a folder of their own.

    Theirs are copies: the checkout may lie where they cannot look, as in the home of root, and a cautious
    umask may have made it unreadable for them.
    """

    user: pwd.struct_passwd
    home: Path
    environment: Path = Path(sys.prefix)
    """Of Python."""

    def start(self, *arguments: str, output: IO[bytes] | int) -> subprocess.Popen[bytes]:
        """Python with these arguments, in their checkout."""
        own = {"HOME": str(self.home), "TORTURE_CACHE": str(self.home / "cache")}
        return subprocess.Popen(
            [self.environment / "bin" / "python", *arguments],
            cwd=self.home / "checkout",
            env=os.environ | own,
            user=self.user.pw_uid,
            group=self.user.pw_gid,
            extra_groups=(),
            umask=0o077,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    def printed(self, *arguments: str) -> str:
        """What Python prints with these arguments; raises `OSError` or `AssertionError` if it fails."""
        with self.start(*arguments, output=subprocess.PIPE) as process:
            said, _ = process.communicate(timeout=_DEADLINE_S)
        assert process.returncode == 0, said.decode()
        return said.decode()

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


@contextmanager
def unprivileged_stranger() -> Iterator[Stranger | None]:
    """Somebody without privileges; None where everybody is that already, or they can have no sandbox."""
    if os.geteuid() != 0:
        yield None
        return
    user = pwd.getpwnam(_USER)
    with TemporaryDirectory(prefix="torture-home-", dir="/var/tmp") as name:
        somebody = _furnished(Stranger(user=user, home=Path(name)))
        refusal = somebody.printed("-c", _REFUSAL).strip()
        yield somebody if refusal == "None" else None


def _furnished(somebody: Stranger) -> Stranger:
    """With the checkout, the guest images and the shelf; and with an environment, if they need one."""
    os.chown(somebody.home, somebody.user.pw_uid, somebody.user.pw_gid)
    for name in _NEEDED:
        somebody.own(copy_of=CHECKOUT / name, at=Path("checkout", name))
    built = [found.root for found in map(find, IMAGES) if found is not None]
    for file in (*built, shelf_plugin()):
        at = Path("cache", *file.parts[-3:-1])
        somebody.own(copy_of=file.parent, at=at)
    with suppress(OSError, AssertionError):
        somebody.printed("-c", "import libvirt, numpy, pytest")
        return somebody
    # it is large: a copy takes longer than all the rest
    return replace(
        somebody, environment=somebody.own(copy_of=somebody.environment, at=Path("environment"))
    )
