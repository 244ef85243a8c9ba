"""One file that reproduces a trial's findings: its recordings, packed into its evidence."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.evidence.folder import RECORDINGS
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord

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
