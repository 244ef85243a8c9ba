"""The program of `tools/replay --hold` in its sandbox: it recovers a state, and keeps the machines.

Its arguments are the evidence, a folder for its files, and the versions of ZFS and Linux; empty
ones are the trial's.
"""

from __future__ import annotations

import json
import shlex
import signal
import sys
from contextlib import closing
from pathlib import Path

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.errors import HarnessError
from torture.facts.evidence.folder import load_evidence
from torture.machines.lab.lab import Lab
from torture.machines.lab.machine import CONSOLE, Machine, MachineFailed
from torture.records.record.run_document import RunLayout
from torture.records.record.trials import Origin
from torture.trials.replay.replay import repeated_spec, settings_of, with_versions
from torture.trials.replay.serve import REFUSED
from torture.trials.trial.courses.replay_course import recovered_state
from torture.trials.trial.recovery import bring_nas_back
from torture.trials.trial.setup import attach_again
from torture.trials.trial.shared.machines import Machines, Trial
from torture.trials.trial.shared.resident import PATIENCE_S, EvidenceWriter, unpack_recordings

NAS, CLIENT = "nas", "client"
_SHELL = "while :; do setsid --ctty --wait bash --norc -i <> /dev/ttyS0 >&0 2>&1; done"
"""Shell: a shell on the console, and another one after its end."""


def _say(words: str) -> None:
    print(words, flush=True)


def _recovered(trial: Trial, machines: Machines, evidence: EvidenceWriter) -> dict[str, Machine]:
    """The recovered NAS, and the client where it has its volume."""
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
    if back is None:
        _say(f"{NAS}: {why}; so there is no {CLIENT}")
        return {NAS: started[-1]}
    with evidence.stage("attach client"):
        client = machines.checker()
        _say(_words_of(trial))
        try:
            attach_again(trial, client, evidence, deadline_s=PATIENCE_S)
        except MachineFailed as failure:
            _say(f"{CLIENT}: {failure}")
    return {NAS: started[-1], CLIENT: client}


def _words_of(trial: Trial) -> str:
    """The user's first commands."""
    words = f"{NAS}: the pool is imported, and its volume published"
    if trial.attachment.device is None:
        return f"{words}\n{CLIENT}: the files are in {MOUNT_POINT}"
    mount = shlex.join(trial.filesystem.mount) if trial.has_own_filesystem else ""
    mounts = f", which `{mount}` mounts" if mount else ""
    return f"{words}\n{CLIENT}: the volume is {trial.device}{mounts}"


def _open_console(name: str, machine: Machine, folder: Path) -> None:
    """Give who connects to a socket a shell in the machine, on its console, and print the command."""
    address = {"type": "unix", "data": {"path": str(folder / name)}}
    socket = {"type": "socket", "data": {"addr": address, "server": True, "wait": False}}
    arguments = {"id": CONSOLE, "backend": socket}
    answer = machine.ask_qemu(json.dumps({"execute": "chardev-change", "arguments": arguments}))
    if "return" not in json.loads(answer):
        raise HarnessError(f"the console of {name} has no socket: {answer}")
    machine.agent.start(("env", "HOME=/root", f"PS1={name}# ", "sh", "-c", _SHELL))
    _say(f"{name}: socat -,raw,echo=0,escape=0x1d UNIX-CONNECT:{folder / name}")


def main(evidence: Path, folder: Path, zfs: str, linux: str) -> int:
    """Recover, and wait to be killed."""
    try:
        spec = repeated_spec(evidence, Origin.REPLAY)
        settings = settings_of(RunLayout.of_evidence(evidence).folder)
        lab = Lab(with_versions(settings, zfs=zfs, linux=linux), say=_say)
        trial = Trial.begin(
            spec,
            folder=folder / "evidence",
            scratch=folder / "trial",
            nas_host=lab.network.nas_host,
        )
        for part in (trial.folder, trial.scratch):
            part.mkdir(parents=True)
        machines = Machines(trial=trial, lab=lab)
        written = EvidenceWriter(
            folder=trial.folder, enter_stage=lambda stage: _say(f"{stage} ...")
        )
        with closing(machines):
            lab.boot_from(**trial.images)
            for name, machine in _recovered(trial, machines, written).items():
                _open_console(name, machine, folder)
            _say("Ctrl-] leaves a machine; Ctrl-C here ends both")
            signal.pause()
    except HarnessError as error:
        _say(str(error))
    return REFUSED


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]))
