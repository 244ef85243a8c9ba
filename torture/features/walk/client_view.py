"""A client's look at recovered volumes: how it gets each one, reads it back and checks it.

The program that reads back stays up: under emulation, the start of Python takes longer than most read-
backs.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.transports.protocol import Attachment
from torture.choices.volumes import SIZE_MIB
from torture.choices.workloads._guest_load import READ_BACK_SERVER, job_read_back_by
from torture.errors import HarnessError
from torture.facts.evidence.folder import SPEC, Completed, Evidence, load_evidence
from torture.facts.recording.disks import ShelfDisk
from torture.features.walk.engines.engine import Engine
from torture.features.walk.engines.kernel_engine import KernelEngine
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.machines.shelf.server import Shelf
from torture.trials.trial.check import check
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import EvidenceWriter, ResidentProgram, storage_must

_START_DEADLINE_S = 60


class ResidentReader:
    """Reads back in a client until it is closed; the client is as good as new then."""

    def __init__(self, client: Machine) -> None:
        """Start the program; raises `HarnessError` when it does not come up."""
        self._client = client
        self._program = ResidentProgram(client, READ_BACK_SERVER)
        self._program.answer("start", deadline_s=_START_DEADLINE_S)

    def run(self, *argv: str, deadline_s: float) -> Completed:
        """Run a read-back; a command of another program runs as ever.

        Raises `StorageFailed` when it hangs, and `HarnessError` when the program ended.
        """
        job = job_read_back_by(argv)
        if job is None:
            return self._client.run(*argv, deadline_s=deadline_s)
        answer = self._program.ask(job, deadline_s=deadline_s)
        try:
            return Completed(
                vm=self._client.name,
                argv=argv,
                exit_code=int(answer["exit_code"]),
                stdout=str(answer["stdout"]),
                stderr=str(answer["stderr"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise HarnessError(
                f"in {self._client.name} the read-back's answer is unreadable: {answer!r:.300}",
                hint=f"read {self._client.spec.console_log}",
            ) from error

    def close(self) -> None:
        """End the program: it ends when its port closes."""
        self._program.close()


_DISK = "vm"
_DEVICE = "/dev/vdb"
_IMAGE = "content.raw"
_PUBLISH_DEADLINE_S = 60
_UMOUNT_DEADLINE_S = 60


class OfferedDisk:
    """A disk of the client with a copy of the volume, without a NAS behind it."""

    def __init__(self, lab: Lab, trial: Trial, folder: Path) -> None:
        self._image = folder / _IMAGE
        self._shelf = Shelf(directory=folder, socket=lab.sockets / f"c{secrets.token_hex(2)}")
        sector_bytes = trial.volume_options.sector_bytes
        disk = ShelfDisk(
            serial=_DISK,
            size_mib=SIZE_MIB,
            sector_bytes=sector_bytes,
            physical_sector_bytes=sector_bytes,
        )
        self._shelf.start((disk,), keeps_recording=False)
        self.attachment = Attachment(source=self._shelf.source(disk), device=_DEVICE)

    @contextmanager
    def shown(self, engine: Engine) -> Iterator[None]:
        """Give the disk the content of the volume that this engine has recovered last."""
        engine.copy_volume(self._image)
        try:
            self._shelf.control.turn({_DISK: {"image": str(self._image)}})
            yield
        finally:
            self._image.unlink(missing_ok=True)

    def let_go(self, client: Machine) -> None:
        """Nothing: the checks leave the disk unmounted."""

    def close(self) -> None:
        """End the disk."""
        self._shelf.stop()


class OfferedFiles:
    """The NAS publishes the files that it has recovered, and the client mounts them."""

    def __init__(self, trial: Trial) -> None:
        self._transport, self._options = trial.transport, trial.volume_options
        self.attachment = trial.attachment
        self._published: Machine | None = None
        """The NAS whose servers run."""

    @contextmanager
    def shown(self, engine: Engine) -> Iterator[None]:
        """Publish the files that were recovered last; the NAS may export its pool afterwards."""
        assert isinstance(engine, KernelEngine), "the library has no files"
        nas = engine.nas
        if nas is not self._published:
            script = self._transport.publish_script(self._options)
            storage_must(
                nas, "the files cannot be published", script, deadline_s=_PUBLISH_DEADLINE_S
            )
            self._published = None if self._transport.traits.serves_until_let_go else nas
        try:
            yield
        finally:
            script = self._transport.let_go_script()
            storage_must(nas, "the files are not let go", script, deadline_s=_PUBLISH_DEADLINE_S)

    def let_go(self, client: Machine) -> None:
        """Unmount the directory. The client keeps nothing of it: the next mount is another one."""
        client.must("umount", MOUNT_POINT, deadline_s=_UMOUNT_DEADLINE_S)

    def close(self) -> None:
        """Nothing: the NAS ends with its engine."""


_CONTENTS_OF_A_CLIENT = 100
"""After this number a new client comes, so that nothing adds up in its kernel."""
_CLEAR_DEADLINE_S = 20


class ContentChecks:
    """A client that gets one content after the other: as a disk of its own, or as the NAS's files."""

    def __init__(self, lab: Lab, trial: Trial, folder: Path) -> None:
        self._lab = lab
        self._folder = folder
        self._offer: OfferedDisk | OfferedFiles
        if trial.transport.traits.gives_files:
            self._offer = OfferedFiles(trial)
        else:
            self._offer = OfferedDisk(lab, trial, folder)
        self._trial = replace(
            trial, attachment=self._offer.attachment, fault=None, folder=folder, scratch=folder
        )
        self._known: dict[str, Evidence] = {}
        self._machines: Machines | None = None
        self._client: Machine | None = None
        self._reader: ResidentReader | None = None
        self._left = 0
        """Contents that the present client may still look at."""

    @property
    def known(self) -> int:
        """The number of contents that were looked at."""
        return len(self._known)

    def seen(self, content: str) -> Evidence | None:
        """The client's look at this content, if there was one."""
        return self._known.get(content)

    def inspect(self, content: str, engine: Engine) -> Evidence:
        """Check the volume that this engine has just recovered, as a client would, and remember it.

        Raises `StorageFailed` where a tool hangs, `HarnessError` when the machinery fails.
        """
        folder = self._folder / content
        shutil.rmtree(folder, ignore_errors=True)  # of a look that a tool hung
        folder.mkdir(parents=True)
        trial = replace(self._trial, folder=folder, scratch=folder)
        evidence = EvidenceWriter(folder=folder, require_host=self._lab.require_host)
        evidence.write(SPEC, trial.spec.as_json())
        is_sound = False
        try:
            with self._offer.shown(engine):
                client = self._attached_client()
                assert self._reader is not None
                is_sound = check(trial, evidence, client, read_back=self._reader.run)
                self._offer.let_go(client)
        finally:
            if not is_sound or self._left == 0:
                self._end_client()
        self._known[content] = load_evidence(folder)
        return self._known[content]

    def _attached_client(self) -> Machine:
        """The client, which uses no disk and no directory now: it has cached nothing of them.

        The kernel forgets a disk's blocks when the last program closes it (`kill_bdev`, block/bdev.c).
        """
        if self._client is None:
            self._machines = Machines(trial=self._trial, lab=self._lab)
            self._machines.begin_checker()
            self._client = self._machines.checker()
            self._reader = ResidentReader(self._client)
            self._left = _CONTENTS_OF_A_CLIENT
        self._left -= 1
        self._client.must("dmesg", "--clear", deadline_s=_CLEAR_DEADLINE_S)
        return self._client

    def give_client_back(self) -> None:
        """Leave the client to other trials; the next content gets one anew."""
        self._end_reader()
        if self._machines is not None and self._client is not None:
            self._machines.give_checker_back(self._client)
        self._end_client()

    def _end_client(self) -> None:
        """End the client, unless it was given back."""
        self._end_reader()
        if self._machines is not None:
            self._machines.close()
        self._machines = self._client = None

    def _end_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    def close(self) -> None:
        """End the client and its disk."""
        self.give_client_back()
        self._offer.close()
