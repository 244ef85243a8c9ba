"""fio with a job file of the user's own: `--fio-job PATH`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads._fio import APPLICATION, JOB_FILE, WRITERS, must_be_verifiable
from torture.choices.workloads.protocol import Place, Workload
from torture.facts.axes.axis import Choice

_NAME = "fio_own"


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnFio(ApplicationWorkload):
    """Each trial's spec has the whole job file: a rerun does not need the file."""

    def job(self, *, seed: int, place: Place) -> dict[str, Any]:
        """The guest's settings; raises `HarnessError` without a job file that can be verified."""
        own = place.brought_for(self.name, option="--fio-job PATH")
        must_be_verifiable(own.text, of=own.path)
        return ApplicationWorkload.job(self, seed=seed, place=place) | {JOB_FILE: own.text}


CHOICE: Choice[Workload] = Choice(
    name=_NAME,
    value=OwnFio(name=_NAME, application=APPLICATION, writers=WRITERS),
    words="fio, your own job file",
)
