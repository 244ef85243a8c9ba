"""The report for machines and other tools, one module per format; results/README.md describes them."""

from __future__ import annotations

from torture.discovery import offered
from torture.report.exports.protocol import ExportFormat

_FORMATS: tuple[ExportFormat, ...] = offered(__name__, "EXPORT")

EXPORTS: dict[str, ExportFormat] = {form.name: form for form in _FORMATS}
"""Every format by its name."""
