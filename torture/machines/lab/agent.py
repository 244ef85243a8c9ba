"""Commands inside a guest, over the QEMU guest agent (docs/interop/qemu-ga-ref).

Whether a saved state that did not resume is itself to blame (pure but for the exception).

libvirt reports most failures under two error codes (operation failed, internal error), so its words
decide; QEMU's own are among them. Neither is translated here: Python leaves the locale of messages
at C. The words are those of libvirt 9.0 to 11.3 (src/qemu/qemu_saveimage.c, src/conf/domain_conf.c,
src/qemu/qemu_migration.c) and QEMU 7.2 to 10 (migration/migration.c).
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Any

from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.evidence.folder import Completed

_AGENT_ANSWER_S = 15
"""A working agent answers in well under a second, even under emulation."""

_CHUNK_BYTES = 96 * 1024
"""Bytes of a file in one call to the agent: an emulated agent took more than `_AGENT_ANSWER_S` for
384 KiB."""
_FIRST_BYTES, _LAST_BYTES = 1024 * 1024, 256 * 1024
"""Bytes kept of each stream of a verbose command."""
_INTO_FILES = 'exec "$@" > "$0.stdout" 2> "$0.stderr"'
"""Shell. The files are in the guest's memory and end with it."""
_UNPACK_DEADLINE_S = 60

_DEATH_GRACE_S = 1.0
_UP_POLL_S = 0.05
_POLL_MIN_S, _POLL_MAX_S = 0.01, 0.2
_POLL_SHARE = 0.1
"""The wait before the next poll, as a share of the command's time so far."""
_END_WITH_CHILDREN = (
    'end() { kill -STOP "$1"; for child in $(pgrep -P "$1"); do end "$child"; done; kill -9 "$1"; }; '
    'end "$1"'
)
"""Shell. Every process must end: a surviving repair would write below the next check. Each is
stopped first, so that it cannot start another child."""
_KILLED_DEADLINE_S = 5
"""A process blocked in the kernel does not end even then."""


class Agent:
    """The guest agent of one running domain.

    `raise_if_dead` runs during waits, so that a guest's panic is reported at once. `must_go_on`
    runs before each call, so that a trial that cannot go on does not wait.
    """

    def __init__(self, *, domain: Any, vm: str, raise_if_dead: Callable[[], None]) -> None:
        self._domain = domain
        self._vm = vm
        self._raise_if_dead = raise_if_dead
        self._verbose_commands = 0
        self.must_go_on: Callable[[], None] = lambda: None

    def call(
        self,
        command: str,
        arguments: dict[str, object] | None = None,
        *,
        timeout_s: int = _AGENT_ANSWER_S,
    ) -> Any:
        """The `return` member of the agent's answer to one command.

        Raises `DeadlineExceeded` when it does not answer, `HarnessError` when it refuses.
        """
        self.must_go_on()
        try:
            return self._ask(command, arguments or {}, timeout_s=timeout_s)
        except HarnessError:
            self._raise_cause_of_death()
            raise

    def _ask(self, command: str, arguments: dict[str, object], *, timeout_s: int) -> Any:
        """As `call`, but does not look whether the guest died."""
        import libvirt
        import libvirt_qemu

        request = {"execute": command, "arguments": arguments}
        try:
            answer = libvirt_qemu.qemuAgentCommand(self._domain, json.dumps(request), timeout_s, 0)
        except libvirt.libvirtError as error:
            kind = DeadlineExceeded if "agent" in str(error).lower() else HarnessError
            raise kind(f"the guest agent of {self._vm} failed at {command}: {error}") from error
        return json.loads(answer)["return"]

    def _raise_cause_of_death(self) -> None:
        """Raise the reason of a death first: the agent's socket closes a moment before QEMU ends."""
        end = time.monotonic() + _DEATH_GRACE_S
        while time.monotonic() < end:
            self._raise_if_dead()
            time.sleep(_UP_POLL_S)

    def wait_until_up(self, *, deadline_s: float) -> None:
        """Return once the agent answers a ping; raises `DeadlineExceeded`, or the reason of a death.

        Just after a resume, libvirt is often not connected yet, and refuses at once. A refusal
        allows no grace here: it would take a second of each such resume.
        """
        end = time.monotonic() + deadline_s
        while True:
            self.must_go_on()
            try:
                self._ask("guest-ping", {}, timeout_s=1)
                return
            except DeadlineExceeded as error:
                self._raise_if_dead()
                if time.monotonic() > end:
                    raise DeadlineExceeded(
                        f"the guest agent of {self._vm} did not answer within {deadline_s:g} s"
                    ) from error
                time.sleep(_UP_POLL_S)
            except HarnessError:
                self._raise_cause_of_death()
                raise

    def start(self, argv: tuple[str, ...]) -> int:
        """Start a command in the guest and return its process id there."""
        arguments: dict[str, object] = {
            "path": argv[0],
            "arg": list(argv[1:]),
            "capture-output": True,
        }
        answer = self.call("guest-exec", arguments)
        return int(answer["pid"])

    def poll(self, pid: int, argv: tuple[str, ...]) -> Completed | None:
        """The result of a started command: None while it runs. Its duration is not known."""
        status = self.call("guest-exec-status", {"pid": pid})
        return self._completed(status, argv, 0.0) if status["exited"] else None

    def finish(
        self,
        pid: int,
        argv: tuple[str, ...],
        *,
        deadline_s: float,
        is_hopeless: Callable[[], bool] = lambda: False,
    ) -> Completed:
        """Wait for a started command; at its deadline it is killed and `exit_code` is None.

        Its children are killed, too, and the output so far is returned all the same. `is_hopeless`:
        whether the command is to be killed before its deadline.
        """
        begun = time.monotonic()
        killed_s: float | None = None
        while True:
            status = self.call("guest-exec-status", {"pid": pid})
            elapsed_s = time.monotonic() - begun
            if status["exited"]:
                break
            if killed_s is not None and elapsed_s > killed_s + _KILLED_DEADLINE_S:
                break
            if killed_s is None and (elapsed_s > deadline_s or is_hopeless()):
                self.start(("sh", "-c", _END_WITH_CHILDREN, "end", str(pid)))
                killed_s = elapsed_s
            time.sleep(min(max(_POLL_MIN_S, elapsed_s * _POLL_SHARE), _POLL_MAX_S))
        completed = self._completed(status, argv, elapsed_s)
        return completed if killed_s is None else replace(completed, exit_code=None)

    def _completed(
        self, status: dict[str, Any], argv: tuple[str, ...], elapsed_s: float
    ) -> Completed:
        exit_code = None
        if status["exited"]:
            # a command that a signal ended has no exit code: use the shell's convention
            exit_code = status.get("exitcode", 128 + status.get("signal", 0))
        return Completed(
            vm=self._vm,
            argv=argv,
            exit_code=exit_code,
            stdout=_decode(status.get("out-data")),
            stderr=_decode(status.get("err-data")),
            duration_ms=round(elapsed_s * 1000),
        )

    def run(self, argv: tuple[str, ...], *, deadline_s: float) -> Completed:
        """Run a command to its end; its output and exit code are evidence, never an exception."""
        return self.finish(self.start(argv), argv, deadline_s=deadline_s)

    def run_verbose(self, argv: tuple[str, ...], *, deadline_s: float) -> Completed:
        """Run a command whose output may exceed an answer; a long stream keeps its beginning and end.

        libvirt takes 10 MiB from an agent, 4 through a daemon. After a longer answer it receives
        nothing more from that agent (src/qemu/qemu_agent.c, QEMU_AGENT_MAX_RESPONSE;
        src/rpc/virnetprotocol.x).
        """
        self._verbose_commands += 1
        files = f"/run/said-{self._verbose_commands}"
        completed = self.run(("sh", "-c", _INTO_FILES, files, *argv), deadline_s=deadline_s)
        return replace(
            completed,
            argv=argv,
            stdout=self._both_ends(f"{files}.stdout"),
            stderr=self._both_ends(f"{files}.stderr"),
        )

    def _both_ends(self, path: str) -> str:
        """A file of the guest; of a long one the beginning and the end, with the size of the gap."""
        handle = self.call("guest-file-open", {"path": path, "mode": "r"})
        first = self._read(handle, _FIRST_BYTES)
        size = self._seek(handle, 0, "end")
        self._seek(handle, max(len(first), size - _LAST_BYTES), "set")
        last = self._read(handle, _LAST_BYTES)
        self.call("guest-file-close", {"handle": handle})
        left_out = size - len(first) - len(last)
        between = f"\n[{left_out} bytes are left out here]\n".encode() if left_out else b""
        return (first + between + last).decode(errors="replace")

    def _read(self, handle: int, most: int) -> bytes:
        answer = self.call("guest-file-read", {"handle": handle, "count": most})
        return base64.b64decode(answer["buf-b64"])

    def _seek(self, handle: int, offset: int, whence: str) -> int:
        """The resulting position, from the file's beginning."""
        asked = {"handle": handle, "offset": offset, "whence": whence}
        return int(self.call("guest-file-seek", asked)["position"])

    def put_program(self, path: str, content: bytes) -> None:
        """Put an executable file into the guest; raises `HarnessError`."""
        packed = f"{path}.gz"
        handle = self.call("guest-file-open", {"path": packed, "mode": "w"})
        data = gzip.compress(content, mtime=0)
        for first in range(0, len(data), _CHUNK_BYTES):
            chunk = base64.b64encode(data[first : first + _CHUNK_BYTES]).decode()
            self.call("guest-file-write", {"handle": handle, "buf-b64": chunk})
        self.call("guest-file-close", {"handle": handle})
        script = 'gunzip --force "$1.gz" && chmod 755 "$1"'
        done = self.run(("sh", "-c", script, "put", path), deadline_s=_UNPACK_DEADLINE_S)
        if done.exit_code != 0:
            raise HarnessError(
                f"{path} could not be written in {self._vm}: {done.exit_code}: {done.stderr}"
            )

    def set_clock(self) -> None:
        """Give the guest the host's time: a resumed guest has the time of its saving.

        `guest-set-time` is unsuitable: it also sets a hardware clock by a separate program.
        """
        argv = ("date", "--utc", "--set", f"@{time.time():.3f}")
        self.run(argv, deadline_s=_AGENT_ANSWER_S)


def _decode(data: str | None) -> str:
    return base64.b64decode(data).decode(errors="replace") if data else ""


class StateFault(StrEnum):
    """How far a failure to resume is the fault of the saved state."""

    NONE = "none"
    """Another resource was missing or in the way, or the cause is unknown."""
    POSSIBLE = "possible"
    """QEMU or the guest failed without a reason: a damaged state does that, a busy host too."""
    CERTAIN = "certain"
    """The file is damaged, or is the state of another machine."""


class StartRefused(HarnessError):
    """libvirt did not start a machine. `refusal` is its message, without the rest of QEMU's log.

    All lives of a machine share the log, so its last lines may be about an earlier one.
    """

    def __init__(self, message: str, *, refusal: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.refusal = refusal


_OUT_OF_MEMORY = re.compile(r"Cannot allocate memory")

_DAMAGED_OR_FOREIGN = re.compile(
    r"""
      failed\ to\ read\ (qemu\ header|domain\ XML|cookie)
    | save\ image\ is\ incomplete
    | image\ magic\ is\ incorrect
    | image\ version\ is\ not\ supported
    | invalid\ header\ data\ length
    | (unsupported\ save\ image|invalid\ compressed\ save)\ format
    | \A(\((domain_definition|save\ cookie)\):|at\ line\ )\d+:
    | does\ not\ match\ source
    | guest\ CPU\ doesn't\ match\ specification
    | load\ of\ migration\ failed
    """,
    re.VERBOSE | re.IGNORECASE,
)

_WITHOUT_A_REASON = re.compile(
    r"""
      unexpectedly\ closed\ the\ monitor(\ \(vm='[^']*'\))?\s*$
    | unexpectedly\ closed\ the\ monitor.*Assertion
    | job\ '[^']*'\ (unexpectedly\ )?failed
    | no\ domain\ with\ matching\ name
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def fault_of_state(error: HarnessError) -> StateFault:
    """The saved state's share in a failure to resume.

    An error other than a refused start comes from a resumed guest: it is silent, or it died.
    """
    if not isinstance(error, StartRefused):
        return StateFault.POSSIBLE
    refusal = error.refusal
    if _OUT_OF_MEMORY.search(refusal):
        return StateFault.NONE
    if _DAMAGED_OR_FOREIGN.search(refusal):
        return StateFault.CERTAIN
    return StateFault.POSSIBLE if _WITHOUT_A_REASON.search(refusal) else StateFault.NONE
