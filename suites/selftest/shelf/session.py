"""One session with a shelf under test: its server, its disks, and all that a client asked of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suites.selftest.shelf.requests import Difference, Request, Verb
from suites.selftest.shelf.rig import (
    DEADLINE_S,
    Build,
    Line,
    NbdkitFell,
    Reply,
    Server,
    disk,
    poll_all,
)
from torture.errors import DeadlineExceeded
from torture.facts.recording.events import Recording, load_recording

_ASK_AGAIN_S = 0.003
"""How long nothing may happen before we ask whether the shelf is frozen."""
_LISTEN_MS = 1.0
"""How long a frozen shelf has for an answer that it must not give."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionDisk:
    """A disk of a session, and what it held at first."""

    name: str
    size: int
    sector: int
    base: bytes
    profile: dict[str, Any]
    source: dict[str, str] | None = None

    def as_json(self) -> dict[str, Any]:
        more: dict[str, Any] = {"source": self.source} if self.source else {}
        return disk(self.name, size=self.size, sector=self.sector, profile=self.profile, **more)


class Session:
    """A recording in the making. `others` are exports beside its disks, which it leaves alone."""

    def __init__(
        self,
        build: Build,
        folder: Path,
        number: int,
        disks: Sequence[SessionDisk],
        others: Sequence[dict[str, Any]] = (),
    ) -> None:
        self.disks = tuple(disks)
        self.requests: list[Request] = []
        self.is_frozen = False
        self.was_killed = False
        self.folder = folder / f"r{number}"
        self.server = Server(
            build,
            folder,
            f"s{number}",
            [*(disk.as_json() for disk in disks), *others],
            recording=self.folder.name,
        )
        self._is_sanitized = build.is_sanitized
        self._is_armed = False
        self._tick = 0
        self._open: dict[Request, tuple[Line, Reply]] = {}
        self._lines: dict[str, Line] = {}
        names = [disk.name for disk in disks]
        self._lines = dict(zip(names, self.server.lines(names), strict=True))

    @property
    def in_flight(self) -> int:
        """Requests that were not acknowledged."""
        return len(self._open)

    def issue(self, request: Request) -> Request:
        """Send a request and return."""
        line = self._line("marks" if request.verb is Verb.MARK else self._disk(request).name)
        match request.verb:
            case Verb.WRITE:
                reply = line.write(request.payload, request.offset, fua=request.fua)
            case Verb.MARK:
                reply = line.write(request.payload, 0)
            case Verb.ZERO:
                reply = line.zero(request.length, request.offset, fua=request.fua)
            case Verb.TRIM:
                reply = line.trim(request.length, request.offset, fua=request.fua)
            case Verb.READ:
                reply = line.read(request.length, request.offset)
            case _:
                reply = line.flush()
        request.issued = self._now()
        self._open[request] = (line, reply)
        self.requests.append(request)
        return request

    def wait(self, requests: Iterable[Request] | None = None) -> None:
        """Until these, or all, are acknowledged, or the shelf is known to be frozen."""
        wanted = set(self._open if requests is None else requests)
        end = time.monotonic() + DEADLINE_S
        asked_s = time.monotonic()
        while wanted & self._open.keys():
            progressed = self._listen(1.0)
            if self.is_frozen:
                return
            now_s = time.monotonic()
            if progressed:
                asked_s, end = now_s, now_s + DEADLINE_S
            elif self._is_armed and now_s - asked_s > _ASK_AGAIN_S:
                self.is_frozen = self.status()["frozen"]
                asked_s = now_s
            elif now_s > end:
                raise DeadlineExceeded(f"no answer to {[str(request) for request in wanted]}")

    def freeze(self, command: object) -> None:
        """Tell it to freeze, now or some time; the shelf obeys before it answers."""
        request = Request(verb=Verb.FREEZE, freeze=command, issued=self._now())
        self._line("control").tell({"freeze": command})
        request.acked = self._now()
        self.requests.append(request)
        self._is_armed = True
        self.is_frozen = self.is_frozen or command == "now"

    def status(self) -> dict[str, Any]:
        """The answer of the export `control`."""
        return self._line("control").status()

    def end(self, *, gracefully: bool) -> Recording:
        """End the server, gracefully unless that goes wrong; returns what it recorded."""
        if gracefully:
            self.wait()
        self._listen(_LISTEN_MS if self.is_frozen else 0)
        status = self.status()
        if self._is_sanitized and self._open:
            # With libasan and libtsan of GCC 12, messages about lost clients leave a lock of glibc's
            # locales held. The exit then waits for ever.
            gracefully = False
        unanswered = [reply for _, reply in self._open.values()]
        self._lines.clear()
        self._open.clear()
        for reply in unanswered:  # no other code will: their connections are gone
            reply.end()
        try:
            if gracefully:
                self.server.stop()
            else:
                self.server.require_healthy()
                self.was_killed = True
                self.server.kill()
        except NbdkitFell:
            gracefully = False
        recording = load_recording(self.folder)
        if status["errors"]:
            raise Difference(f"the shelf failed: {status['last_error']}")
        if status["frozen"] and status["seq"] != recording.events[-1].seq - 1:
            raise Difference(f"frozen at {status['seq']}, but the log has {recording.events[-2:]}")
        if gracefully:
            log_bytes = (self.folder / "log").stat().st_size
            if log_bytes != 64 * len(recording.events):
                raise Difference(f"a log of {len(recording.events)} events has {log_bytes} bytes")
        return recording

    def _disk(self, request: Request) -> SessionDisk:
        assert request.disk is not None
        return self.disks[request.disk]

    def _line(self, export: str) -> Line:
        if export not in self._lines:
            self._lines[export] = self.server.line(export)
        return self._lines[export]

    def _now(self) -> int:
        self._tick += 1
        return self._tick

    def _listen(self, timeout_ms: float) -> bool:
        """Take what was acknowledged, after some time if nothing has been; whether something was."""
        if self._take():
            return True
        if timeout_ms and self._open:
            poll_all(
                list({line.export: line for line, _ in self._open.values()}.values()), timeout_ms
            )
            return self._take()
        return False

    def _take(self) -> bool:
        ended = [request for request, (line, reply) in self._open.items() if line.has_ended(reply)]
        for request in ended:
            _, reply = self._open.pop(request)
            request.acked = self._now()
            if reply.error is not None:
                raise Difference(f"{request}: {reply.error}; {self.server.output()}")
            if request.verb is Verb.READ:
                request.data = reply.data()
        return bool(ended)
