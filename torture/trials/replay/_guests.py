"""The program of `tools/replay --shell` in its sandbox: it recovers a state, and asks the guests.

It speaks JSON lines. On standard input it reads its orders, then `{"guest": ..., "command": ...}` at a
time. On standard output it writes `{"stage": ...}`, then `{"ready": GUESTS, "words": [...]}`, and for
each command `{"completed": ...}` or `{"failed": ...}`. It writes `{"refused": ...}` when it cannot work.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import msgspec

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.errors import HarnessError
from torture.facts.evidence.folder import load_evidence
from torture.machines.lab.lab import Lab, LabSettings
from torture.machines.lab.machine import Machine, MachineFailed
from torture.records.record.specs import TrialSpec
from torture.trials.replay.guest_shell import COMMAND_DEADLINE_S
from torture.trials.trial.courses.replay_course import recovered_state
from torture.trials.trial.recovery import bring_nas_back
from torture.trials.trial.setup import attach_again
from torture.trials.trial.shared.archive import unpack_recordings
from torture.trials.trial.shared.evidence_writer import EvidenceWriter
from torture.trials.trial.shared.machines import Machines
from torture.trials.trial.shared.storage import PATIENCE_S
from torture.trials.trial.shared.trial import Trial

NAS, CLIENT = "nas", "client"


class _Answers:
    """The channel to the user's process; nothing else may write to it."""

    def __init__(self) -> None:
        self._file: IO[str] = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)

    def send(self, **message: object) -> None:
        """Send one JSON line."""
        print(json.dumps(message), file=self._file, flush=True)


def _guests(
    trial: Trial, machines: Machines, evidence: EvidenceWriter
) -> tuple[dict[str, Machine], list[str]]:
    """The recovered NAS, the client where it has its volume, and words for the user."""
    first = Path(trial.spec.replay_of)
    recordings = trial.scratch / "replayed"
    unpack_recordings(first, recordings)
    confirmed = load_evidence(first).cut.confirmed
    view = recovered_state(recordings, lived=trial.client_lives_on and not confirmed.is_made)
    with evidence.stage("bring NAS back"):
        machines.begin_checker()
        back, why = None, "no import brings the pool back"
        try:
            back = bring_nas_back(trial, machines, evidence, view)
        except MachineFailed as failure:
            why = str(failure)
    started = [machine for machine in machines.all if machine.name == NAS]
    if not started:
        raise HarnessError(why)
    guests = {NAS: started[-1]}
    if back is None:
        return guests, [f"{NAS}: {why}; so there is no {CLIENT}"]
    with evidence.stage("attach client"):
        client = guests[CLIENT] = machines.checker()
        words = _words_of(trial)
        try:
            attach_again(trial, client, deadline_s=PATIENCE_S)
        except MachineFailed as failure:
            words.append(f"{CLIENT}: {failure}")
    return guests, words


def _words_of(trial: Trial) -> list[str]:
    """The user's first commands."""
    words = [f"{NAS}: the pool is imported, and its volume published"]
    if trial.attachment.device is None:
        return [*words, f"{CLIENT}: the files are in {MOUNT_POINT}"]
    mount = shlex.join(trial.filesystem.mount) if trial.has_own_filesystem else ""
    mounts = f", which `{mount}` mounts" if mount else ""
    return [*words, f"{CLIENT}: the volume is {trial.device}{mounts}"]


def _answer(guests: dict[str, Machine], request: dict[str, Any], answers: _Answers) -> None:
    """Run a command of the user; each has a shell of its own."""
    machine = guests[request["guest"]]
    argv = ("sh", "-c", str(request["command"]))
    try:
        completed = machine.run_verbose(*argv, deadline_s=COMMAND_DEADLINE_S)
    except HarnessError as failure:
        answers.send(failed=str(failure))
    else:
        answers.send(completed=msgspec.to_builtins(completed))


def main() -> int:
    """Work until standard input ends."""
    answers = _Answers()
    orders = json.loads(sys.stdin.readline())
    spec, scratch = TrialSpec.from_json(orders["spec"]), Path(orders["scratch"])
    settings = msgspec.convert(orders["lab"], LabSettings, dec_hook=lambda kind, text: kind(text))
    try:
        lab = Lab(settings, say=lambda step: answers.send(stage=step))
        trial = Trial.begin(
            spec,
            folder=scratch / "evidence",
            scratch=scratch / "trial",
            nas_host=lab.network.nas_host,
        )
        for folder in (trial.folder, trial.scratch):
            folder.mkdir(parents=True)
        machines = Machines(trial=trial, lab=lab)
        evidence = EvidenceWriter(
            folder=trial.folder, enter_stage=lambda stage: answers.send(stage=stage)
        )
        with closing(machines):
            lab.boot_from(**trial.images)
            guests, words = _guests(trial, machines, evidence)
            answers.send(ready=list(guests), words=words)
            for line in sys.stdin:
                _answer(guests, json.loads(line), answers)
    except HarnessError as error:
        answers.send(refused=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
