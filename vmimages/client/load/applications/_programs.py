"""The common part of applications that are separate programs: running them, files, file names."""

from __future__ import annotations

import os
import subprocess

from . import ApplicationError

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from collections.abc import Iterable

_PROGRAM_S = 300.0
"""Longer than a NAS is away: a program that still hangs then has lost its disk."""


def run_program(
    argv: list[str],
    *,
    directory: str = "/",
    stdin: bytes = b"",
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program from start to end; raises `ApplicationError` when it hangs or is missing."""
    try:
        return subprocess.run(
            argv,
            cwd=directory,
            input=stdin,
            capture_output=True,
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "LC_ALL": "C.UTF-8",
                **(environment or {}),
            },
            timeout=_PROGRAM_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ApplicationError(f"{argv[0]}: {error}") from error


def checked_output(done: subprocess.CompletedProcess[bytes]) -> bytes:
    """The output of a program; raises `ApplicationError` with its own words when it failed."""
    if done.returncode != 0:
        said = words_of(done.stderr) or words_of(done.stdout)
        raise ApplicationError(f"{done.args[0]} returned {done.returncode}: {said}")
    return bytes(done.stdout)


def words_of(output: bytes, lines_max: int = 4) -> str:
    """The last lines of a program's output, in one."""
    lines = output.decode(errors="backslashreplace").splitlines()
    return "; ".join(line.strip() for line in lines[-lines_max:] if line.strip())


def write_file(path: str, content: bytes, *, is_synced: bool = False) -> None:
    """Write a file of this content, without a sync of its name; raises `OSError`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        if is_synced:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_names(directories: Iterable[str]) -> None:
    """Make the names in these directories durable; raises `OSError`.

    "Calling fsync() does not necessarily ensure that the entry in the directory containing the file
    has also reached disk. For that an explicit fsync() on a file descriptor for the directory is
    also needed" (fsync(2)). A program that syncs its files before it renames them has promised no
    more than that.
    """
    for directory in directories:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
