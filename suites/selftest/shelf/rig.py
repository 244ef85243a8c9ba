"""A shelf of the test's own: builds of the plugin, nbdkit processes, many requests in flight."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbd

from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.recording.disks import ShelfDisk
from torture.machines.host.native import SHELF_FLAGS, SHELF_SOURCES, shelf_plugin
from torture.machines.shelf.server import Launch, NbdkitProcess, Shelf, write_configuration

DEADLINE_S = 30.0
"""Of anything that takes milliseconds: only a hang reaches it."""
SANITIZERS = ("address,undefined", "thread")

_SANITIZED = ("-O0", "-g1", "-fno-omit-frame-pointer")
_PRELOADED = {"address,undefined": ("asan", "stdc++"), "thread": ("tsan", "stdc++")}
_SUPPRESSED = Path(__file__).with_name("tsan.supp")
_REPORTS = ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error:",
            "WARNING: ThreadSanitizer", "FATAL: ThreadSanitizer")  # fmt: skip
_FREE_BUFFERS: defaultdict[int, list[bytearray]] = defaultdict(list)
_NBDKIT_FELL = "raw_send_socket: Assertion"
_POLL_MS = 5
_SOCKETS = Path("/proc/net/unix")
_LISTENS = "00010000"
"""SO_ACCEPTCON among the flags in there."""
_THREADS = 8
"""Of each connection."""


class NbdkitFell(HarnessError):
    """Nbdkit itself fell, as before 1.34 it may when a client goes with answers on their way to it."""


class SanitizerReport(AssertionError):
    """A sanitizer had something to say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """A build of the plugin, and how it is started."""

    launch: Launch
    is_sanitized: bool = False

    def chosen(self, mutant: str) -> Build:
        """The same with one of its mutations switched on."""
        environment = {**self.launch.environment, "SHELF_MUTANT": mutant}
        return replace(self, launch=replace(self.launch, environment=environment))

    def wrapped(self, *wrapper: str) -> Build:
        """The same, started by a command that becomes nbdkit."""
        return replace(self, launch=replace(self.launch, wrapper=wrapper))


def build(sources: Path = SHELF_SOURCES, *, optimised: bool = True) -> Build:
    """The plugin as the product uses it, or quickly compiled."""
    flags = SHELF_FLAGS if optimised else ("-O0",)
    plugin = shelf_plugin(sources=sources, flags=flags)
    return Build(launch=Launch(plugin=str(plugin), threads=_THREADS))


def sanitized_build(sanitizer: str, sources: Path = SHELF_SOURCES) -> Build:
    """The plugin with a sanitizer, whose run-time is loaded before nbdkit, which knows nothing of it."""
    flags = (*_SANITIZED, f"-fsanitize={sanitizer}", "-fno-sanitize-recover=undefined")
    plugin = shelf_plugin(sources=sources, flags=flags)
    libraries = [_library(name) for name in _PRELOADED[sanitizer]]
    environment = {
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": f"halt_on_error=1:abort_on_error=1:suppressions={_SUPPRESSED}",
    }
    launch = Launch(plugin=str(plugin), environment=environment, threads=_THREADS)
    if sanitizer == "thread":
        # it gives up where addresses are too random, and takes milliseconds to start a thread
        launch = replace(launch, wrapper=("setarch", "-R"), threads=3)
    return Build(launch=launch, is_sanitized=True)


def _library(name: str) -> str:
    argv = ["g++", f"-print-file-name=lib{name}.so"]
    found = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    return str(Path(found.stdout.strip()).resolve())


def disk(name: str, *, size: int = 65536, sector: int = 512, **more: Any) -> dict[str, Any]:
    """An entry of `disks`; `profile` and `source` as in the contract."""
    return {"name": name, "size": size, "sector": sector, **more}


def of_view(view: str, name: str) -> dict[str, str]:
    """The `source` of a disk that is one of a view."""
    return {"view": view, "disk": name}


def of_cut(folder: Path, cut: object) -> dict[str, str]:
    """The same of `d0` with all that was completed at a cut of the recording `life` in a folder."""
    view = {"schema": 1, "recording": "life", "cut": cut, "disks": {"d0": {"policy": "all"}}}
    (folder / "cut.view.json").write_text(json.dumps(view))
    return of_view("cut.view.json", "d0")


def held_at_cut(folder: Path, cut: int, size: int) -> bytes:
    """That disk, as a shelf serves it."""
    server = Server(build(), folder, "view", [disk("d0", size=size, source=of_cut(folder, cut))])
    held = server.contents({"d0": size})["d0"]
    server.stop()
    return held


def connected(socket: Path, export: str) -> nbd.NBD:
    """A connection of libnbd's own, for one request after the other."""
    handle = nbd.NBD()
    handle.set_export_name(export)
    handle.connect_unix(str(socket))
    return handle


@contextmanager
def shelf_of_one_disk(**of_disk: Any) -> Iterator[Shelf]:
    """The product's shelf with a disk `d`, of this profile or with this fault."""
    with TemporaryDirectory(dir="/tmp") as name:
        shelf = Shelf(directory=Path(name) / "shelf", socket=Path(name) / "s")
        shelf.start([ShelfDisk(serial="d", size_mib=64, **of_disk)])
        try:
            yield shelf
        finally:
            shelf.stop()


def _listens(socket: Path) -> bool:
    """Whether it takes connections: nbdkit binds its socket a moment before it listens."""
    if not socket.exists():
        return False
    sockets = [line.split() for line in _SOCKETS.read_text().splitlines()]
    return any(fields[-1] == str(socket) and fields[3] == _LISTENS for fields in sockets)


class Server:
    """A shelf in `folder`, which needs a short path as sockets do; `name` is that of its files."""

    def __init__(
        self,
        plugin: Build,
        folder: Path,
        name: str,
        disks: Sequence[dict[str, Any]],
        *,
        recording: str | None = None,
        threads: int | None = None,
        configuration: str | None = None,
    ) -> None:
        """Start it; `configuration`, sensible or not, replaces all other settings."""
        self.configuration = folder / f"{name}.json"
        self.socket = folder / f"{name}.sock"
        write_configuration(self.configuration, disks, recording=recording)
        if configuration is not None:
            self.configuration.write_text(configuration)
        self._process = NbdkitProcess(
            plugin.launch if threads is None else replace(plugin.launch, threads=threads),
            f"config={self.configuration}",
            socket=self.socket,
            errors=folder / f"{name}.err",
        )
        self._wait_until_up()

    def _wait_until_up(self) -> None:
        end = time.monotonic() + DEADLINE_S
        while not _listens(self.socket):
            if self._process.exit_code is not None:
                raise HarnessError(f"nbdkit ended at once: {self.output()}")
            if time.monotonic() > end:
                self.end()
                raise DeadlineExceeded(f"no socket of nbdkit: {self.output()}")
            time.sleep(0.0005)

    @property
    def pid(self) -> int:
        """Of nbdkit."""
        return self._process.pid

    def output(self) -> str:
        """Its output; raises `SanitizerReport` when a sanitizer did."""
        output = self._process.output()
        if any(report in output for report in _REPORTS):
            raise SanitizerReport(output)
        return output

    def line(self, export: str) -> Line:
        """A connection; raises `nbd.Error` when it is refused."""
        (line,) = self.lines([export])
        return line

    def lines(self, exports: Iterable[str]) -> list[Line]:
        """A connection to each export, made at once."""
        lines = [Line(self, export) for export in exports]
        for line in lines:
            line.until(lambda line=line: not line.handle.aio_is_connecting())  # type: ignore[misc]
            if not line.handle.aio_is_ready():
                raise HarnessError(f"no connection to {line.export!r}: {self.output()}")
        return lines

    def contents(self, exports: dict[str, int]) -> dict[str, bytes]:
        """All that these exports hold, each with its size, read at once."""
        lines = self.lines(exports)
        replies = [line.read(exports[line.export], 0) for line in lines]
        return {
            line.export: line.wait(reply).data() for line, reply in zip(lines, replies, strict=True)
        }

    def status(self) -> dict[str, Any]:
        """The answer of the export `control`."""
        return self.line("control").status()

    def tell(self, command: object) -> None:
        """Give the shelf a command, which it obeys before it answers."""
        self.line("control").tell(command)

    def require_healthy(self) -> None:
        """It runs, and no sanitizer complained. Raises `NbdkitFell` if it fell as is known of it."""
        self._must_have_ended_with(self._process.exit_code, wanted=None)

    def stop(self) -> None:
        """End it as its admin would; it has to end well. Raises `NbdkitFell` if that is known of it."""
        self.require_healthy()
        self._must_have_ended_with(self._process.terminate(), wanted=0)

    def _must_have_ended_with(self, code: int | None, *, wanted: int | None) -> None:
        output = self.output()
        if code == -signal.SIGABRT and _NBDKIT_FELL in output:
            raise NbdkitFell(output)
        assert code == wanted, f"nbdkit ended with {code}: {output}"

    def kill(self) -> None:
        """End it as the power does."""
        self._process.kill()
        self.output()

    def end(self) -> None:
        """End it if it runs, whatever it says."""
        self._process.kill()


@dataclass(eq=False)
class Reply:
    """The future answer of a request."""

    cookie: int
    buffer: bytearray | None = None
    is_read: bool = False
    has_ended: bool = False
    error: str | None = None
    read: bytes = b""

    def data(self) -> bytes:
        """The bytes of a read; raises `HarnessError` when it was refused."""
        if self.error is not None:
            raise HarnessError(self.error)
        return self.read

    def end(self) -> None:
        """It was answered, well: its buffer is free."""
        self.has_ended = True
        if self.buffer is not None:
            self.read = bytes(self.buffer) if self.is_read else b""
            _FREE_BUFFERS[len(self.buffer)].append(self.buffer)
            self.buffer = None


class Line:
    """One connection over libnbd. Nothing waits but `until`, `wait` and `wait_all`."""

    def __init__(self, server: Server, export: str) -> None:
        self.export = export
        self._server = server
        self.handle = nbd.NBD()
        self.handle.set_export_name(export)
        self.handle.set_strict_mode(0)
        self.handle.aio_connect_unix(str(server.socket))

    def write(self, data: bytes, offset: int, *, fua: bool = False) -> Reply:
        buffer = _buffer(len(data))
        buffer[:] = data
        shared = nbd.Buffer.from_buffer(buffer)
        return Reply(self.handle.aio_pwrite(shared, offset, flags=_fua(fua)), buffer)

    def read(self, length: int, offset: int) -> Reply:
        buffer = _buffer(length)
        shared = nbd.Buffer.from_buffer(buffer)
        return Reply(self.handle.aio_pread(shared, offset), buffer, is_read=True)

    def zero(self, length: int, offset: int, *, fua: bool = False) -> Reply:
        return Reply(self.handle.aio_zero(length, offset, flags=_fua(fua)))

    def trim(self, length: int, offset: int, *, fua: bool = False) -> Reply:
        return Reply(self.handle.aio_trim(length, offset, flags=_fua(fua)))

    def flush(self) -> Reply:
        return Reply(self.handle.aio_flush())

    def status(self) -> dict[str, Any]:
        """The answer of the export `control`."""
        status: dict[str, Any] = json.loads(self.wait(self.read(65536, 0)).data())
        return status

    def tell(self, command: object) -> None:
        """Give a command to the export `control`."""
        self.wait_all([self.write(json.dumps(command).encode(), 0)])

    def has_ended(self, reply: Reply) -> bool:
        """Whether the answer is there; takes what has arrived on the connection."""
        if reply.has_ended:
            return True
        try:
            self.handle.poll(0)
            if self.handle.aio_command_completed(reply.cookie):
                reply.end()
        except nbd.Error as error:
            reply.has_ended, reply.error = True, str(error)
        return reply.has_ended

    def wait(self, reply: Reply) -> Reply:
        """Return when the answer is there; raises `DeadlineExceeded`."""
        self.until(lambda: self.has_ended(reply))
        return reply

    def wait_all(self, replies: Iterable[Reply]) -> None:
        """Return when all answers are there, all of them good."""
        for reply in replies:
            if (error := self.wait(reply).error) is not None:
                raise HarnessError(error)

    def until(self, is_over: Callable[[], bool], *, deadline_s: float = DEADLINE_S) -> bool:
        """Poll until something is so; raises `DeadlineExceeded`, and `nbd.Error` when it broke."""
        end = time.monotonic() + deadline_s
        while not is_over():
            if time.monotonic() > end:
                raise DeadlineExceeded(f"{self.export!r} gave no answer: {self._server.output()}")
            self.handle.poll(_POLL_MS)
        return True


def poll_all(lines: Sequence[Line], timeout_ms: float) -> None:
    """Return when something can be done on one of the connections, or the time is over."""
    poller = select.poll()
    for line in lines:
        wants = line.handle.aio_get_direction()
        events = (select.POLLIN if wants & nbd.AIO_DIRECTION_READ else 0) | (
            select.POLLOUT if wants & nbd.AIO_DIRECTION_WRITE else 0
        )
        poller.register(line.handle.aio_get_fd(), events)
    poller.poll(timeout_ms)


def _buffer(length: int) -> bytearray:
    """Libnbd's module for Python (1.14) never lets go of a buffer: each is used again and again."""
    free = _FREE_BUFFERS[length]
    return free.pop() if free else bytearray(length)


def _fua(fua: bool) -> int:
    return int(nbd.CMD_FLAG_FUA) if fua else 0
