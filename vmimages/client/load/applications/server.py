"""A database server of the guest: started, awaited, stopped; its log is kept."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time

TYPE_CHECKING = False  # `typing` is slow to import in the guest
if TYPE_CHECKING:
    from typing import Any

RECOVERY_PATIENCE_S = 120.0
"""For a server to start again after a crash: logs are a few MiB, which takes seconds."""
_CHECK_DEADLINE_S = 120.0
_STOP_DEADLINE_S = 45.0
_KILL_DEADLINE_S = 10.0
_POLL_S = 0.05
_LOG_LINES_MAX = 60
_LAST_WORDS_MAX = 8


def ends_at_once(job: dict[str, Any]) -> bool:
    """Whether a client that lived through a cut stops its server as a crash would: one trial in two.

    A database promises to survive either. A hole in the log is seen only if the server ends before
    its next checkpoint. Lost pages are seen only if they were written and the log is not needed any
    more. So in these trials checkpoints and writes are rare, as they are by default, and in the
    others frequent.
    """
    return bool(job.get("seed", 0) % 2)


class ServerRefusedError(Exception):
    """The server does not start: evidence about the disk, in its own words."""


class Server:
    """One server, and its folder of sockets and logs, which is not on the disk under test.

    `ready` is the log line of a server that accepts connections: earlier attempts cost it time.
    """

    def __init__(self, *, argv: list[str], folder: str, user: str, ready: str) -> None:
        self.argv = argv
        self._folder = folder
        self._user = user
        self._ready = ready
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, deadline_s: float) -> None:
        """Return once it reports that it is ready; raises `ServerRefusedError`."""
        shutil.rmtree(self._folder, ignore_errors=True)
        os.mkdir(self._folder, 0o755)  # noqa: PTH102 - pathlib is slow to import
        shutil.chown(self._folder, self._user)
        with open(f"{self._folder}/log", "wb") as log:  # noqa: PTH123 - as above
            self._process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                user=self._user,
                start_new_session=True,
            )
        end = time.monotonic() + deadline_s
        while not any(self._ready in line for line in self.log()):
            if (code := self._process.poll()) is not None:
                raise ServerRefusedError(f"it ended with {code}: {self.last_words()}")
            if time.monotonic() > end:
                raise ServerRefusedError(
                    f"it is not ready within {deadline_s:g} s: {self.last_words()}"
                )
            time.sleep(_POLL_S)

    def stop(self, number: signal.Signals) -> bool:
        """Stop it; whether it ended by this signal. If not, it is killed."""
        if self._process is None:
            return True
        self._process.send_signal(number)
        try:
            self._process.wait(_STOP_DEADLINE_S)
            return True
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_KILL_DEADLINE_S)
            return False

    def log(self) -> list[str]:
        """The last lines of its log."""
        try:
            with open(f"{self._folder}/log", errors="replace") as log:  # noqa: PTH123 - as above
                lines = [line.rstrip() for line in log]
        except OSError as error:
            return [f"no log: {error}"]
        return [line for line in lines if line][-_LOG_LINES_MAX:]

    def last_words(self) -> str:
        """The very last lines of its log, as one line."""
        return " | ".join(self.log()[-_LAST_WORDS_MAX:])


class CheckHungError(Exception):
    """A checker did not end: it found nothing, and proves nothing."""


def complaints_of(argv: list[str], *, user: str, fine: str = "") -> list[str]:
    """The output of a checker that does not end in `fine`, if its exit code or words report an error.

    Raises `CheckHungError`.
    """
    name = os.path.basename(argv[0])  # noqa: PTH119 - pathlib is slow to import
    try:
        done = _checked(argv, user)
    except subprocess.TimeoutExpired:
        raise CheckHungError(f"{name} did not end within {_CHECK_DEADLINE_S:g} s") from None
    lines = [line.strip() for line in done.stdout.decode(errors="replace").splitlines()]
    wrong = [line for line in lines if line and not (fine and line.endswith(fine))]
    if done.returncode == 0 and not (fine and wrong):
        return []
    return [f"{name}: {line}" for line in wrong] or [f"{name} returned {done.returncode}"]


def _checked(argv: list[str], user: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        user=user,
        timeout=_CHECK_DEADLINE_S,
        check=False,
    )
