"""`run.json`: the machine, tools and options of a run. Documented in results/README.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torture.facts.evidence.documents import Count, Document, document_or_none, field
from torture.facts.evidence.strict_json import strict_json
from torture.files import write_whole
from torture.records.record.run_layout import RUN_FILE

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
    """The state of the suite (`torture.trials.campaign.engine_state`); empty in older runs."""

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
