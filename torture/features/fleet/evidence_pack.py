"""A trial's evidence as one archive in memory, on its way from the host that ran the trial.

A zip rather than a compressed tar: recordings are compressed already, and a second time would cost most
of the way's processor time. Each file is stored or deflated by itself, and has a checksum.
"""

from __future__ import annotations

import io
import shutil
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from torture.errors import HarnessError
from torture.records.record.run_layout import RunLayout

_LEVEL = 1
_SAMPLE_BYTES = 64 * 1024
_WORTH_IT = 0.9
"""A file is deflated if its beginning shrinks to less than this share."""
_INCOMING = ".incoming"


def pack_evidence(folder: Path) -> bytes:
    """The files of a folder; no bytes where there is no folder."""
    if not folder.is_dir():
        return b""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compresslevel=_LEVEL) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_dir() or (path.is_file() and not path.is_symlink()):
                kind = zipfile.ZIP_DEFLATED if _shrinks(path) else zipfile.ZIP_STORED
                archive.write(path, path.relative_to(folder), compress_type=kind)
    return packed.getvalue()


def unpack_evidence(packed: bytes, run: RunLayout, trial: str) -> None:
    """Make a trial's folder of packed evidence: whole, and nothing else in it.

    Raises `HarnessError` for an archive that is damaged or leads out of the folder, and `OSError`
    where there is no room. The trial then has no folder.
    """
    if not packed:
        return
    folder = run.evidence_of(trial)
    incoming = run.folder / _INCOMING / trial
    shutil.rmtree(incoming, ignore_errors=True)  # left by a killed run
    try:
        incoming.mkdir(parents=True)
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            for info in archive.infolist():
                _take(archive, info, incoming)
        if folder.exists():  # of an earlier try: never mixed with this one
            shutil.rmtree(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        incoming.rename(folder)
    except (EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise HarnessError(f"the evidence of {trial} cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(incoming, ignore_errors=True)


def remove_incoming(run: RunLayout) -> None:
    """Remove the folder of evidence on its way, once none is."""
    shutil.rmtree(run.folder / _INCOMING, ignore_errors=True)


def _shrinks(path: Path) -> bool:
    if path.is_dir():
        return False
    with path.open("rb") as file:
        sample = file.read(_SAMPLE_BYTES)
    return len(zlib.compress(sample, _LEVEL)) < len(sample) * _WORTH_IT


def _take(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path) -> None:
    """Unpack a file or folder as one, whatever its mode says; a path that leads elsewhere is refused."""
    name = PurePosixPath(info.filename)
    if name.is_absolute() or ".." in name.parts or not name.parts:
        raise ValueError(f"{info.filename[:80]!r} is no path below its folder")
    if info.is_dir():
        (folder / name).mkdir(exist_ok=True)
        return
    with archive.open(info) as content, (folder / name).open("wb") as file:
        shutil.copyfileobj(content, file)
