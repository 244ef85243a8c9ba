"""The promises of a client's disk or mount, as its kernel shows them, and those of the NAS's volume.

A disk's are in `queue` of sysfs (Linux Documentation/ABI/stable/sysfs-block), a mount's are its options.
A transport asks for those of its protocol (`Attachment.advertised_script`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Self

from torture.facts.evidence.documents import Document, field, replace
from torture.shell import QUEUE

_OF_PROTOCOL = re.compile(r"(nvme|smb)_[a-z_]+")

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


class Advertised(Document, frozen=True, kw_only=True):
    """Name to value; empty where the trial did not ask."""

    client: dict[str, str] = field(default_factory=dict)
    """Of the client's disk or mount."""
    volume: dict[str, str] = field(default_factory=dict)
    """Of the zvol in the NAS; empty where it is no zvol."""

    def with_verifiers(self, seen: Mapping[str, Any]) -> Self:
        """With the write verifier of the server that came back; unchanged where none was `seen`.

        An NFS server that may have lost unstable writes needs another one (RFC 1813, 3.3.7).
        """
        before, after = seen.get("before"), seen.get("after")
        if not isinstance(before, list) or not isinstance(after, list) or not before or not after:
            return self
        verifier = "the same" if {*map(str, before)} & {*map(str, after)} else "another"
        return replace(self, client=self.client | {"write_verifier": verifier})


def parse_queue(line: str) -> dict[str, str]:
    """The values of `torture.shell.advertised_by`: a word a name, underscores for blanks."""
    return {name: value for name, value in _words_of(line) if name in QUEUE}


def parse_protocol(line: str) -> dict[str, str]:
    """The values of an `Attachment.advertised_script`, in the same form."""
    return {name: value for name, value in _words_of(line) if _OF_PROTOCOL.fullmatch(name)}


def _words_of(line: str) -> Iterator[tuple[str, str]]:
    pairs = (word.partition("=") for word in line.split())
    return ((name, value.replace("_", " ")) for name, _, value in pairs if value)


def parse_mount_options(line: str) -> dict[str, str]:
    """Of a mount's options those that promise something; one without a value is `yes`."""
    pairs = (option.partition("=") for option in line.strip().split(","))
    return {name: value or "yes" for name, _, value in pairs if name in MOUNT}
