"""A client's look at the contents of a volume: each content is mounted, read and checked once."""

from __future__ import annotations

import secrets
import shutil
from dataclasses import replace
from pathlib import Path

from torture.choices.transports.protocol import Attachment
from torture.choices.volumes import SIZE_MIB
from torture.facts.evidence.folder import SPEC, Evidence, load_evidence
from torture.facts.recording.disks import ShelfDisk
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.machines.shelf.server import Shelf
from torture.trials.trial.check import check
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.machines import Machines
from torture.trials.trial.shared.trial import Trial

_DISK = "vm"
_DEVICE = "/dev/vdb"
_CONTENTS_OF_A_CLIENT = 100
"""After this number a new client comes, so that nothing adds up in its kernel."""
_CLEAR_DEADLINE_S = 20


class ContentChecks:
    """A client whose disk gets one content after the other, without a NAS behind it."""

    def __init__(self, lab: Lab, trial: Trial, folder: Path) -> None:
        self._lab = lab
        self._folder = folder
        self._shelf = Shelf(directory=folder, socket=lab.sockets / f"c{secrets.token_hex(2)}")
        sector_bytes = trial.volume_options.sector_bytes
        self._disk = ShelfDisk(
            serial=_DISK,
            size_mib=SIZE_MIB,
            sector_bytes=sector_bytes,
            physical_sector_bytes=sector_bytes,
        )
        self._shelf.start((self._disk,), keeps_recording=False)
        attachment = Attachment(source=self._shelf.source(self._disk), device=_DEVICE)
        self._trial = replace(
            trial, attachment=attachment, fault=None, folder=folder, scratch=folder
        )
        self._known: dict[str, Evidence] = {}
        self._machines: Machines | None = None
        self._client: Machine | None = None
        self._left = 0
        """Contents that the present client may still look at."""

    @property
    def known(self) -> int:
        """The number of contents that were looked at."""
        return len(self._known)

    def seen(self, content: str) -> Evidence | None:
        """The client's look at this content, if there was one."""
        return self._known.get(content)

    def inspect(self, content: str, image: Path) -> Evidence:
        """Check an image as a client would after a cut, and remember its content.

        Raises `StorageFailed` where a tool hangs, `HarnessError` when the machinery fails.
        """
        folder = self._folder / content
        shutil.rmtree(folder, ignore_errors=True)  # of a look that a tool hung
        folder.mkdir()
        trial = replace(self._trial, folder=folder, scratch=folder)
        evidence = EvidenceWriter(folder=folder)
        evidence.write(SPEC, trial.spec.as_json())
        self._shelf.control.turn({_DISK: {"image": str(image)}})
        client = self._attached_client()
        is_sound = False
        try:
            is_sound = check(trial, evidence, client)
        finally:
            if not is_sound or self._left == 0:
                self._end_client()
        self._known[content] = load_evidence(folder)
        return self._known[content]

    def _attached_client(self) -> Machine:
        """The client with the disk, which it does not use: it has cached nothing of it.

        The kernel forgets a disk's blocks when the last program closes it (`kill_bdev`, block/bdev.c).
        """
        if self._client is None:
            self._machines = Machines(trial=self._trial, lab=self._lab)
            self._machines.begin_checker()
            self._client = self._machines.checker()
            self._left = _CONTENTS_OF_A_CLIENT
        self._left -= 1
        self._client.must("dmesg", "--clear", deadline_s=_CLEAR_DEADLINE_S)
        return self._client

    def give_client_back(self) -> None:
        """Leave the client to other trials; the next content gets one anew."""
        if self._machines is not None and self._client is not None:
            self._machines.give_checker_back(self._client)
        self._end_client()

    def _end_client(self) -> None:
        """End the client, unless it was given back."""
        if self._machines is not None:
            self._machines.close()
        self._machines = self._client = None

    def close(self) -> None:
        """End the client and its disk."""
        self.give_client_back()
        self._shelf.stop()
