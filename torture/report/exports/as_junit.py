"""JUnit's XML, as CI systems show it: a test per cell, which fails when a trial broke its guarantee.

The dialect is that of Jenkins and GitLab; properties are written like pytest's.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from torture.facts.stats.rates import CONFIDENCE, Rate, in_words
from torture.files import write_whole
from torture.oracles.verdict.verdicts import Verdict
from torture.report.exports.protocol import ExportFormat
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.tables import EXPORT_SCHEMA
from torture.report.reading.store import Store
from torture.report.reading.text import printable, shortened

_TRIALS_MAX = 10
"""How many trials a failure names, at most."""
_REASONS_CHARACTERS_MAX = 500

_BROKEN = """
SELECT trial, verdict, rollback_ms, reasons FROM live WHERE broke_guarantee AND cell = ?
ORDER BY badness DESC, rollback_ms DESC NULLS LAST, trial LIMIT ?
"""


def export_junit(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `junit.xml`; a cell without a conclusive trial is an error."""
    cells = cell_figures(store.tallies())
    spent_s = dict(
        store.sql.execute("SELECT cell, sum(trial_ms) / 1000 FROM live GROUP BY cell").fetchall()
    )
    counts = {
        "tests": str(len(cells)),
        "failures": str(sum(figures.broken > 0 for figures in cells)),
        "errors": str(sum(not (figures.broken or figures.conclusive) for figures in cells)),
        "time": f"{sum(spent_s.values()):.3f}",
    }
    root = ElementTree.Element("testsuites", {"name": "powercut", **counts})
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": "powercut", **counts, "skipped": "0"}
    )
    _properties(
        suite,
        {
            "export_schema": str(EXPORT_SCHEMA),
            "confidence": str(CONFIDENCE),
            "trials": str(store.trials),
            "runs": ", ".join(run.name for run in store.runs),
        },
    )
    for figures in cells:
        _test(suite, figures, store, spent_s[figures.cell])
    if store.notes:
        ElementTree.SubElement(suite, "system-out").text = "\n".join(map(printable, store.notes))
    ElementTree.indent(root)
    content = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return (write_whole(folder / "junit.xml", content + b"\n"),)


def _test(suite: ElementTree.Element, figures: CellFigures, store: Store, spent_s: float) -> None:
    test = ElementTree.SubElement(
        suite,
        "testcase",
        {"classname": "powercut", "name": printable(figures.cell), "time": f"{spent_s:.3f}"},
    )
    _properties(
        test,
        {
            "guarantee": figures.guarantee,
            "trials": str(figures.trials),
            "broken": str(figures.broken),
            **{verdict: str(figures.verdicts.get(verdict, 0)) for verdict in Verdict},
            **_rate("loss", figures.loss),
            **_rate("corruption", figures.corruption),
        },
    )
    if figures.broken:
        message = (
            f"{figures.broken} of {figures.trials} trials are worse than the guarantee "
            f"'{figures.guarantee}'"
        )
        failure = ElementTree.SubElement(
            test, "failure", {"type": "broken guarantee", "message": printable(message)}
        )
        found = store.sql.execute(_BROKEN, [figures.cell, _TRIALS_MAX]).fetchall()
        lines = [_broken_in_words(*row) for row in found]
        if figures.broken > len(lines):
            lines.append(f"and {figures.broken - len(lines)} more")
        failure.text = "\n".join(lines)
    elif figures.conclusive == 0:
        message = f"none of {figures.trials} trials was conclusive"
        ElementTree.SubElement(test, "error", {"type": "inconclusive", "message": message})
    loss, corruption = in_words(figures.loss), in_words(figures.corruption)
    output = ElementTree.SubElement(test, "system-out")
    output.text = f"acknowledged loss {loss}, corruption {corruption}, each at 95 %"


def _broken_in_words(trial: str, verdict: str, rollback_ms: float | None, reasons: str) -> str:
    back = "" if rollback_ms is None else f", {rollback_ms:.0f} ms back"
    why = shortened(printable(reasons), _REASONS_CHARACTERS_MAX)
    return f"{printable(trial)}: {verdict}{back}" + (f": {why}" if why else "")


def _properties(parent: ElementTree.Element, values: dict[str, str]) -> None:
    properties = ElementTree.SubElement(parent, "properties")
    for name, value in values.items():
        ElementTree.SubElement(properties, "property", {"name": name, "value": printable(value)})


def _rate(name: str, rate: Rate) -> dict[str, str]:
    share = {f"{name}_share": f"{rate.share:.6g}"} if rate.trials else {}
    return {
        f"{name}_events": str(rate.events),
        **share,
        f"{name}_low": f"{rate.low:.6g}",
        f"{name}_high": f"{rate.high:.6g}",
    }


EXPORT = ExportFormat(name="junit", write=export_junit)
