"""How the client gets the recovered volume: a copy as a disk, or a mount over the transport."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.transports.protocol import Attachment
from torture.choices.volumes import SIZE_MIB
from torture.facts.recording.disks import ShelfDisk
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.machines.shelf.server import Shelf
from torture.trials.trial.shared.storage import storage_must
from torture.trials.trial.shared.trial import Trial
from torture.trials.trial.walk.engines.engine import Engine
from torture.trials.trial.walk.engines.kernel_engine import KernelEngine

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
