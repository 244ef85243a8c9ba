"""The saved states of clients, by the names that a user's own cache gives them; played in a sandbox."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torture.machines.host.sandbox import PRIVATE
from torture.machines.lab.hypervisor import connect
from torture.machines.lab.lab import Lab
from torture.machines.lab.saved_states import WarmStates, warm_directory

_CHECKER = "checker"
"""The name of a client that checks; else it is the same machine."""


def states_of_clients(lab: Lab, scratch: Path) -> list[str]:
    """The place of the state of each client of this lab, whether it is there or not."""
    root = PRIVATE / "lv"
    warm = WarmStates(directory=warm_directory(), connection=connect(root), libvirt_root=root)
    client = lab.client_spec(scratch / "console.log", lab.sockets / "ledger.sock")
    specs = (client, replace(client, name=_CHECKER))
    return [str(warm_directory() / f"{warm.key(spec)}.state") for spec in specs]
