"""A run: its folder under `results/`, and `run.json`, which describes its host and its programs."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

from msgspec.structs import replace

from torture.discovery import extra_digests
from torture.errors import HarnessError
from torture.facts.linux.kernels import Kernels
from torture.files import CHECKOUT, point_link, try_lock
from torture.machines.host.abilities import choose_accelerator, choose_network, version_of
from torture.machines.images import find
from torture.machines.lab.domains import processor_in_words
from torture.machines.lab.lab import LabSettings
from torture.records.record.run_document import (
    LATEST,
    Chosen,
    HostInfo,
    ImageInfo,
    RunDocument,
    RunLayout,
    read_run_document,
)
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.schedules.protocol import Schedule

_MAKES_TRIALS = ("torture", "vmimages")
_ONLY_REPORTS = Path("torture/report")
_DIGITS = 16


@cache
def engine_state(checkout: Path = CHECKOUT) -> str:
    """The first digits of a SHA-256 over the paths and contents of all files that make trials.

    A report changes no trial, and neither do the files that Python leaves behind.
    """
    digest = hashlib.sha256()
    for folder in _MAKES_TRIALS:
        for file in sorted((checkout / folder).rglob("*")):
            path = file.relative_to(checkout)
            is_left_behind = "__pycache__" in path.parts
            if file.is_file() and not is_left_behind and not path.is_relative_to(_ONLY_REPORTS):
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                digest.update(f"{content}  {path}\n".encode())
    return digest.hexdigest()[:_DIGITS]


def stamped(record: TrialRecord) -> TrialRecord:
    """The record of a trial that has just been made and judged by this suite."""
    return replace(record, engine_state=engine_state(), scored_s=int(time.time()))


FREE_BYTES_MIN = 512 * 1024**2
"""The free space that the folder of results needs before a run begins."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run(RunLayout):
    """One run's folder."""

    @property
    def scratch_name(self) -> str:
        """The end of the folder's name, time and token; the name of the run's scratch directory."""
        return self.folder.name[-10:]

    @property
    def zfs(self) -> str:
        """The version of ZFS that its NAS runs; empty where nothing states it."""
        document = read_run_document(self.folder)
        return "" if document is None else document.zfs

    @property
    def kernels(self) -> Kernels:
        """The releases of its machines' kernels; empty where nothing states them."""
        document = read_run_document(self.folder)
        images = {} if document is None else document.images
        nas, client = (
            "" if (image := images.get(name)) is None else image.packages.get("kernel", "")
            for name in ("nas", "client")
        )
        return Kernels(nas=nas, client=client)

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Keep other processes from going on with the run meanwhile.

        Raises `HarnessError` where one does already.
        """
        with self.run_file.open() as file:
            if not try_lock(file):
                raise HarnessError(f"{self.folder} is running already", hint="wait for its end")
            yield

    @classmethod
    def begin(
        cls,
        *,
        results: Path,
        seed: int,
        lab: LabSettings,
        options: dict[str, Any],
        moves_latest: bool = True,
    ) -> Self:
        """A new folder with its `run.json`, private to the user.

        `results/latest` then points to it, unless `moves_latest` is off. It is off for a run that
        the user's next command does not refer to, e.g. a replay. Raises `HarnessError` when there
        is no room for it.
        """
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        folder = results / name
        document = replace(describe(lab), run=name, seed=seed, options=options)
        try:
            results.mkdir(parents=True, exist_ok=True)
            if (free := shutil.disk_usage(results).free) < FREE_BYTES_MIN:
                raise HarnessError(
                    f"only {free // 1024**2} MiB are free in {results}, a run needs "
                    f"{FREE_BYTES_MIN // 1024**2} MiB",
                    hint="free some space, or set --results",
                )
            run = cls(folder=folder)
            run.evidence.mkdir(mode=0o700, parents=True)
            folder.chmod(0o700)
            document.write(folder)
            if moves_latest:
                point_link(results / LATEST, name)
        except OSError as error:
            raise HarnessError(f"no run in {results}: {error}", hint="set --results") from error
        return run


def describe(lab: LabSettings) -> RunDocument:
    """The facts that decide a run's figures: host, accelerator, network, versions of everything."""
    accelerator = choose_accelerator(lab.accelerator)
    network = choose_network()
    images = {name: find(name, zfs=lab.zfs, linux=lab.linux) for name in ("nas", "client")}
    return RunDocument(
        begun=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        host=HostInfo(
            kernel=platform.release(),
            machine=platform.machine(),
            cores=os.cpu_count(),
            memory_mib=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024**2,
            user="root" if os.geteuid() == 0 else "unprivileged",
        ),
        accelerator=Chosen(kind=accelerator.kind, reason=accelerator.reason),
        processor=processor_in_words(accelerator.kind),
        network=Chosen(
            kind=lab.network or network.kind,
            reason="set by --network" if lab.network else network.reason,
        ),
        boot=lab.boot,
        zfs=lab.zfs,
        linux_nas=lab.linux.nas,
        linux_client=lab.linux.client,
        versions={
            "python": platform.python_version(),
            "qemu": version_of("qemu-system-x86_64", "--version"),
            "nbdkit": version_of("nbdkit", "--version"),
            "libvirt": _libvirt_version(),
        },
        images={
            name: None
            if image is None
            else ImageInfo(key=image.key, sha256=image.sha256, packages=dict(image.manifest))
            for name, image in images.items()
        },
        extra=extra_digests(),
        engine_state=engine_state(),
    )


def _libvirt_version() -> str:
    try:
        import libvirt
    except ImportError:
        return "missing"
    number = libvirt.getVersion()
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"


_MAY_DIFFER = frozenset({"jobs", "keep"})
"""Options that change neither a trial nor its verdict."""
_CONTENT = "content of image "
_STATE = "state of the suite"
_NOT_IN_OLDER_RUNS = (_CONTENT, _STATE)
"""Older runs do not have these, and go on without."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedRun:
    """The run that a command asks for, to compare with an interrupted one."""

    seed: int
    lab: LabSettings
    options: dict[str, Any]

    def among(self, folders: Sequence[Path]) -> Run | None:
        """The first of these runs that the command continues; None where each is another run."""
        return next(
            (Run(folder=folder) for folder in folders if not self.differences(folder)), None
        )

    def differences(self, folder: Path) -> tuple[str, ...]:
        """The reasons, in words, for which the command draws other trials than that run.

        Raises `HarnessError` where the folder holds no run.
        """
        document = read_run_document(folder)
        if document is None:
            raise HarnessError(f"{folder} is no run", hint="ls results")
        wanted = replace(describe(self.lab), seed=self.seed, options=self.options)
        was, now = _compared(document), _compared(wanted)
        return tuple(
            f"{name}: {was.get(name)!r}, now {now.get(name)!r}"
            for name in sorted(was | now)
            if was.get(name) != now.get(name)
            and (name in was or not name.startswith(_NOT_IN_OLDER_RUNS))
        )


def _compared(document: RunDocument) -> dict[str, object]:
    """The facts that two parts of one run must share."""
    options = {name: value for name, value in document.options.items() if name not in _MAY_DIFFER}
    images = {
        f"image {name}": None if image is None else image.key
        for name, image in document.images.items()
    }
    contents = {
        f"{_CONTENT}{name}": image.sha256
        for name, image in document.images.items()
        if image is not None and image.sha256
    }
    state = {_STATE: document.engine_state} if document.engine_state else {}
    return options | images | contents | state | {
        "seed": document.seed,
        "extra": document.extra,
        "zfs": document.zfs,
        "boot": document.boot,
        "accelerator": document.accelerator.kind,
        "processor": document.processor,
        "network": document.network.kind,
    }  # fmt: skip


def settle(schedule: Schedule, records: Sequence[TrialRecord]) -> None:
    """Bring a new schedule to the state in which these records left another one.

    Its other trials are handed out again, in their order. Raises `HarnessError` for records of
    trials that the schedule does not have.
    """
    handed: dict[str, TrialSpec] = {}
    left = {record.trial: record for record in records}
    while True:
        # an ended trial may cause another, so trials are asked for again
        while (spec := schedule.next_spec()) is not None:
            handed[spec.trial] = spec
        ended = [trial for trial in left if trial in handed]
        if not ended:
            break
        for trial in ended:
            schedule.record_ended(handed.pop(trial), left.pop(trial))
    for spec in reversed(handed.values()):
        schedule.give_back(spec)
    if left:
        raise HarnessError(
            f"{len(left)} trials of that run are not drawn by this command, e.g. {next(iter(left))}",
            hint="use the same cells, -k and -m as that run",
        )
