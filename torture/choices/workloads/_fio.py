"""Loads that are fio's job files: each file in `jobs` is a choice.

`vmimages/client/load/applications/fio.py` is the guest's half. It also knows the written data.
"""

from __future__ import annotations

from pathlib import Path

from torture.choices.workloads._application import ApplicationWorkload
from torture.choices.workloads.protocol import Workload
from torture.errors import HarnessError
from torture.facts.axes.axis import Choice

APPLICATION = "fio"
WRITERS = 2
JOB_FILE = "job_file"
"""The key of the job file in the guest's job."""
_JOBS = Path(__file__).with_name("jobs")


def choices_of_jobs() -> tuple[Choice[Workload], ...]:
    """A choice for each job file, named after it. Its first line, a comment, describes the choice.

    Raises `HarnessError` for one that cannot be verified.
    """
    return tuple(_choice_of(path) for path in sorted(_JOBS.glob("*.fio")))


def _choice_of(path: Path) -> Choice[Workload]:
    text = path.read_text()
    must_be_verifiable(text, of=str(path))
    name = f"fio_{path.stem}"
    return Choice(
        name=name,
        value=ApplicationWorkload(
            name=name,
            application=APPLICATION,
            settings={JOB_FILE: text},
            writers=WRITERS,
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
