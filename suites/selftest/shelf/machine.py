"""Random sessions with a shelf, by hypothesis: requests in flight, freezes, cuts, cuts of what is left.

A sequence is up to `_SESSIONS_MAX` of them. Each ends with a cut; its log is held against what the
client saw, and many views of it against the specification. The next one goes on over one of those.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from suites.selftest.shelf.freeze_oracle import check_freeze
from suites.selftest.shelf.generator import Generator, draw_freeze
from suites.selftest.shelf.log_oracle import check_log
from suites.selftest.shelf.requests import Difference, Request, Verb, payload
from suites.selftest.shelf.rig import Build, SanitizerReport, Server, of_view
from suites.selftest.shelf.session import Session, SessionDisk
from suites.selftest.shelf.views_oracle import (
    Expected,
    draw_views,
    expected,
    must_be_as_expected,
    write_views,
)
from torture.facts.recording.events import Recording

DISK_BYTES = 65536
_SESSIONS_MAX = 3
_STEPS = 12
_VIEWS = 3
_ARMED_FROM_THE_START = 0.4
_STEPS_BEFORE_A_FREEZE = 2
_STEPS_BEFORE_A_CUT = 4

_SHAPES: tuple[tuple[dict[str, Any], ...], ...] = (
    (
        {"sector": 512, "profile": {"write_us": 800}},
        {"sector": 4096, "profile": {"write_us": 300, "flush_us": 200}},
        {"sector": 512, "profile": {}},
    ),
    (
        {"sector": 4096, "profile": {}},
        {"sector": 512, "profile": {"write_us": 100, "flush_us": 600}},
    ),
    (
        {"sector": 512, "profile": {"read_us": 100, "mib_per_s": 400, "write_us": 50}},
        {"sector": 4096, "profile": {"write_us": 300, "flush_us": 50, "serial": True}},
    ),
)
"""Latencies make requests overlap and end out of order."""

_seeds = st.integers(0, 2**64 - 1)


class ShelfMachine(RuleBasedStateMachine):
    """One sequence. `folder` is empty, and is emptied again."""

    def __init__(self, build: Build, folder: Path, found: list[BaseException]) -> None:
        super().__init__()
        self._found = found
        self._build = build
        self._folder = folder
        self._sessions = 0
        self._steps = 0
        self._steps_of_session = 0
        # steps decide which rules there are, and nothing else may: hypothesis repeats what it drew
        self._seed = 0
        self._generator = Generator()
        self._session: Session
        self._servers: list[Server] = []
        self._wanted: list[Expected] = []
        self._is_broken = False

    @initialize(shape=st.sampled_from(_SHAPES), seed=_seeds)
    def begin(self, shape: tuple[dict[str, Any], ...], seed: int) -> None:
        self._seed = seed
        blank = bytes(DISK_BYTES)
        disks = [
            SessionDisk(name=f"d{place}", size=DISK_BYTES, base=blank, **each)
            for place, each in enumerate(shape)
        ]
        with self._breaking():
            self._start(disks)

    def _drawing(self, seed: int) -> random.Random:
        """Hypothesis likes to repeat itself; where a step stands makes it another one."""
        self._steps += 1
        self._steps_of_session += 1
        return random.Random(f"{self._seed} {self._steps} {seed}")

    def _start(self, disks: list[SessionDisk]) -> None:
        others = [each.export for each in self._wanted]
        self._session = Session(self._build, self._folder, self._sessions, disks, others)
        self._servers.append(self._session.server)
        self._sessions += 1
        self._steps_of_session = 0
        self._check_views(self._session.server)
        rng = self._drawing(0)
        if rng.random() < _ARMED_FROM_THE_START:
            self._session.freeze(draw_freeze(rng, disks, rng.randrange(40)))

    def _check_views(self, server: Server) -> None:
        contents = server.contents({each.name: DISK_BYTES for each in self._wanted})
        must_be_as_expected(self._wanted, contents)

    @rule(seed=_seeds, wait=st.sampled_from(["no", "last", "all"]))
    def request_several(self, seed: int, wait: str) -> None:
        """At once, and wait for none of them, for the last one, or for all that are open."""
        rng = self._drawing(seed)
        with self._breaking():
            count = 1 if self._session.is_frozen else rng.randint(1, 10)
            wanted = self._generator.requests(rng, self._session.disks, count)
            requests = [self._session.issue(request) for request in wanted]
            if wait != "no":
                self._session.wait(requests[-1:] if wait == "last" else None)

    @rule(seed=_seeds, wait=st.booleans())
    def flush_amid_writes(self, seed: int, wait: bool) -> None:
        """A flush among writes of its disk: it covers some of them, and only the log knows which."""
        rng, disks = self._drawing(seed), self._session.disks
        place = rng.randrange(len(disks))
        with self._breaking():
            for _ in range(rng.randint(1, 6)):
                self._session.issue(self._generator.write(rng, disks, place))
            flush = self._session.issue(Request(verb=Verb.FLUSH, disk=place))
            for _ in range(rng.randint(0, 3)):
                self._session.issue(self._generator.write(rng, disks, place))
            if wait:
                self._session.wait([flush])

    @rule(seed=_seeds)
    def read_amid_writes(self, seed: int) -> None:
        """An incomplete request is not there; a mark says that the read came first."""
        rng, disks = self._drawing(seed), self._session.disks
        place = rng.randrange(len(disks))
        with self._breaking():
            for _ in range(rng.randint(1, 3)):
                self._session.issue(self._generator.write(rng, disks, place))
            read = Request(verb=Verb.READ, disk=place, length=16 * disks[place].sector)
            self._session.wait([self._session.issue(read)])
            self._session.issue(self._generator.mark())

    @rule()
    def read_everything(self) -> None:
        """With nothing in flight, so that there is only one thing to read."""
        with self._breaking():
            self._session.wait()
            requests = [
                Request(verb=Verb.READ, disk=place, length=DISK_BYTES)
                for place in range(len(self._session.disks))
            ]
            self._session.wait([self._session.issue(request) for request in requests])

    @precondition(lambda self: self._steps_of_session >= _STEPS_BEFORE_A_FREEZE)
    @rule(seed=_seeds)
    def freeze(self, seed: int) -> None:
        """Tell it when to freeze, or tell it another time."""
        rng = self._drawing(seed)
        with self._breaking():
            if not self._session.is_frozen:
                seq = self._session.status()["seq"]
                self._session.freeze(draw_freeze(rng, self._session.disks, seq))

    @precondition(lambda self: self._steps_of_session >= _STEPS_BEFORE_A_CUT)
    @precondition(lambda self: self._sessions < _SESSIONS_MAX)
    @rule(seed=_seeds)
    def cut_power(self, seed: int) -> None:
        """End this session, and go on over one of the views of it."""
        with self._breaking():
            self._end_session(self._drawing(seed))
            go_on = seed % _VIEWS
            self._start([self._went_on(disk, go_on) for disk in self._session.disks])

    def _went_on(self, disk: SessionDisk, view: int) -> SessionDisk:
        file = f"v{self._sessions - 1}.{view}.view.json"
        name = f"{file.removesuffix('.view.json')}.{disk.name}"
        (holds,) = (each.holds for each in self._wanted if each.name == name)
        return SessionDisk(
            name=disk.name,
            size=disk.size,
            sector=disk.sector,
            profile=disk.profile,
            base=holds,
            source=of_view(file, disk.name),
        )

    def _end_session(self, rng: random.Random) -> None:
        """Cut, hold the log against what the client saw, and draw the views to be checked next."""
        session = self._session
        for request in self._generator.requests(rng, session.disks, rng.choice((0, 5, 10))):
            session.issue(request)
        if rng.random() < 0.5 and not session.is_frozen:
            session.freeze("now")
        if session.is_frozen:
            for place, disk in enumerate(session.disks):
                late = payload(10**6 + place, disk.sector)
                session.issue(
                    Request(verb=Verb.WRITE, disk=place, length=disk.sector, payload=late)
                )
        recording = session.end(gracefully=rng.random() < 0.3)
        self._wanted = []
        try:
            order = check_log(recording, session.disks, session.requests)
            check_freeze(
                recording, session.disks, session.requests, order, was_killed=session.was_killed
            )
            names = [disk.name for disk in session.disks]
            views = draw_views(rng, recording, names, _VIEWS)
            files = write_views(self._folder, f"v{self._sessions - 1}.", views)
            bases = {disk.name: disk.base for disk in session.disks}
            self._wanted = expected(recording, views, files, bases)
        except Difference as difference:
            difference.add_note(_last_events(recording))
            raise

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """An exception inside ends the sequence; a sanitizer's report comes before it."""
        try:
            yield
        except Exception as error:
            self._is_broken = True
            for server in self._servers:
                try:
                    server.output()
                except SanitizerReport as report:
                    self._found.append(report)
                    raise report from error
            self._found.append(error)
            raise

    def teardown(self) -> None:
        """The last cut, and the views of it."""
        try:
            if self._sessions and not self._is_broken:
                with self._breaking():
                    self._end_session(self._drawing(0))
                    self._show_views()
        finally:
            for server in self._servers:
                server.end()
            for path in self._folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _show_views(self) -> None:
        exports = [each.export for each in self._wanted]
        server = Server(self._build, self._folder, "views", exports, threads=1)
        self._servers.append(server)
        self._check_views(server)
        server.stop()


def _last_events(recording: Recording) -> str:
    return "\n".join(str(event) for event in recording.events[-80:])


def run_sequences(
    build: Build,
    folder: Path,
    sequences: int,
    *,
    is_random: bool,
    phases: tuple[Phase, ...] = (Phase.generate, Phase.shrink),
    found: list[BaseException] | None = None,
) -> None:
    """Run that many; raises what the first bad one raised. Not random: the same ones each time.

    The mistake of each bad one is also added to `found`.
    """
    seen = [] if found is None else found
    make: Callable[[], RuleBasedStateMachine] = lambda: ShelfMachine(build, folder, seen)  # noqa: E731
    run_state_machine_as_test(
        make,  # type: ignore[arg-type]
        settings=settings(
            max_examples=sequences,
            stateful_step_count=_STEPS,
            deadline=None,
            derandomize=not is_random,
            database=None,
            print_blob=True,
            phases=phases,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    if seen:
        # hypothesis discards what a sequence that it broke off itself has found in its last cut
        raise seen[0]
