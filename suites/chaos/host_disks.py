"""The disks of a host, which can be full: one for its machines, one for the campaign's results.

Both are in memory, in a mount namespace that only the fleet and the campaign share. Such a disk gets
another size while it is in use (tmpfs(5), `size`). So a full one takes no memory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Self

from suites.selftest.programs.fleet.dask_cluster import WITH_US
from torture.files import CHECKOUT

MACHINES = Path("/dev/shm")
_OTHER_PLACE = Path("/var/tmp")
"""Where scratch lies if there is little memory. Here it is the same disk."""
_ROOM_BYTES = 8 << 30
_SPARE_BYTES = 64 << 10
_TRIES = 50
_END_S = 10

_HOLD = f"""\
mount -t tmpfs -o size={_ROOM_BYTES},mode=1777 tmpfs {MACHINES} || exit
mount --bind {MACHINES} {_OTHER_PLACE} && mount -t tmpfs -o size={_ROOM_BYTES} tmpfs "$1" || exit
echo 0
while read -r size disk; do mount -o "remount,size=$size" "$disk"; echo "$?"; done
"""
"""Shell: mount the disks, then change the size of one for each line of standard input."""


class HostDisks:
    """The mount namespace with the disks; it ends with the context."""

    def __init__(self, results: Path) -> None:
        results.mkdir()
        self.results = results
        user = () if os.geteuid() == 0 else ("--user", "--map-current-user", "--keep-caps")
        self._holder = subprocess.Popen(
            ["unshare", *user, "--mount", "--", *WITH_US, "sh", "-c", _HOLD, "disks", str(results)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._answer() == "0", "no disks in memory"

    @property
    def prefix(self) -> tuple[str, ...]:
        """The command that runs another one where the disks are, in the checkout."""
        user = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")
        target = ("--target", str(self._holder.pid), f"--wdns={CHECKOUT}")
        return ("nsenter", *target, *user, "--mount", "--")

    def seen(self, path: Path) -> Path:
        """The same file, from outside (proc_pid_root(5))."""
        return Path(f"/proc/{self._holder.pid}/root") / path.relative_to("/")

    def fill(self, disk: Path) -> None:
        """Leave a disk no room for new data. It grows meanwhile, hence the tries."""
        for _ in range(_TRIES):
            used_bytes = shutil.disk_usage(self.seen(disk)).used
            if self._resize(disk, used_bytes + _SPARE_BYTES):
                return
        raise AssertionError(f"{disk} could not be filled")

    def make_room(self, disk: Path) -> None:
        """Let a full disk have room again."""
        assert self._resize(disk, _ROOM_BYTES), f"{disk} has no room"

    def _resize(self, disk: Path, size_bytes: int) -> bool:
        assert self._holder.stdin is not None
        print(size_bytes, disk, file=self._holder.stdin, flush=True)
        return self._answer() == "0"

    def _answer(self) -> str:
        assert self._holder.stdout is not None
        return self._holder.stdout.readline().strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._holder.kill()
        self._holder.communicate(timeout=_END_S)
