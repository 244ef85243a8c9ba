"""The ledger load with more writers on fewer files: more synchronous writes at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torture.choices.workloads.ledger import Ledger
from torture.choices.workloads.protocol import Place, Workload
from torture.facts.axes.axis import Choice


@dataclass(frozen=True, kw_only=True, slots=True)
class Hasty(Ledger):
    """Six writers with two files each."""

    name: str = "hasty"

    def job(self, *, seed: int, place: Place) -> dict[str, Any]:
        """The settings of the guest's load; the same dictionary writes and reads back."""
        job = Ledger.job(self, seed=seed, place=place)
        return job | {"writers": 6, "files_per_writer": 2}


CHOICE: Choice[Workload] = Choice(name="hasty", value=Hasty(), words="the ledger load in haste")
