"""A recorded trial's machines for the user's own hands: its NAS recovered, its client with the volume.

They run in a sandbox, as those of a worker do, and end with this process
(`torture.trials.replay._held` is the program in there).
"""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

from torture.checkout import CHECKOUT
from torture.errors import HarnessError
from torture.machines.host.native import shelf_plugin
from torture.machines.host.sandbox import sandboxed
from torture.machines.host.scratch import Scratch

REFUSED = 2
_END_DEADLINE_S = 10
_LOG = "machines.log"


def hold(evidence: Path, *, zfs: str = "", linux: str = "") -> int:
    """Recover the trial's crash state, print the ways into both machines, and wait for Ctrl-C.

    `zfs`: another version for the NAS. `linux`: another kernel for both. Returns the exit code:
    `REFUSED`, with the reason on the terminal, when the folder holds no trial or no NAS comes up.
    Raises `HarnessError` when the program with the machines dies.
    """
    shelf_plugin()  # built here, where a compiler's failure can be read
    scratch = Scratch()
    scratch.remove_abandoned()
    program = (sys.executable, "-m", "torture.trials.replay._held")
    with scratch.directory(f"hold-{secrets.token_hex(2)}") as folder:
        log = folder / _LOG
        with log.open("ab") as errors:
            process = subprocess.Popen(
                sandboxed((*program, str(evidence.absolute()), str(folder), zfs, linux)),
                cwd=CHECKOUT,
                stdin=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is the user's word to this process alone
            )
        try:
            if process.wait() == REFUSED:
                return REFUSED
            said = log.read_text(errors="replace").strip().splitlines()[-3:]
            raise HarnessError("\n".join(("the program with the machines ended", *said)))
        except KeyboardInterrupt:
            return 0
        finally:
            process.kill()  # the end of its namespaces ends all machines
            process.wait(_END_DEADLINE_S)
