"""The promises of a client's disk or mount, as its kernel shows them, and those of the NAS's volume.

A disk's are in `queue` of sysfs (Linux Documentation/ABI/stable/sysfs-block), a mount's are its options.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torture.facts.evidence.documents import Document
from torture.shell import QUEUE

MOUNT = (
    "vers",
    "rsize",
    "wsize",
    "hard",
    "soft",
    "sync",
    "cache",
    "resilienthandles",
    "persistenthandles",
)
"""The options of a mount by NFS (nfs(5)) or SMB (mount.cifs(8)) that promise something."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Advertised(Document):
    """Name to value; empty where the trial did not ask."""

    client: dict[str, str] = field(default_factory=dict)
    """Of the client's disk or mount."""
    volume: dict[str, str] = field(default_factory=dict)
    """Of the zvol in the NAS; empty where it is no zvol."""


def parse_queue(line: str) -> dict[str, str]:
    """The values of `torture.shell.advertised_by`: a word a name, underscores for blanks."""
    pairs = (word.partition("=") for word in line.split())
    return {name: value.replace("_", " ") for name, _, value in pairs if name in QUEUE and value}


def parse_mount_options(line: str) -> dict[str, str]:
    """Of a mount's options those that promise something; one without a value is `yes`."""
    pairs = (option.partition("=") for option in line.strip().split(","))
    return {name: value or "yes" for name, _, value in pairs if name in MOUNT}
