"""What every workload but the ledger has: documents of the evidence that bear its name."""

from __future__ import annotations

from dataclasses import dataclass

from torture.choices.workloads.protocol import CLIENT_IMAGE


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnReadback:
    """A workload that may run beside another: what was found of each is told apart by its name."""

    name: str
    needs_files: bool = True
    needs_inodes: bool = False
    keeps_ledger: bool = False
    can_ignore_read_errors: bool = False
    prints_before: int = 0
    """How many outputs it leaves before it begins."""
    prints_at_end: int = 0
    image: str = CLIENT_IMAGE

    @property
    def readback(self) -> str:
        """The document of the evidence that its read-back becomes."""
        return f"readback-{self.name}.json"

    @property
    def readback_after_repair(self) -> str:
        """The same, after fsck's repair."""
        return f"readback-{self.name}-after-repair.json"

    def prints_due(self, *, ended: bool) -> int:
        """Those before it began, and those at its end."""
        return self.prints_before + (self.prints_at_end if ended else 0)
