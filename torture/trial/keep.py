"""One file that reproduces what a trial found: its recordings, packed into its evidence."""

from __future__ import annotations

import zipfile
from pathlib import Path

from torture.errors import HarnessError
from torture.matrix.verdicts import Verdict
from torture.record.evidence import RECORDINGS
from torture.record.trials import TrialRecord
from torture.trial.bench import Bench

_INDEX = "index"
"""Made again from the log when a view is opened."""


def keep_recordings(bench: Bench, record: TrialRecord) -> None:
    """Pack the recordings of a trial that was not intact; the others' are removed with its scratch.

    Raises `HarnessError` when there is no room for them.
    """
    if record.verdict is Verdict.INTACT or bench.spec.replay_of:
        return
    file = bench.folder / RECORDINGS
    try:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for path in sorted(bench.shelf.directory.rglob("*")):
                if path.is_file() and path.name != _INDEX:
                    archive.write(path, path.relative_to(bench.shelf.directory))
    except OSError as error:
        file.unlink(missing_ok=True)
        raise HarnessError(
            f"the recordings of {bench.spec.trial} cannot be kept: {error}",
            hint="free some space, or set --results",
        ) from error


def unpack_recordings(evidence: Path, into: Path) -> None:
    """Unpack what `keep_recordings` kept; raises `HarnessError` when it is not there or harmed."""
    try:
        with zipfile.ZipFile(evidence / RECORDINGS) as archive:
            archive.extractall(into)
    except FileNotFoundError as error:
        raise HarnessError(
            f"{evidence} has no {RECORDINGS}: those of intact trials are not kept",
            hint=f"tools/replay --live {evidence}",
        ) from error
    except (OSError, zipfile.BadZipFile) as error:
        raise HarnessError(f"{evidence / RECORDINGS} cannot be unpacked: {error}") from error
