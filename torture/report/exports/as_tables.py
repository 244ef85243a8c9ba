"""Tables for other programs: CSV and Parquet.

CSV (RFC 4180, UTF-8), for spreadsheets and other programs.

Parquet, for data frames: the tables of CSV, with types and unchanged texts.
"""

from __future__ import annotations

from pathlib import Path

from torture.report.exports.protocol import ExportFormat
from torture.report.figures.tables import EXPORT_SCHEMA, copy_to, queries
from torture.report.reading.store import Store

_CONTROLS = r"[\x00-\x08\x0b-\x1f\x7f]"
_FORMULA = r"^[=+\-@\t\r\n]"
"""Beginnings by which a spreadsheet takes a text for a formula (OWASP, CSV Injection)."""


def export_csv(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `trials.csv` and `cells.csv`.

    A text that a spreadsheet would run as a formula gets a leading apostrophe. Control characters are
    replaced.
    """
    return tuple(
        copy_to(
            store, _without_formulas(store, query), folder / f"{name}.csv", "FORMAT csv, HEADER"
        )
        for name, query in queries(store).items()
    )


def _without_formulas(store: Store, query: str) -> str:
    columns = []
    for name, kind, *_ in store.sql.execute(f"DESCRIBE {query}").fetchall():
        if kind == "VARCHAR":
            text = f"regexp_replace(\"{name}\", '{_CONTROLS}', chr(65533), 'g')"
            columns.append(
                f"CASE WHEN regexp_matches(\"{name}\", '{_FORMULA}') THEN '''' || {text} "
                f'ELSE {text} END AS "{name}"'
            )
        else:
            columns.append(f'"{name}"')
    return f"SELECT {', '.join(columns)} FROM ({query})"


_OPTIONS = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{export_schema: '{EXPORT_SCHEMA}'}}"


def export_parquet(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `trials.parquet` and `cells.parquet`."""
    return tuple(
        copy_to(store, query, folder / f"{name}.parquet", _OPTIONS)
        for name, query in queries(store).items()
    )


EXPORTS = (
    ExportFormat(name="csv", write=export_csv),
    ExportFormat(name="parquet", write=export_parquet),
)
