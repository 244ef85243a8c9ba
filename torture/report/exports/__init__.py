"""The report for machines and other tools, one module a format; described in results/README.md."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from torture.report.exports.as_csv import export_csv
from torture.report.exports.as_json import export_json
from torture.report.exports.as_junit import export_junit
from torture.report.exports.as_markdown import export_markdown
from torture.report.exports.as_parquet import export_parquet
from torture.report.reading.store import Store


class ExportFormat(StrEnum):
    """What can be asked for."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    MARKDOWN = "markdown"
    JUNIT = "junit"


EXPORTS: dict[ExportFormat, Callable[[Store, Path], tuple[Path, ...]]] = {
    ExportFormat.CSV: export_csv,
    ExportFormat.JSON: export_json,
    ExportFormat.PARQUET: export_parquet,
    ExportFormat.MARKDOWN: export_markdown,
    ExportFormat.JUNIT: export_junit,
}
"""Each writes its files into a folder that is there, and returns them. They raise `OSError`, and
`HarnessError` when a table cannot be written."""
