"""A client's look at the contents of a volume: each content is mounted, read and checked once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from torture.facts.evidence.folder import SPEC, Evidence, load_evidence
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import Machine
from torture.trials.trial.check import check
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.machines import Machines
from torture.trials.trial.shared.trial import Trial
from torture.trials.trial.walk.engines.engine import Engine
from torture.trials.trial.walk.offers import OfferedDisk, OfferedFiles
from torture.trials.trial.walk.reader import ResidentReader

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
