"""iSCSI: further targets, and further ways to set LIO up, which are the rows of `targets.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torture.choices.transports.iscsi import IQN, ISCSI_PORT, attachment_of
from torture.choices.transports.protocol import (
    Attachment,
    CompletedWrite,
    OfImage,
    OfZvol,
    Traits,
    Transport,
)
from torture.choices.volumes import IMAGE, VolumeKind, VolumeOptions, zvol
from torture.facts.axes.axis import Choice, choice_of, table_beside
from torture.facts.axes.sync import Sync


@dataclass(frozen=True, kw_only=True, slots=True)
class _Target(Transport):
    """One LUN of a row."""

    volume: ClassVar[VolumeKind]
    disk: ClassVar[str]
    """Shell for the path of its store."""

    lun: int
    image: str
    script: str
    proof: tuple[str, str] | None
    completed: CompletedWrite
    is_of_guest: bool
    """Whether the client's kernel is the initiator, and not its QEMU."""
    hides_cache: bool
    """Whether its initiator is not shown its write cache, and never flushes it."""

    @property
    def traits(self) -> Traits:
        """A disk with a write cache."""
        return Traits(
            ports=(ISCSI_PORT,),
            volume=self.volume,
            completed=self.completed,
            unflushed=frozenset({Sync.STANDARD} if self.hides_cache else ()),
            client_has_network=self.is_of_guest,
            nas_image=self.image,
        )

    def publish_script(self, options: VolumeOptions) -> str:
        """The row's script, with the names that it uses."""
        return f"set -eu\niqn={IQN} port={ISCSI_PORT} disk={self.disk}\n{self.script}\n"

    def proofs(self, options: VolumeOptions) -> Mapping[str, tuple[str, str]]:
        """The row's own, if it has one."""
        return {} if self.proof is None else {"target": self.proof}

    def attachment(self, *, nas_host: str) -> Attachment:
        """The LUN of either initiator."""
        found = attachment_of(nas_host, is_of_guest=self.is_of_guest, lun=self.lun)
        return replace(found, has_write_cache=not self.hides_cache)


class TargetOnZvol(_Target, OfZvol):
    """A LUN on a zvol's node."""

    volume = VolumeKind.ZVOL
    disk = f"$(readlink -f {zvol.DEVICE})"


class TargetOnFile(_Target, OfImage):
    """A LUN on a file of a dataset."""

    volume = VolumeKind.DATASET
    disk = IMAGE


_KINDS = {"zvol": TargetOnZvol, "file": TargetOnFile}
_ROWS = table_beside(__file__)["targets"]
_SCRIPTS = {row["name"]: row["publish"] for row in _ROWS}


def _target(row: Mapping[str, Any]) -> _Target:
    return _KINDS[row["on"]](
        lun=row.get("lun", 0),
        image=row["image"],
        script="\n".join(_SCRIPTS[name] for name in (row.get("after"), row["name"]) if name),
        proof=(row["proof"], row["proven"]) if "proof" in row else None,
        completed=CompletedWrite(row.get("completed", CompletedWrite.IN_ZFS)),
        is_of_guest=row.get("by_guest", False),
        hides_cache=row.get("hides_cache", False),
    )


CHOICES: tuple[Choice[Transport], ...] = tuple(choice_of(row, _target(row)) for row in _ROWS)
