"""The common part of every workload but the ledger: documents of the evidence with its name."""

from __future__ import annotations

from dataclasses import dataclass

from torture.choices.workloads.protocol import CLIENT_IMAGE


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnReadback:
    """A workload that may run beside another: its name distinguishes its findings."""

    name: str
    needs_files: bool = True
    needs_inodes: bool = False
    keeps_ledger: bool = False
    can_ignore_read_errors: bool = False
    prints_before: int = 0
    """The number of outputs that it leaves before it begins."""
    prints_at_end: int = 0
    image: str = CLIENT_IMAGE

    @property
    def readback(self) -> str:
        """The evidence document of its read-back."""
        return f"readback-{self.name}.json"

    @property
    def readback_after_repair(self) -> str:
        """The same, after fsck's repair."""
        return f"readback-{self.name}-after-repair.json"

    def prints_due(self, *, ended: bool) -> int:
        """The outputs from before it began, and those from its end."""
        return self.prints_before + (self.prints_at_end if ended else 0)
