"""The ledger load: a writer announces, does and acknowledges one durable operation at a time.

The guest's half is `vmimages/client/load`. Its oracle is
`torture/oracles/verdict/blocks/oracle.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torture.choices.workloads._guest_load import LOAD_LIFE_MS, PORT, GuestWorkload, read_of
from torture.choices.workloads.protocol import Place, Workload
from torture.facts.axes.axis import Choice
from torture.facts.axes.sweeps import EVERY_SWEEP
from torture.facts.evidence.folder import READBACK, READBACK_AFTER_REPAIR, Evidence
from torture.oracles.verdict.blocks.history import parse_readback
from torture.oracles.verdict.blocks.oracle import consult, not_as_before, with_data_from_before
from torture.oracles.verdict.guarantee import Terms
from torture.oracles.verdict.judgement import Findings

_FILE_BLOCKS_MAX = 32
"""128 KiB. The read-back of a bare device reads all of it, so its regions are shorter."""

_FILES_BEFORE, _FILE_BEFORE_BYTES = 8, 16384
"""As the guest's `vmimages/client/load/beside.py` reads them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ledger(GuestWorkload):
    """Three writers on files of a directory, or on one bare device."""

    name: str = "ledger"
    can_ignore_read_errors: bool = True
    can_excuse_names: bool = True
    needs_files: bool = False
    readback = READBACK
    readback_after_repair = READBACK_AFTER_REPAIR

    def job(self, *, seed: int, place: Place) -> dict[str, Any]:
        """The settings of the guest's load; the same dictionary writes and reads back."""
        where = (
            {"device": place.device}
            if place.directory is None
            else {"directory": f"{place.directory}/load"}
        )
        return {
            "trial": seed,
            "seed": seed,
            "mode": "raw" if place.directory is None else "files",
            "writers": 3,
            "files_per_writer": 4,
            "blocks_per_file_max": 12 if place.directory is None else _FILE_BLOCKS_MAX,
            "duration_ms": LOAD_LIFE_MS,
            "port": PORT,
            "before": 0 if place.directory is None else _FILES_BEFORE,
            **where,
        }

    def prepare(self, job: dict[str, Any]) -> str:
        """Make its directory, as `lost+found` is not its own, and a directory that it leaves alone."""
        if "directory" not in job:
            return ""
        own, before = job["directory"], f"{job['directory']}-before"
        line = '"$number was here before the load"'
        return (
            f"mkdir {own} {before} && for number in $(seq 0 {job['before'] - 1}); do "
            f"yes {line} | head -c {_FILE_BEFORE_BYTES} > {before}/$number || exit 1; done"
        )

    def judge(self, evidence: Evidence, terms: Terms, *, after_repair: bool) -> Findings:
        """The oracle's answer; raises `UnreadableError` when ledger or read-back is no evidence."""
        document = self.readback_after_repair if after_repair else self.readback
        readback = read_of(evidence, terms, document, parse=parse_readback)
        ignores_errors = evidence.ignores_read_errors
        found = consult(
            evidence.ledger,
            readback,
            cut_ms=evidence.cut_ms,
            tears_sectors=terms.tears_sectors,
            ignores_errors=ignores_errors,
            excuses_names=terms.excuses_names,
        )
        return with_data_from_before(
            found, not_as_before(evidence.ledger, readback, ignores_errors=ignores_errors)
        )


CHOICE: Choice[Workload] = Choice(
    name="ledger", value=Ledger(), words="the ledger load", joins=EVERY_SWEEP, place=0
)
