"""Loads that are fio's job files: each file in `jobs` is a choice, and so is the user's own.

`vmimages/client/load/applications/fio.py` is the guest's half. It also knows the written data.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import Place, Workload
from torture.errors import HarnessError
from torture.facts.axes.axis import Choice

_APPLICATION = "fio"
_OWN = "fio_own"
_WRITERS = 2
JOB_FILE = "job_file"
"""The key of the job file in the guest's job."""
_JOBS = Path(__file__).with_name("jobs")


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnFio(ApplicationWorkload):
    """Each trial's spec has the whole job file: a rerun does not need the file."""

    def job(self, *, seed: int, place: Place) -> dict[str, Any]:
        """The guest's settings; raises `HarnessError` without a job file that can be verified."""
        own = place.brought_for(self.name, option="--fio-job PATH")
        must_be_verifiable(own.text, of=own.path)
        return ApplicationWorkload.job(self, seed=seed, place=place) | {JOB_FILE: own.text}


def _choice_of(path: Path) -> Choice[Workload]:
    """The choice of a job file, named after it. Its first line, a comment, describes the choice.

    Raises `HarnessError` for one that cannot be verified.
    """
    text = path.read_text()
    must_be_verifiable(text, of=str(path))
    name = f"fio_{path.stem}"
    return Choice(
        name=name,
        value=ApplicationWorkload(
            name=name, application=_APPLICATION, settings={JOB_FILE: text}, writers=_WRITERS
        ),
        words=text.splitlines()[0].lstrip("; "),
    )


def must_be_verifiable(text: str, *, of: str) -> None:
    """Raise `HarnessError` for a job file that does not show what it wrote, or where."""
    said = [line.split(";")[0].split("#")[0].replace(" ", "").strip() for line in text.splitlines()]
    jobs = [line for line in said if line.startswith("[") and line.lower() != "[global]"]
    if not jobs:
        raise HarnessError(f"{of} has no job", hint="give it a section: [random]")
    if not any(line.startswith("verify=") and line != "verify=0" for line in said):
        raise HarnessError(f"{of} does not name a verification", hint="add to it: verify=crc32c")
    if wrong := [line for line in said if line.startswith("filename=/")]:
        raise HarnessError(f"{of} sets its own path: {wrong[0]}", hint=f"take {wrong[0]} out of it")
    if wrong := [line for line in said if line.startswith("time_based") and line != "time_based=0"]:
        raise HarnessError(
            f"{of} ends after a time, and fio cannot verify it then",
            hint=f"take {wrong[0]} out of it",
        )


CHOICES: tuple[Choice[Workload], ...] = (
    *(_choice_of(path) for path in sorted(_JOBS.glob("*.fio"))),
    Choice(
        name=_OWN,
        value=OwnFio(name=_OWN, application=_APPLICATION, writers=_WRITERS),
        words="fio, your own job file",
    ),
)
