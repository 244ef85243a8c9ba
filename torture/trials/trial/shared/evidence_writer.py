"""The writer of a trial's evidence: tool lines, documents, times, and its recordings packed."""

from __future__ import annotations

import lzma
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torture.errors import HarnessError
from torture.facts.evidence.folder import (
    RECORDINGS,
    Completed,
    Step,
    ToolOutput,
    append_tool,
    write_document,
)
from torture.machines.lab.machine import Machine
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import TrialRecord
from torture.trials.trial.shared.resident import must_have_ended


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceWriter:
    """Writes into one trial's folder."""

    folder: Path
    enter_stage: Callable[[str], None] = lambda _stage: None
    """Shows the new stage in the live line."""
    require_host: Callable[[], None] = lambda: None
    """Raises `HarnessError` once the host ended a machine: what others show then is no evidence."""
    timings: dict[str, int] = field(default_factory=dict)
    """Milliseconds of each stage so far."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage; the live line and the record's timings have its name."""
        self.enter_stage(name)
        begun = time.monotonic()
        try:
            yield
        finally:
            self.timings[name] = round((time.monotonic() - begun) * 1000)

    def observe(
        self, machine: Machine, step: Step, argv: tuple[str, ...], *, deadline_s: float
    ) -> Completed:
        """Run a tool in a guest and keep all its output as evidence of `step`."""
        completed = machine.run(*argv, deadline_s=deadline_s)
        self.keep(step, completed)
        return completed

    def observe_to_end(
        self, machine: Machine, step: Step, argv: tuple[str, ...], *, deadline_s: float
    ) -> Completed:
        """Run a tool that needs the storage, with its output as evidence of `step`.

        Raises `StorageFailed` when it does not end.
        """
        completed = self.observe(machine, step, argv, deadline_s=deadline_s)
        must_have_ended(machine, step, completed, deadline_s=deadline_s)
        return completed

    def keep(self, step: Step, completed: Completed) -> None:
        """Keep all output of a tool as evidence of `step`; raises what `require_host` raises."""
        self.require_host()
        append_tool(self.folder, ToolOutput(step=step, name=completed.tool, **asdict(completed)))

    def write(self, name: str, content: dict[str, Any] | str) -> None:
        """Write a whole document, which replaces an earlier one; raises what `require_host` raises."""
        self.require_host()
        write_document(self.folder, name, content)


_INDEX = "index"
"""The shelf makes it again from the recording when it opens a view."""
_DAMAGED = (
    OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""The errors of `zipfile` at a damaged archive. A damaged byte may name an unknown method or
encoding, mark the archive as encrypted, or be no compressed data."""


def archive_recordings(record: TrialRecord, *, of: Path, into: Path) -> TrialRecord:
    """Pack the shelf's directory into the trial's folder; not for an intact trial without finding.

    The recording of a missed planted fault shows whether the fault left a trace. Where there is no
    room for a recording, the verdict stands, and the record's reasons have the error. Then the
    trial cannot be replayed.
    """
    is_sound = not record.cut.audited.is_broken and not record.absence.acknowledged_in_outage
    if record.verdict is Verdict.INTACT and is_sound and not record.fault:
        return record
    file = into / RECORDINGS
    try:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            pack(archive, of.rglob("*"), below=of)
    except OSError as error:
        file.unlink(missing_ok=True)
        return record.with_reason(f"no {RECORDINGS} was kept: {error}")
    return record


def pack(archive: zipfile.ZipFile, paths: Iterable[Path], *, below: Path) -> None:
    """Add files by their paths below a folder."""
    for path in sorted(paths):
        if path.is_file() and path.name != _INDEX:
            archive.write(path, path.relative_to(below))


def unpack_recordings(evidence: Path, into: Path) -> None:
    """Unpack the archive of `archive_recordings`; raises `HarnessError` if missing or damaged."""
    if not evidence.is_dir():
        raise HarnessError(f"there is no folder {evidence}", hint="ls results/latest/trials")
    try:
        with zipfile.ZipFile(evidence / RECORDINGS) as archive:
            archive.extractall(into)
    except FileNotFoundError as error:
        raise HarnessError(
            f"{evidence} has no {RECORDINGS}: intact trials keep none",
            hint=f"tools/replay --live {evidence}",
        ) from error
    except _DAMAGED as error:
        raise HarnessError(
            f"{evidence / RECORDINGS} cannot be unpacked: {error}",
            hint=f"tools/replay --live {evidence}",
        ) from error
