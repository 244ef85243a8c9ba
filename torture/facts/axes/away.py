"""How long the NAS is away, and how long its client waits for it. `away.toml` has the choices' words."""

from __future__ import annotations

from enum import StrEnum

from torture.facts.axes.axis import Chosen, table_beside
from torture.facts.axes.fate import Fate
from torture.facts.axes.setting import Interruption, axis_of

AWAY_STAGE = "away"
"""The stage of a trial in which no NAS has power and a client waits: it needs hardly a processor."""
_TABLES = table_beside(__file__)


class Patience(StrEnum):
    """How long the client's kernel waits for its NAS."""

    FOREVER = "forever"
    DEFAULTS = "defaults"
    """As the client's distribution ships it."""
    SOFT = "soft"
    """oVirt's mount (oVirt/vdsm `lib/vdsm/storage/storageServer.py`, `NFSConnection`)."""
    SOFT_LONG = "softlong"
    """XenServer's mount (xapi-project/sm `drivers/nfs.py`, `get_nfs_timeout`, `get_nfs_retrans`)."""


def _of_away(chosen: Chosen) -> str | None:
    link: Interruption = chosen["nas_link"].value
    if link.is_of_link:
        return None
    if chosen["fate"].value is not Fate.NAS_ONLY:
        return f"needs a client that waits, and {chosen['fate'].name!r} has none"
    return None if link == Interruption() else f"is not of {chosen['nas_link'].name!r}"


def _of_patience(chosen: Chosen) -> str | None:
    transport, patience = chosen["transport"], chosen["patience"]
    below, has_image = transport.value.below, chosen["image"].name != "noimage"
    known = dict(below.traits.waits_s)
    if has_image and below.traits.gives_files and not known.get(Patience.SOFT):
        return "is of a mount that waits for ever, and a hypervisor mounts by defaults"
    if patience.value not in known:
        return f"is no patience that {transport.name!r} can have"
    if has_image and below.traits.gives_files and patience.value is Patience.DEFAULTS:
        return "is how a hypervisor mounts anyway"
    return None


AWAY = axis_of("away", _TABLES["away"], lambda row: int(row["value"]), _of_away)
"""In seconds, from the loss of the NAS until it has power again; 0: it gets power at once."""
PATIENCE = axis_of("patience", _TABLES["patience"], lambda row: Patience(row["name"]), _of_patience)
