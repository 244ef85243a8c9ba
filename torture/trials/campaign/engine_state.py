"""The state of the suite that makes trials: which code, whatever its version's name."""

from __future__ import annotations

import hashlib
import time
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from torture.checkout import CHECKOUT
from torture.records.record.trials import TrialRecord

_MAKES_TRIALS = ("torture", "vmimages")
_ONLY_REPORTS = Path("torture/report")
_DIGITS = 16


@cache
def engine_state(checkout: Path = CHECKOUT) -> str:
    """The first digits of a SHA-256 over the paths and contents of all files that make trials.

    A report changes no trial, and neither do the files that Python leaves behind.
    """
    digest = hashlib.sha256()
    for folder in _MAKES_TRIALS:
        for file in sorted((checkout / folder).rglob("*")):
            path = file.relative_to(checkout)
            is_left_behind = "__pycache__" in path.parts
            if file.is_file() and not is_left_behind and not path.is_relative_to(_ONLY_REPORTS):
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                digest.update(f"{content}  {path}\n".encode())
    return digest.hexdigest()[:_DIGITS]


def stamped(record: TrialRecord) -> TrialRecord:
    """The record of a trial that has just been made and judged by this suite."""
    return replace(record, engine_state=engine_state(), scored_s=int(time.time()))
