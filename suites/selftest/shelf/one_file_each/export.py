"""An export format of one line."""

from __future__ import annotations

from pathlib import Path

from torture.files import write_whole
from torture.report.exports.protocol import ExportFormat
from torture.report.reading.store import Store


def export_dummy(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write how many trials there are, planted faults too."""
    [(trials,)] = store.sql.execute("SELECT count(*) FROM trials").fetchall()
    return (write_whole(folder / "report.dummy", f"{trials}\n".encode()),)


EXPORT = ExportFormat(name="dummy", write=export_dummy)
