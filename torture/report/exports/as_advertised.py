"""The promises that disks and mounts advertise, and whether cuts kept them: a table in Markdown."""

from __future__ import annotations

from pathlib import Path

from torture.facts.stats.rates import in_words
from torture.files import write_whole
from torture.report.exports.protocol import ExportFormat
from torture.report.figures.advertised_values import advertised_values
from torture.report.figures.tables import EXPORT_SCHEMA
from torture.report.reading.store import Store
from torture.report.reading.text import escaped, markdown_table

_COLUMNS = ("transport", "release", "advertised", "promise", "broken in cuts")
_LEGEND = """\
A row is a promise that the client's kernel shows of its disk (`queue` in sysfs) or of its mount.
Those of NVMe are of its Identify structures. A `write_verifier` was compared on the wire, where a
client lived on.
**Broken in cuts** counts the conclusive live cuts that show it broken, with the exact interval of 95 %.
A dash: no cut asked. `volume` is the physical block of the zvol in the NAS, where the disk's differs."""


def export_advertised(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `advertised.md`."""
    rows = [
        [
            escaped(held.transport),
            escaped(held.release),
            f"`{held.name}` is {escaped(held.values)}",
            held.words,
            in_words(held.broken),
        ]
        for held in advertised_values(store)
    ]
    parts = [
        [f"<!-- export schema {EXPORT_SCHEMA}: made by tools/report, not by hand -->"],
        ["# Advertised against kept"],
        [_LEGEND] if rows else ["No trial has asked its disk or mount."],
        markdown_table(_COLUMNS, rows, left=len(_COLUMNS) - 1) if rows else [],
    ]
    text = "\n\n".join("\n".join(part) for part in parts if part) + "\n"
    return (write_whole(folder / "advertised.md", text.encode()),)


EXPORT = ExportFormat(name="advertised", write=export_advertised)
