"""A run: its folder under `results/`, and `run.json`, which describes its host and its programs."""

from __future__ import annotations

import os
import platform
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from msgspec.structs import replace

from torture.discovery import extra_digests
from torture.errors import HarnessError
from torture.facts.linux.kernels import Kernels
from torture.files import point_link, try_lock
from torture.machines.host.abilities import choose_accelerator, choose_network
from torture.machines.host.commands import version_of
from torture.machines.images import find
from torture.machines.lab.domains import processor_in_words
from torture.machines.lab.lab import LabSettings
from torture.records.record.run_document import (
    Chosen,
    HostInfo,
    ImageInfo,
    RunDocument,
    read_run_document,
)
from torture.records.record.run_layout import LATEST, RunLayout
from torture.trials.campaign.engine_state import engine_state

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
