"""The cache of images: finished ones appear at once and whole, unfinished ones leave nothing.

Layout: `bases/NAME-KEY/` and `images/NAME-KEY/` are finished and never written again. `work/` holds
builds under way, each locked by its builder. `locks/` has one file a key; `logs/` has the builds'
logs.

An image by its content. Standard library only.

An image's key is a hash of its recipe and of the names of its packages. Hosts that build on different
days may have other versions of these under the same key; the digest of the content tells them apart.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

from torture.errors import HarnessError
from torture.files import is_locked, locked, try_lock, write_whole
from torture.machines.host.scratch import CACHE_VARIABLE, cache_root

ROOM_BYTES = 4 * 1024**3
"""The peak need of a build from nothing, with half as much to spare. The roots of all bases lie
unpacked side by side (the kernel's alone is 1.1 GiB), beside their archives."""

_OWNER = "owner.lock"
_WORK_DEADLINE_S = 60
_UNUSED_DAYS_MAX = {"bases": 60, "images": 2}
"""Images cost seconds and change with every edit of a guest's file; bases cost minutes."""


class Cache:
    """The folder of finished images and bases, shared by all builders of a user."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = (root or cache_root()).absolute()

    def place(self, kind: str, slot: str) -> Path:
        """The path of a slot's finished folder (`NAME-KEY`), which may not exist yet."""
        return self.root / kind / slot

    def find(self, kind: str, slot: str) -> Path | None:
        """The finished folder of a slot, marked as used just now; None when there is none."""
        place = self.place(kind, slot)
        if not place.is_dir():
            return None
        with suppress(OSError):  # a cache built by another user is good to read
            os.utime(place)
        return place

    @property
    def compiled(self) -> Path:
        """The archive with the compilers' cache of source trees: the last build's stays."""
        return self.root / "compiled.tar"

    def log(self, slot: str) -> Path:
        """The log of a slot's last build."""
        return self.root / "logs" / f"{slot}.log"

    def prepare(self) -> None:
        """Make the folders; remove the left-overs of dead builders and long unused results."""
        try:
            for name in ("bases", "images", "work", "locks", "logs"):
                (self.root / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HarnessError(
                f"cannot write the image cache {self.root}: {error}",
                hint=f"set {CACHE_VARIABLE} to a folder you may write",
            ) from error
        with locked(self._lock_of("work"), deadline_s=_WORK_DEADLINE_S):
            for left in (self.root / "work").iterdir():
                if not is_locked(left / _OWNER):
                    _remove(left)
        for kind, days in _UNUSED_DAYS_MAX.items():
            for place in (self.root / kind).iterdir():
                if time.time() - place.stat().st_mtime > days * 86400:
                    _remove(place)

    def require_room(self) -> None:
        """Raise `HarnessError` unless a build from nothing has room."""
        free = shutil.disk_usage(self.root).free
        if free < ROOM_BYTES:
            raise HarnessError(
                f"{self.root} has {free / 1024**3:.1f} GiB free,"
                f" a build needs {ROOM_BYTES / 1024**3:.0f} GiB",
                hint=f"make room, or set {CACHE_VARIABLE} to a folder on another disk",
            )

    @contextmanager
    def locked(
        self,
        slot: str,
        *,
        deadline_s: float,
        progress: Callable[[str], None],
        stop: Event | None = None,
    ) -> Iterator[None]:
        """Hold a slot's lock; while another builder has it, report that once and wait.

        Raises `DeadlineExceeded` when it does not come in time, `HarnessError` when `stop` is set.
        """

        def look_up() -> None:
            if stop and stop.is_set():
                raise HarnessError("stopped waiting for a build", hint="tools/images build")
            if not reported:
                reported.append(slot)
                progress(f"{slot}: another process builds it, waiting for it")

        reported: list[str] = []
        with locked(self._lock_of(slot), deadline_s=deadline_s, waiting=look_up):
            yield

    @contextmanager
    def workspace(self, slot: str) -> Iterator[tuple[Path, int]]:
        """A folder for one build, and the descriptor of its lock for the build's children to keep.

        It is removed afterwards in every case; `publish` takes the result out of it before.
        """
        with locked(self._lock_of("work"), deadline_s=_WORK_DEADLINE_S):
            work = Path(tempfile.mkdtemp(prefix=f"{slot}.", dir=self.root / "work"))
            owner = os.open(work / _OWNER, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try_lock(owner)  # it is new: no process holds its lock
        try:
            yield work, owner
        finally:
            _remove(work)
            os.close(owner)

    def publish(self, made: Path, kind: str, slot: str) -> Path:
        """Move a finished folder to its place, after its content is safely on disk."""
        place = self.place(kind, slot)
        for path in [*made.iterdir(), made]:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        made.chmod(0o755)
        made.rename(place)
        return place

    def forget(self, kind: str, slot: str) -> None:
        """Remove a finished folder, if there is one."""
        place = self.place(kind, slot)
        if place.exists():
            _remove(place)

    def _lock_of(self, name: str) -> Path:
        return self.root / "locks" / f"{name}.lock"


def _remove(folder: Path) -> None:
    # A killed builder may have left /dev or /proc mounted in its root: never go in there.
    subprocess.run(
        ["rm", "-rf", "--one-file-system", "--", str(folder)],
        capture_output=True,
        timeout=300,
        check=False,
    )


ROOT, KERNEL, INITRD = "root.sqfs", "vmlinuz", "initrd"
MANIFEST = "manifest.json"
"""The versions of the packages in the root."""
DIGEST = "sha256"
"""The file that keeps the digest."""
_CONTENT = tuple(sorted((ROOT, KERNEL, INITRD)))


def content_digest(folder: Path) -> str:
    """The SHA-256 of an image's content; kept in its folder once it was computed.

    In the folder, `sha256sum initrd root.sqfs vmlinuz | sha256sum` prints the same.
    """
    file = folder / DIGEST
    if file.exists():
        return file.read_text().strip()
    digest = computed_digest(folder)
    with suppress(OSError):  # a cache built by another user is good to read
        write_whole(file, f"{digest}\n".encode())
    return digest


def computed_digest(folder: Path) -> str:
    """The same, from the files as they are now. Raises `OSError`."""
    lines = []
    for name in _CONTENT:
        with (folder / name).open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()
