"""A workload that is an application. `vmimages/client/load/applications` has its half in the guest."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torture.choices.workloads._guest_load import (
    LOAD_LIFE_MS,
    PORT,
    GuestWorkload,
    guest_command,
    read_of,
)
from torture.choices.workloads.protocol import Place
from torture.facts.evidence.folder import Evidence
from torture.oracles.verdict.applications.transactions import consult_transactions, parse_found
from torture.oracles.verdict.guarantee import Terms, UnreadableError
from torture.oracles.verdict.judgement import Findings

DATABASES_IMAGE = "client_databases"
"""The client with Debian's PostgreSQL and MariaDB."""
_MODE = "application"
_OF_ONE_TRIAL = ("trial", "seed", "duration_ms", "port")
"""The parts of a job that only the writers receive."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ApplicationWorkload(GuestWorkload):
    """Several writers of one application.

    `application` is its module in the guest. `settings` are that module's further settings.
    """

    application: str
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    writers: int = 3
    has_one_order: bool = True
    """Whether a transaction that is there proves that every earlier one is there, of any writer.

    It does where each is durable once it returned, or where all go into one log.
    """

    def job(self, *, seed: int, place: Place) -> dict[str, Any]:
        """The guest's settings; the same dictionary prepares, writes and reads back."""
        return {
            "trial": seed,
            "seed": seed,
            "mode": _MODE,
            "duration_ms": LOAD_LIFE_MS,
            "port": PORT,
            "application": self.application,
            "directory": f"{place.directory or ''}/{self.application}",
            "writers": self.writers,
            **self.settings,
        }

    def prepare(self, job: dict[str, Any]) -> str:
        """The application's needs before the load: the same for every seed, and so made once."""
        seedless = {key: value for key, value in job.items() if key not in _OF_ONE_TRIAL}
        return shlex.join(guest_command("prepare", seedless))

    def judge(self, evidence: Evidence, terms: Terms, *, after_repair: bool) -> Findings:
        """The oracle's answer; raises `UnreadableError` when ledger or read-back is no evidence."""
        document = self.readback_after_repair if after_repair else self.readback
        found = read_of(evidence, terms, document, parse=parse_found)
        findings = consult_transactions(
            evidence.ledger, found, has_one_order=self.has_one_order, cut_ms=evidence.cut_ms
        )
        if found.unchecked and not (findings.verdict and findings.verdict.is_loss):
            raise UnreadableError(f"{document}: {'; '.join(found.unchecked)}")
        return findings
