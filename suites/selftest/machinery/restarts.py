"""A machine that is killed and resumed at once, again and again, played in a sandbox."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from torture.deadlines import truth, wait_for
from torture.errors import HarnessError
from torture.machines.host.scratch import PRIVATE
from torture.machines.lab.domains import connect, domain_xml
from torture.machines.lab.lab import Lab

_ROUNDS = 3


def restarts_of_a_slow_libvirt(lab: Lab, scratch: Path) -> dict[str, Any]:
    """The answer to a start that only looks for the domain, and the results of a few restarts."""
    scratch.mkdir(parents=True)
    hasty = _hasty_start(lab, scratch / "hasty.log")
    rounds = kill_and_resume(lab, scratch / "rounds", rounds=_ROUNDS)
    return {"hasty": hasty, "second_checker": _start_second_checker(lab, scratch)} | rounds


def kill_and_resume(lab: Lab, scratch: Path, *, rounds: int) -> dict[str, Any]:
    """How long each start took that succeeded, in seconds, and what was said of each that did not."""
    scratch.mkdir(parents=True)
    console_log = scratch / "console.log"
    started_s, refusals = [], []
    for _ in range(rounds):
        console_log.unlink(missing_ok=True)
        begun = time.monotonic()
        try:
            nas = lab.start_nas(console_log=console_log, disks=())
        except HarnessError as error:
            refusals.append(error.message)
            continue
        started_s.append(time.monotonic() - begun)
        nas.kill()
    return {"started_s": started_s, "refusals": refusals}


def _start_second_checker(lab: Lab, scratch: Path) -> dict[str, bool]:
    """Start a client that checks beside a kept one, as a trial does whose client has a network."""
    kept = lab.checkers.take(console_log=scratch / "kept.log")
    lab.checkers.keep(kept)
    spec = lab.client_spec(scratch / "second.log", lab.sockets / "second.sock")
    second = lab.start(replace(spec, name=kept.name), ())
    try:
        return {"kept": kept.is_alive(), "second": second.is_alive()}
    finally:
        second.kill()


def _hasty_start(lab: Lab, console_log: Path) -> str:
    """The answer of libvirt to a start that comes as soon as it finds the former domain no more."""
    import libvirt

    connection = connect(PRIVATE / "lv")

    def is_found() -> bool:
        try:
            connection.lookupByName("nas")
        except libvirt.libvirtError:
            return False
        return True

    nas = lab.start_nas(console_log=console_log, disks=())
    nas.kill()
    wait_for(lambda: truth(not is_found()), what="domain out of sight", deadline_s=20)
    try:
        connection.createXML(domain_xml(nas.spec), 0)
    except libvirt.libvirtError as error:
        return str(error)
    return "started"
