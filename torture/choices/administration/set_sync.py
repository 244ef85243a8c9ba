"""`zfs set sync=always` on the client's volume, under its load.

zfsprops(7). Durable by return: `dsl_props_set` waits for its group in `dsl_sync_task` (OpenZFS
`module/zfs/dsl_prop.c`). From standard to always, so that the cell guarantees no less afterwards.
"""

from __future__ import annotations

from torture.choices.administration._datasets import list_command
from torture.choices.administration.protocol import Administration, Outcome, Printed
from torture.choices.volumes import VOLUME
from torture.facts.axes.sweeps import Sweep
from torture.facts.axes.sync import Sync
from torture.oracles.verdict.unreadable import UnreadableError


def read(printed: Printed) -> Outcome:
    """Judge by the property."""
    sync = printed.properties().get(VOLUME, {}).get("sync")
    if sync is None:
        raise UnreadableError(f"zfs list -j: no sync of {VOLUME}")
    return {"always": Outcome.DONE, "standard": Outcome.UNDONE}.get(sync, Outcome.HALF)


ADMINISTRATION = Administration(
    name="set_sync",
    words="sync is set",
    explained="`zfs set sync=always`",
    sweep=Sweep.ADMINISTRATION,
    script=f"zfs set sync=always {VOLUME}",
    read=read,
    questions=(list_command("sync"),),
    needs_sync=Sync.STANDARD,
)
