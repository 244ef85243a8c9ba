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

    disk: ClassVar[str]
    """Shell for the path of its store."""

    traits: Traits
    script: str
    proof: tuple[str, str] | None
    lun: int

    def publish_script(self, options: VolumeOptions) -> str:
        """The row's script, after the names and functions that it uses."""
        return f"set -eu\niqn={IQN} port={ISCSI_PORT} disk={self.disk}\n{self.script}\n"

    def proofs(self, options: VolumeOptions) -> Mapping[str, tuple[str, str]]:
        """The row's own, if it has one."""
        return {} if self.proof is None else {"target": self.proof}

    def attachment(self, *, nas_host: str) -> Attachment:
        """The LUN of either initiator; a hidden cache is not shown to it."""
        is_of_guest = self.traits.client_has_network
        found = attachment_of(nas_host, is_of_guest=is_of_guest, lun=self.lun)
        return replace(found, has_write_cache=not self.traits.unflushed)


class TargetOnZvol(_Target, OfZvol):
    """A LUN on a zvol's node."""

    disk = f"$(readlink -f {zvol.DEVICE})"


class TargetOnFile(_Target, OfImage):
    """A LUN on a file of a dataset."""

    disk = IMAGE


_KINDS = {VolumeKind.ZVOL: TargetOnZvol, VolumeKind.DATASET: TargetOnFile}
_TABLE = table_beside(__file__)


def _target(row: Mapping[str, Any]) -> _Target:
    traits = Traits(
        ports=(ISCSI_PORT,),
        volume=VolumeKind(row["on"]),
        completed=CompletedWrite(row.get("completed", CompletedWrite.IN_ZFS)),
        unflushed=frozenset({Sync.STANDARD} if row.get("hides_cache") else ()),
        client_has_network=row.get("by_guest", False),
        nas_image=row["image"],
    )
    return _KINDS[traits.volume](
        traits=traits,
        script=f"{_TABLE['functions']}\n{row['publish']}",
        proof=(row["proof"], row["proven"]) if "proof" in row else None,
        lun=row.get("lun", 0),
    )


CHOICES: tuple[Choice[Transport], ...] = tuple(
    choice_of(row, _target(row)) for row in _TABLE["targets"]
)
