"""Temporary directories with a live owner, and the place for results that outlive a run.

Each run has one directory, which it keeps locked (flock(2)) as long as it lives: the kernel
releases the lock however the run ends. A directory with a free lock has no owner and is removed.

The sandbox of a trial worker: namespaces that end with it, together with all their processes.

A worker runs as the child of an init of its own process namespace. When the controller ends in any
way, `kill -9` included, `setpriv --pdeathsig` ends `unshare`, and `--kill-child` ends the init.
With the init the kernel ends every process in the namespace, such as QEMU and nbdkit
(pid_namespaces(7)). The network namespace with its bridge and taps goes with its last process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from torture.errors import HarnessError
from torture.files import is_locked, locked, try_lock

CACHE_VARIABLE = "TORTURE_CACHE"


def cache_root() -> Path:
    """`$TORTURE_CACHE`, else `powercut-torture` in the user's cache folder."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "powercut-torture"


def own_cache_root() -> Path:
    """The same folder, or the user's own cache when another user owns that folder."""
    root = cache_root()
    if root.exists() and not os.access(root, os.W_OK):
        return Path.home() / ".cache" / "powercut-torture"
    return root


_LOCK = "owner.lock"
_ENOUGH_MEMORY_BYTES = 6 * 1024**3
_LOCK_DEADLINE_S = 60
_FREE_BYTES_MIN = 512 * 1024**2
_SHARED_MEMORY, _DISK = Path("/dev/shm"), Path("/var/tmp")


def default_base() -> Path:
    """Where scratch goes: memory when there is plenty (flushes are free there), else /var/tmp."""
    if _SHARED_MEMORY.is_dir() and os.access(_SHARED_MEMORY, os.W_OK):
        free = shutil.disk_usage(_SHARED_MEMORY).free
        available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if min(free, available) >= _ENOUGH_MEMORY_BYTES:
            return _SHARED_MEMORY
    return _DISK


class Scratch:
    """The scratch directories of this user under one base, private to the user.

    Without a base, the best one at present is used: an earlier start may have chosen another.
    """

    def __init__(self, base: Path | None = None) -> None:
        self.home = _home_in(base or default_base())
        homes = () if base else (_home_in(_SHARED_MEMORY), _home_in(_DISK))
        self._elsewhere = tuple(home for home in homes if home != self.home)

    @contextmanager
    def directory(self, name: str) -> Iterator[Path]:
        """A new directory, locked by this process and removed in the end.

        Raises `HarnessError` when it cannot be made.
        """
        path = self.home / name
        with self._exclusively():
            if (free := shutil.disk_usage(self.home).free) < _FREE_BYTES_MIN:
                raise HarnessError(
                    f"only {free // 1024**2} MiB are free in {self.home}, disks need at least "
                    f"{_FREE_BYTES_MIN // 1024**2} MiB",
                    hint="free some space, or set --scratch",
                )
            try:
                path.mkdir(mode=0o700)
                lock = (path / _LOCK).open("w")
            except OSError as error:
                raise HarnessError(f"no scratch {path}: {error}", hint="set --scratch") from error
            try_lock(lock)  # a new lock: no process holds it
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
            lock.close()

    def remove_abandoned(self) -> list[Path]:
        """Remove the directories whose owner is gone, no others; returns their paths.

        Left-overs in memory reduce the next start's free memory, so that it puts its scratch
        elsewhere.
        """
        removed = []
        for home in self._elsewhere:
            if home.is_dir():
                with suppress(HarnessError):  # owned by another user, and not needed here
                    removed += Scratch(home.parent).remove_abandoned()
        with self._exclusively():
            for path in sorted(self.home.iterdir()):
                if path.is_dir() and not is_locked(path / _LOCK):
                    shutil.rmtree(path, ignore_errors=True)
                    removed.append(path)
        return removed

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Hold off removals between the creation of a directory and its lock."""
        with ExitStack() as stack:
            try:
                self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
                if self.home.stat().st_uid != os.getuid():
                    raise HarnessError(f"{self.home} belongs to another user", hint="set --scratch")
                stack.enter_context(locked(self.home / ".lock", deadline_s=_LOCK_DEADLINE_S))
            except OSError as error:
                raise HarnessError(
                    f"no scratch in {self.home}: {error}", hint="set --scratch"
                ) from error
            yield


def _home_in(base: Path) -> Path:
    return base / f"torture-{os.getuid()}"


PRIVATE = Path("/run/libvirt")
"""A folder in memory, one for each sandbox and gone with it. Sockets lie there, whose paths must be
short, and so does some state of libvirt, which has that place whatever its root."""

_MAKE_PRIVATE = f"""\
mkdir -p {PRIVATE} 2>/dev/null
mount -t tmpfs none {PRIVATE} 2>/dev/null || {{ mount -t tmpfs none /run && mkdir {PRIVATE}; }}
exec "$@"
"""

_TOOLS = ("setpriv", "unshare", "tini")
USER_NAMESPACES_HINT = (
    "run as root, or allow user namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1 "
    "user.max_user_namespaces=15000 (and kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu)"
)


def sandboxed(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command line that runs `argv` in a sandbox with all rights in it, until its parent ends.

    Raises `HarnessError` when a tool for it is missing.
    """
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise HarnessError(f"not installed: {', '.join(missing)}", hint="tools/run --setup-only")
    # not as the namespace's root: libvirt would take itself for privileged and drop groups, in vain
    user = () if os.geteuid() == 0 else ("--user", "--map-current-user", "--keep-caps")
    return (
        "setpriv", "--pdeathsig", "KILL", "--",
        "unshare", *user, "--net", "--mount", "--pid", "--fork", "--kill-child=KILL",
        "--mount-proc", "--",
        "tini", "-s", "--", "sh", "-c", _MAKE_PRIVATE, "sandbox", *argv,
    )  # fmt: skip


def sandbox_refusal() -> str | None:
    """Why this user cannot have a sandbox here, or None when a sandbox works."""
    try:
        completed = subprocess.run(
            sandboxed(("ip", "link", "set", "lo", "up")),
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, HarnessError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if completed.returncode == 0 else completed.stderr.strip() or "no reason given"
