"""Parquet, for data frames: the tables of CSV, with types and unchanged texts."""

from __future__ import annotations

from pathlib import Path

from torture.report.exports.protocol import ExportFormat
from torture.report.figures.tables import EXPORT_SCHEMA, copy_to, queries
from torture.report.reading.store import Store

_OPTIONS = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{export_schema: '{EXPORT_SCHEMA}'}}"


def export_parquet(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `trials.parquet` and `cells.parquet`."""
    return tuple(
        copy_to(store, query, folder / f"{name}.parquet", _OPTIONS)
        for name, query in queries(store).items()
    )


EXPORT = ExportFormat(name="parquet", write=export_parquet)
