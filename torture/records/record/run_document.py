"""`run.json`: the machine, tools and options of a run. Documented in results/README.md.

The place of everything in a run: the names are spelled here, and nowhere else.

    results/latest -> RUN
    results/RUN/run.json, trials.jsonl, report.html
    results/RUN/trials/TRIAL/...
    results/RUN/repro/TRIAL/...
    results/RUN/workers/wN.log

`torture.facts.evidence.folder` has the names of the files in a trial's folder. results/README.md
explains the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torture.facts.evidence.documents import Count, Document, document_or_none, field, strict_json
from torture.files import write_whole

LATEST = "latest"
"""Beside the runs: a link to the newest."""

RUN_FILE = "run.json"
"""See `torture.records.record.run_document`."""
TRIALS_FILE = "trials.jsonl"
"""One record a line, see `torture.records.record.trials`."""
TRIALS_FILE_BEFORE = "trials.jsonl.before"
"""`TRIALS_FILE` before the run was judged again. Each further judgement adds `-2` and so on."""
PAGE_FILE = "report.html"
EVIDENCE_FOLDER = "trials"
"""One folder a trial."""
REPRODUCERS_FOLDER = "repro"
"""One folder for each of the first losses that break a guarantee."""
WORKERS_FOLDER = "workers"
"""One log a worker."""

_FOLDER_NAME = re.compile(r"[^/\0]{1,250}")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunLayout:
    """The places in one run's folder; none of them needs to exist."""

    folder: Path

    @classmethod
    def of_evidence(cls, evidence: Path) -> RunLayout:
        """The run of a trial's folder, even of one that does not exist."""
        return cls(folder=evidence.resolve().parents[1])

    @property
    def run_file(self) -> Path:
        """The machine, tools and options of the run."""
        return self.folder / RUN_FILE

    @property
    def trials_file(self) -> Path:
        """One record a line; absent as long as no trial has ended."""
        return self.folder / TRIALS_FILE

    @property
    def page(self) -> Path:
        """The report."""
        return self.folder / PAGE_FILE

    @property
    def evidence(self) -> Path:
        """One folder a trial."""
        return self.folder / EVIDENCE_FOLDER

    @property
    def reproducers(self) -> Path:
        """One run of a single trial for each loss that breaks a guarantee, to hand over."""
        return self.folder / REPRODUCERS_FOLDER

    def worker_log(self, number: int) -> Path:
        """A worker's output, over all of its trials."""
        return self.folder / WORKERS_FOLDER / f"w{number}.log"

    def with_relative_paths(self, text: str) -> str:
        """A text with paths relative to the folder: a run may be moved, or published."""
        return text.replace(f"{self.folder}/", "")

    def evidence_of(self, trial: str) -> Path:
        """The folder of a trial; raises `ValueError` for a name that leads elsewhere, or nowhere."""
        if trial in {".", ".."} or not _FOLDER_NAME.fullmatch(trial):
            raise ValueError(f"{trial[:80]!r} is no name of a folder")
        return self.evidence / trial


_BYTES_MAX = 64 * 1024**2


class HostInfo(Document, frozen=True, kw_only=True):
    """The machine that the run was made on."""

    kernel: str = ""
    """Its release."""
    machine: str = ""
    """The machine's name, by `uname -m`."""
    cores: Count | None = None
    """Its processors."""
    memory_mib: Count | None = None
    """Its memory."""
    user: str = ""
    """`root` or `unprivileged`."""


class Chosen(Document, frozen=True, kw_only=True):
    """The run's choice among several kinds, and its reason."""

    kind: str = ""
    """The choice."""
    reason: str = ""
    """Why it was made."""


class ImageInfo(Document, frozen=True, kw_only=True):
    """A guest image: its key in the cache, and the versions of its contents."""

    key: str = ""
    """Its key in the cache."""
    sha256: str = ""
    """The digest of its content; empty in older runs."""
    packages: dict[str, str] = field(default_factory=dict)
    """Package to version."""


class RunDocument(Document, frozen=True, kw_only=True):
    """The facts about a run."""

    run: str = ""
    """Its name: that of its folder at the beginning."""
    seed: int | None = None
    """The seed; None for a merged run whose parts had several."""
    options: dict[str, Any] = field(default_factory=dict)
    """The options, as `fixtures.options.Options.as_json` gives them; a replay has others."""
    begun: str = ""
    """ISO 8601, with the zone."""
    host: HostInfo = HostInfo()
    """The machine."""
    accelerator: Chosen = Chosen()
    """`kvm` or `tcg`, with the reason."""
    processor: str = ""
    """The guests' processor, e.g. `maximum, without cx16, without avx`."""
    network: Chosen = Chosen()
    """The guests' network, with the reason."""
    boot: str = ""
    """Whether machines were resumed (`warm`) or booted (`cold`)."""
    zfs: str = ""
    """The version that the NAS was to run; empty for runs that knew only one."""
    linux_nas: str = ""
    """The name of the NAS's kernel; empty for that of its ZFS's suite."""
    linux_client: str = ""
    """The name of the client's kernel; empty for runs that knew only one."""
    versions: dict[str, str] = field(default_factory=dict)
    """The versions of the host's tools."""
    images: dict[str, ImageInfo | None] = field(default_factory=dict)
    """None for an image that was not built."""
    extra: dict[str, str] = field(default_factory=dict)
    """The SHA-256 of each file of `--extra`, by its path there: loads and SLOG kinds of the user's."""
    merged: tuple[str, ...] | None = None
    """The names of the parts of a merged run; None for any other run."""
    notes: tuple[str, ...] = ()
    """Remarks on the files of a merged run's parts."""
    void: dict[str, str] = field(default_factory=dict)
    """Trials that are in no rate, each with the reason; a human writes it."""
    engine_state: str = ""
    """The state of the suite (`torture.trials.campaign.run`); empty in older runs."""

    @property
    def voided(self) -> dict[str, str]:
        """The void trials with their reasons; a trial without a reason is not void."""
        return {trial: reason for trial, reason in self.void.items() if reason.strip()}

    @property
    def is_sequential(self) -> bool:
        """Whether its cells stopped at the answer to their question: intervals must allow for it."""
        return bool(self.options.get("until"))

    @property
    def jobs(self) -> int | None:
        """The number of trials at once; None where the run does not say it."""
        jobs = self.options.get("jobs")
        return jobs if type(jobs) is int and jobs > 0 else None

    def write(self, folder: Path) -> None:
        """Write it into a run's folder, whole or not at all. Raises `OSError`."""
        write_whole(folder / RUN_FILE, json.dumps(self.as_json(), indent=1).encode() + b"\n")


def read_run_document(folder: Path) -> RunDocument | None:
    """The document of a run's folder; None where there is none, or no readable one.

    Of one with a wrong field its void trials stand, as they would else count again.
    """
    file = folder / RUN_FILE
    try:
        if not file.is_file() or file.stat().st_size > _BYTES_MAX:
            return None
        data = strict_json(file.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(data, dict) or not data:
        return None
    whole = document_or_none(RunDocument, data)
    return whole or document_or_none(RunDocument, {"void": data.get("void")})


def agreed(documents: Sequence[RunDocument]) -> RunDocument:
    """The common value of each field, if all agree, else none; also within the options."""
    said = [{name: getattr(own, name) for name in own.names()} for own in documents]
    options = _agreed_items([own.options for own in documents])
    return RunDocument(**_agreed_items(said) | {"options": options})


def _agreed_items(objects: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first, *rest = objects
    return {
        key: value
        for key, value in first.items()
        if all(key in other and other[key] == value for other in rest)
    }
