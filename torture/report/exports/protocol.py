"""The interface of an export format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torture.report.reading.store import Store


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportFormat:
    """A format, by its name for `tools/report --export`.

    `write` writes its files into an existing folder, and returns them. It raises `OSError`, and
    `HarnessError` when a table cannot be written.
    """

    name: str
    write: Callable[[Store, Path], tuple[Path, ...]]
