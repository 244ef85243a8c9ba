"""The part of a campaign on Dask that runs in each Dask worker: a sandbox, its scratch, its lease.

Dask runs the functions at the end of this file as tasks. Their arguments and results are plain data. So
this process need not know the campaign's choices; the sandboxed worker does.

A trial's evidence as one archive in memory, on its way from the host that ran the trial.

A zip rather than a compressed tar: recordings are compressed already, and a second time would cost most
of the way's processor time. Each file is stored or deflated by itself, and has a checksum.
"""

from __future__ import annotations

import io
import platform
import queue
import secrets
import shutil
import threading
import time
import zipfile
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import util
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from torture.errors import DeadlineExceeded, HarnessError
from torture.facts.linux.kernels import Kernels
from torture.machines.host.scratch import Scratch
from torture.machines.images import find
from torture.machines.lab.saved_states import warm_directory
from torture.records.record.run_document import RunLayout
from torture.trials.workers._where import LOADED, code_digest
from torture.trials.workers.local import LocalController
from torture.trials.workers.protocol import WorkerOrders

_LEVEL = 1
_SAMPLE_BYTES = 64 * 1024
_WORTH_IT = 0.9
"""A file is deflated if its beginning shrinks to less than this share."""
_INCOMING = ".incoming"


def pack_evidence(folder: Path) -> bytes:
    """The files of a folder; no bytes where there is no folder."""
    if not folder.is_dir():
        return b""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compresslevel=_LEVEL) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_dir() or (path.is_file() and not path.is_symlink()):
                kind = zipfile.ZIP_DEFLATED if _shrinks(path) else zipfile.ZIP_STORED
                archive.write(path, path.relative_to(folder), compress_type=kind)
    return packed.getvalue()


def unpack_evidence(packed: bytes, run: RunLayout, trial: str) -> None:
    """Make a trial's folder of packed evidence: whole, and nothing else in it.

    Raises `HarnessError` for an archive that is damaged or leads out of the folder, and `OSError`
    where there is no room. The trial then has no folder.
    """
    if not packed:
        return
    folder = run.evidence_of(trial)
    incoming = run.folder / _INCOMING / trial
    shutil.rmtree(incoming, ignore_errors=True)  # left by a killed run
    try:
        incoming.mkdir(parents=True)
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            for info in archive.infolist():
                _take(archive, info, incoming)
        if folder.exists():  # of an earlier try: never mixed with this one
            shutil.rmtree(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        incoming.rename(folder)
    except (EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise HarnessError(f"the evidence of {trial} cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(incoming, ignore_errors=True)


def remove_incoming(run: RunLayout) -> None:
    """Remove the folder of evidence on its way, once none is."""
    shutil.rmtree(run.folder / _INCOMING, ignore_errors=True)


def _shrinks(path: Path) -> bool:
    if path.is_dir():
        return False
    with path.open("rb") as file:
        sample = file.read(_SAMPLE_BYTES)
    return len(zlib.compress(sample, _LEVEL)) < len(sample) * _WORTH_IT


def _take(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path) -> None:
    """Unpack a file or folder as one, whatever its mode says; a path that leads elsewhere is refused."""
    name = PurePosixPath(info.filename)
    if name.is_absolute() or ".." in name.parts or not name.parts:
        raise ValueError(f"{info.filename[:80]!r} is no path below its folder")
    if info.is_dir():
        (folder / name).mkdir(exist_ok=True)
        return
    with archive.open(info) as content, (folder / name).open("wb") as file:
        shutil.copyfileobj(content, file)


BEAT_S = 5.0
"""How often a campaign shows that it lives, and a host looks for that."""
LEASE_S = 45.0
"""A host without a sign of life of its campaign ends its sandbox after this time."""
_END_DEADLINE_S = 30.0
_POLL_S = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class HostOrders:
    """The campaign's orders for each host."""

    site: str
    """The campaign's mark: the topic of its events, and the key of its sign of life."""
    lab: dict[str, Any]
    """The settings of `LabSettings`, whose paths are the host's own."""
    images: dict[str, str]
    """The digests of the campaign's own images; the host's must be the same."""
    zfs: str
    code: str
    """The digest of the campaign's checkout."""
    extra: dict[str, bytes] = field(default_factory=dict)
    """The files of `--extra`."""
    linux: dict[str, str] = field(default_factory=dict)
    """The fields of `Kernels`."""
    lease_s: float = LEASE_S


class PlainController(Protocol):
    """The worker of a host, as `torture.trials.workers.local` has it."""

    @property
    def is_running(self) -> bool:
        """Whether it can receive a trial."""

    def start(self) -> None:
        """Return when it is ready; raises `HarnessError` when it cannot work."""

    def run_plain(self, spec: dict[str, Any], *, deadline_s: float) -> dict[str, Any]:
        """A trial's record; raises `HarnessError` when the worker dies."""

    def kill(self) -> None:
        """End it at once."""


Make = Callable[[WorkerOrders, Callable[[str], None], Path | None], PlainController]
"""Makes a worker of its orders, a listener and the folder of `--extra`."""


def sandboxed_worker(
    orders: WorkerOrders, hear: Callable[[str], None], extra: Path | None
) -> PlainController:
    """The worker of a real campaign."""
    return LocalController(orders, log=orders.run.worker_log(0), hear=hear, extra=extra)


class Host:
    """One slot. A thread of its own starts the sandbox, which ends with that thread.

    `sign_of_life` gives the campaign's last one, which changes while it lives. It may take seconds, and
    raise any error of Dask's.
    """

    def __init__(
        self,
        orders: HostOrders,
        *,
        make: Make,
        say: Callable[[dict[str, str]], None],
        sign_of_life: Callable[[], object],
    ) -> None:
        self.slot = secrets.token_hex(8)
        self._orders = orders
        self._make = make
        self._say = say
        self._sign_of_life = sign_of_life
        self._calls: queue.Queue[tuple[Callable[[], Any], Future[Any]]] = queue.Queue()
        self._over = threading.Event()
        self._controller: PlainController | None = None
        self._extra: Path | None = None
        self._scratch = Path()
        self._why = HarnessError(f"the worker on {platform.node()} has ended")
        self._owner = threading.Thread(target=self._live, name="host", daemon=True)
        self._owner.start()
        threading.Thread(target=self._watch_lease, name="lease", daemon=True).start()

    @property
    def run(self) -> RunLayout:
        """The places of the trials here, until their evidence is on its way."""
        return RunLayout(folder=self._scratch / "run")

    def ready(self) -> None:
        """Return once a worker runs that has shown that it works; raises `HarnessError`."""
        self._call(self._start)

    def try_trial(self, spec: dict[str, Any], trial: str, deadline_s: float) -> dict[str, Any]:
        """The outcome of one try: a record or an error, and the evidence, whatever it was."""
        outcome: dict[str, Any] = self._call(partial(self._try, spec, trial, deadline_s))
        return outcome

    def kill(self) -> None:
        """End the sandbox at once; the slot stays."""
        if self._controller is not None:
            self._controller.kill()

    def end(self) -> None:
        """End the sandbox and remove the scratch directory."""
        self._over.set()
        self.kill()
        if threading.current_thread() is not self._owner:
            self._owner.join(_END_DEADLINE_S)

    def _call(self, do: Callable[[], Any]) -> Any:
        """The result of a call in the thread that owns the sandbox."""
        answer: Future[Any] = Future()
        self._calls.put((do, answer))
        while not answer.done():
            if not self._owner.is_alive():
                raise self._why
            with suppress(TimeoutError):
                return answer.result(_POLL_S)
        return answer.result()

    def _live(self) -> None:
        """The life of the owner: calls, one after the other, in a scratch directory of its own."""
        try:
            scratch = Scratch()
            scratch.remove_abandoned()
            with scratch.directory(f"d{self.slot[:8]}") as self._scratch:
                self._unpack_extra()
                while not self._over.is_set():
                    with suppress(queue.Empty):
                        self._answer(*self._calls.get(timeout=_POLL_S))
                self.kill()
        except HarnessError as error:
            self._why = error
        except OSError as error:
            self._why = HarnessError(f"no scratch on {platform.node()}: {error}", hint="df -h")

    def _answer(self, do: Callable[[], Any], answer: Future[Any]) -> None:
        try:
            answer.set_result(do())
        except Exception as error:
            # the campaign has to learn of any fault
            answer.set_exception(error)

    def _unpack_extra(self) -> None:
        for name, content in self._orders.extra.items():
            self._extra = self._scratch / "extra"
            (self._extra / name).parent.mkdir(parents=True, exist_ok=True)
            (self._extra / name).write_bytes(content)

    def _start(self) -> None:
        if self._over.is_set():
            raise HarnessError("the campaign has ended")
        if self._controller is not None and self._controller.is_running:
            return
        _require_same(self._orders)
        work = self._scratch / "work"
        shutil.rmtree(work, ignore_errors=True)
        self.run.folder.mkdir(exist_ok=True)
        lab = self._orders.lab | {"warm_states": str(warm_directory()), "libvirt_uri": None}
        orders = {"scratch": str(work), "run": {"folder": str(self.run.folder)}, "lab": lab}
        self._controller = self._make(
            WorkerOrders.from_json(orders | {"probes": True}), self._hear, self._extra
        )
        self._controller.start()

    def _try(self, spec: dict[str, Any], trial: str, deadline_s: float) -> dict[str, Any]:
        self._start()
        assert self._controller is not None
        folder = self.run.evidence_of(trial)
        shutil.rmtree(folder, ignore_errors=True)
        outcome: dict[str, Any] = {"folder": str(self.run.folder)}
        try:
            outcome["record"] = self._controller.run_plain(spec, deadline_s=deadline_s)
        except HarnessError as error:
            is_late = isinstance(error, DeadlineExceeded)
            outcome["error"] = {"message": error.message, "hint": error.hint, "is_late": is_late}
        outcome["evidence"] = pack_evidence(folder)
        shutil.rmtree(folder, ignore_errors=True)
        return outcome

    def _hear(self, text: str) -> None:
        with suppress(Exception):  # a worker that ends; nothing depends on a stage
            self._say({"slot": self.slot, "text": text})

    def _watch_lease(self) -> None:
        last, since_s = self._sign(), time.monotonic()
        while not self._over.wait(min(BEAT_S, self._orders.lease_s / 3)):
            sign = self._sign()
            if sign is not None and sign != last:
                last, since_s = sign, time.monotonic()
            elif time.monotonic() - since_s > self._orders.lease_s:
                end(self._orders.site)

    def _sign(self) -> object:
        with suppress(Exception):  # Dask's errors are of many kinds, and an error is no sign
            return self._sign_of_life()
        return None


def _require_same(orders: HostOrders) -> None:
    """Raise `HarnessError` where this host's code or images are not the campaign's."""
    host, linux = platform.node(), Kernels(**orders.linux)
    if orders.code != code_digest():
        raise _other_version()
    for name, digest in orders.images.items():
        image = find(name, zfs=orders.zfs, linux=linux)
        if image is None:
            words = f"--zfs {orders.zfs}{linux.option_of(name)}"
            hint = f"copy it there (docs/fleet.md, Images), or there: tools/images build {name} {words}"
            raise HarnessError(f"{host} has no {name} image with {words}", hint=hint)
        if image.sha256 != digest:
            raise HarnessError(
                f"{host} has a {name} image of other content: {image.sha256[:16]} instead of "
                f"{digest[:16]}",
                hint=f"there: rm -r {image.root.parent}, then copy it anew (docs/fleet.md, Images)",
            )


def _other_version() -> HarnessError:
    return HarnessError(
        f"{platform.node()} runs another version of the suite",
        hint="check out the campaign's commit there, and start its Dask workers again",
    )


HOSTS: dict[str, Host] = {}
"""The slots of this process by the campaign's mark."""
OVER: set[str] = set()
"""The marks of campaigns that are over. Their end may overtake a task that takes a slot."""


def begin(plain: dict[str, Any], make: Make) -> dict[str, str]:
    """A task: take a slot for a campaign, and show that it works. Raises `HarnessError`.

    `plain`: the fields of `HostOrders`, which another version of the suite may not have.
    """
    import distributed

    if plain["code"] != LOADED:
        raise _other_version()
    orders = HostOrders(**plain)
    worker = distributed.get_worker()
    host = HOSTS.get(orders.site)
    if host is None:
        host = HOSTS[orders.site] = Host(
            orders,
            make=make,
            say=partial(worker.log_event, orders.site),
            sign_of_life=lambda: distributed.utils.sync(
                worker.loop,
                worker.scheduler.get_metadata,
                keys=[orders.site],
                default=None,
                callback_timeout=BEAT_S,
            ),
        )
        # a process of a nanny ends without atexit's functions
        util.Finalize(host, _end_quietly, args=(orders.site,), exitpriority=100)
    try:
        if orders.site in OVER:
            raise HarnessError("the campaign has ended")
        host.ready()
    except HarnessError:
        end(orders.site)
        raise
    return {"slot": host.slot, "host": platform.node()}


def ready(site: str, slot: str) -> None:
    """A task: have the slot's worker running, a new one where it ended. Raises `HarnessError`."""
    _host(site, slot).ready()


def try_trial(
    site: str, slot: str, spec: dict[str, Any], trial: str, deadline_s: float
) -> dict[str, Any]:
    """A task: one try of a trial, see `Host.try_trial`."""
    return _host(site, slot).try_trial(spec, trial, deadline_s)


def kill(site: str) -> None:
    """End the sandbox of a campaign here; for `Client.run`, beside a running task."""
    if (host := HOSTS.get(site)) is not None:
        host.kill()


def close(site: str) -> None:
    """The campaign is over: give its slot back, and take none again; for `Client.run`."""
    OVER.add(site)
    end(site)


def end(site: str) -> None:
    """Give the slot of a campaign back."""
    if (host := HOSTS.pop(site, None)) is not None:
        host.end()


def _end_quietly(site: str) -> None:
    with suppress(Exception):  # the process ends, and the kernel ends the rest
        end(site)


def _host(site: str, slot: str) -> Host:
    """The slot; raises `HarnessError` where the process is another than the one that was asked."""
    host = HOSTS.get(site)
    if host is None or host.slot != slot:
        raise HarnessError(f"the worker on {platform.node()} has ended")
    return host
