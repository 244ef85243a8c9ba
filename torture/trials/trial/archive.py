"""One file that reproduces what a trial found: its recordings, packed into its evidence."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from pathlib import Path

from torture.errors import HarnessError
from torture.facts.evidence.folder import RECORDINGS
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord

_INDEX = "index"
"""Made again from the log when a view is opened."""
_HARMED = (
    OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""What `zipfile` raises of a damaged archive: a byte of it may name a method or an encoding that it does
not know, say that it is encrypted, or not belong to the compressed data."""


def archive_recordings(record: TrialRecord, *, of: Path, into: Path) -> TrialRecord:
    """Pack the shelf's directory into the trial's folder, unless the trial was intact and nothing found.

    Of a planted fault that was not seen it tells whether there was anything to see.
    Where there is no room for them the verdict stands: the record's reasons then say that the trial
    cannot be replayed.
    """
    is_sound = not record.cut.audited.is_broken and not record.absence.acknowledged_in_outage
    if record.verdict is Verdict.INTACT and is_sound and not record.fault:
        return record
    file = into / RECORDINGS
    try:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for path in sorted(of.rglob("*")):
                if path.is_file() and path.name != _INDEX:
                    archive.write(path, path.relative_to(of))
    except OSError as error:
        file.unlink(missing_ok=True)
        return record.with_reason(f"no {RECORDINGS} was kept: {error}")
    return record


def unpack_recordings(evidence: Path, into: Path) -> None:
    """Unpack what `archive_recordings` kept; raises `HarnessError` when it is not there or harmed."""
    if not evidence.is_dir():
        raise HarnessError(f"there is no folder {evidence}", hint="ls results/latest/trials")
    try:
        with zipfile.ZipFile(evidence / RECORDINGS) as archive:
            archive.extractall(into)
    except FileNotFoundError as error:
        raise HarnessError(
            f"{evidence} has no {RECORDINGS}: those of intact trials are not kept",
            hint=f"tools/replay --live {evidence}",
        ) from error
    except _HARMED as error:
        raise HarnessError(
            f"{evidence / RECORDINGS} cannot be unpacked: {error}",
            hint=f"tools/replay --live {evidence}",
        ) from error
