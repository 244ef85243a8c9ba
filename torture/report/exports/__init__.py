"""The report for machines and other tools, one module per format; results/README.md describes them."""

from __future__ import annotations

from argparse import ArgumentTypeError

from torture.discovery import offered
from torture.report.exports.protocol import ExportFormat

_FORMATS: tuple[ExportFormat, ...] = offered(__name__, "EXPORT")

EXPORTS: dict[str, ExportFormat] = {form.name: form for form in _FORMATS}
"""Every format by its name."""

_ON_THE_PAGE = "the page has it, report.html, below"
_REPLACED = {
    "roads": "--export markdown has the rates of each cell",
    "phases": f"{_ON_THE_PAGE} 'Where the cuts fell' and 'What the disks kept'",
    "advertised": f"{_ON_THE_PAGE} 'Advertised against kept'",
    "administration": f"{_ON_THE_PAGE} 'Administration under the cut'",
    "junit": "pytest writes it: tools/run suites/powercut --junitxml FILE has each cell",
}
"""Former formats, and the place of their content now."""


def export_name(text: str) -> str:
    """The name of a format; raises `ArgumentTypeError` for a former one."""
    if text in _REPLACED:
        raise ArgumentTypeError(f"{text} is no format any more: {_REPLACED[text]}")
    return text
