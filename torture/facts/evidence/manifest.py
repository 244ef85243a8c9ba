"""The manifest of a trial's folder: the list of its evidence at the trial's end, written last of all.

`manifest.json` has the SHA-256 of every document that is judged, and the step of every tool's run
with the hash of its line. It also has the trial's verdict. Evidence that differs from its manifest
gives no better verdict than that one. Older versions wrote no manifest, and their `spec.json`
promises none. Their trials are judged by their files alone.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torture.facts.evidence.documents import strict_json
from torture.files import write_whole

MANIFEST = "manifest.json"
MANIFEST_DUE = "has_manifest"
"""In `spec.json`: the trial ends with a manifest."""
_TOOLS = "tools.jsonl"
_JUDGED = ("*.json", "*.jsonl")
_SCHEMA = 1
_HASH_CHARS = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class ManifestFinding:
    """The changes of evidence since its manifest was written.

    `is_due`: the trial's version writes a manifest. `complaints`: the changes, in words; empty
    where no manifest is due. `verdict`: the written verdict, empty where it is unreadable.
    """

    is_due: bool = False
    complaints: tuple[str, ...] = ()
    verdict: str = ""


def write_manifest(folder: Path, *, verdict: str = "") -> None:
    """List everything in a trial's folder; raises `OSError`."""
    content = {
        "schema": _SCHEMA,
        "files": _files_in(folder),
        "tools": _tools_in(folder),
        "verdict": verdict,
    }
    write_whole(folder / MANIFEST, (json.dumps(content, indent=1) + "\n").encode())


def check_manifest(folder: Path, spec: Mapping[str, Any]) -> ManifestFinding:
    """Compare a folder with its manifest; never raises for missing evidence."""
    if spec.get(MANIFEST_DUE) is not True:
        return ManifestFinding()
    try:
        said = strict_json((folder / MANIFEST).read_bytes())
        files = {str(name): str(digest) for name, digest in said["files"].items()}
        tools = [f"{step} {digest}" for step, digest in said["tools"]]
        verdict = str(said["verdict"])
        if said["schema"] != _SCHEMA:
            raise ValueError(f"schema {said['schema']}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return ManifestFinding(is_due=True, complaints=(f"{MANIFEST} cannot be read: {error!r}",))
    found = _files_in(folder)
    complaints = [f"{name} is missing" for name in sorted(files.keys() - found.keys())]
    complaints += [f"{name} is not in {MANIFEST}" for name in sorted(found.keys() - files.keys())]
    changed = [name for name in sorted(files.keys() & found.keys()) if files[name] != found[name]]
    complaints += [f"{name} has changed since it was written" for name in changed]
    gone = Counter(tools) - Counter(f"{step} {digest}" for step, digest in _tools_in(folder))
    complaints += [f"{_TOOLS}: {line.split()[0]} is gone" for line in gone]
    return ManifestFinding(is_due=True, complaints=tuple(complaints), verdict=verdict)


def _files_in(folder: Path) -> dict[str, str]:
    paths = sorted(path for pattern in _JUDGED for path in folder.glob(pattern))
    return {path.name: _digest(path.read_bytes()) for path in paths if path.name != MANIFEST}


def _tools_in(folder: Path) -> list[list[str]]:
    try:
        lines = (folder / _TOOLS).read_bytes().splitlines()
    except OSError:
        return []
    return [[_step_of(line), _digest(line)] for line in lines if line.strip()]


def _step_of(line: bytes) -> str:
    try:
        return str(strict_json(line)["step"])
    except (ValueError, KeyError, TypeError):
        return "garbled"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_HASH_CHARS]
