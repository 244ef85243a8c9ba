"""JUnit's XML, as CI systems show it: a suite and a test per cell, failed by a broken guarantee.

It is valid by the schemas of Jenkins (xunit-plugin, `junit-10.xsd`) and of Ant's reports (Windy Road,
`JUnit.xsd`). In both a test has no properties and Ant's has no output: a cell's are its suite's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

from torture.facts.stats.rates import CONFIDENCE, Rate, in_words
from torture.files import write_whole
from torture.oracles.verdict.verdicts import Verdict
from torture.report.exports.protocol import ExportFormat
from torture.report.figures.answer import theory_of
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.sentence import walked_in_words
from torture.report.figures.tables import CELL_RATES, EXPORT_SCHEMA
from torture.report.figures.wording import duration_in_words
from torture.report.reading.runs import RunInfo, folder_in_words
from torture.report.reading.store import Store
from torture.report.reading.text import printable, shortened

_TRIALS_MAX = 10
"""How many trials a failure names, at most."""
_REASONS_CHARACTERS_MAX = 500
_NAME = "powercut"
_UNKNOWN_TIME = "1970-01-01T00:00:00"
"""Ant's schema requires a time, and its reports know no other word for none."""

_BROKEN = """
SELECT source, trial, verdict, rollback_ms, reasons FROM judged WHERE broke_guarantee AND cell = ?
ORDER BY badness DESC, rollback_ms DESC NULLS LAST, trial LIMIT ?
"""


def export_junit(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `junit.xml`; a cell without a conclusive trial is an error.

    The first suite has no test: it has the facts and notes of the whole report.
    """
    spent_s = dict(
        store.sql.execute("SELECT cell, sum(trial_ms) / 1000 FROM judged GROUP BY cell").fetchall()
    )
    root = ElementTree.Element("testsuites")
    begun = _begun(store.runs)
    properties = {
        "export_schema": str(EXPORT_SCHEMA),
        "confidence": str(CONFIDENCE),
        "trials": str(store.trials),
        "runs": ", ".join(run.name for run in store.runs),
    }
    whole = _suite(root, _NAME, properties, begun=begun)
    _outputs(whole, "\n".join(map(printable, store.notes)))
    for figures in cell_figures(store.tallies()):
        _cell(root, figures, store, begun=begun, spent_s=spent_s[figures.cell])
    ElementTree.indent(root)
    content = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return (write_whole(folder / "junit.xml", content + b"\n"),)


def _begun(runs: Sequence[RunInfo]) -> str:
    """The time of the first run, without its zone: Ant's schema refuses one."""
    for run in runs:
        try:
            return datetime.fromisoformat(run.document.begun).strftime("%Y-%m-%dT%H:%M:%S")
        except ValueError:
            continue
    return _UNKNOWN_TIME


def _suite(
    root: ElementTree.Element, name: str, properties: Mapping[str, str], *, begun: str,
    tests: int = 0, failures: int = 0, errors: int = 0, spent_s: float = 0.0,
) -> ElementTree.Element:  # fmt: skip
    counts = {"tests": tests, "failures": failures, "errors": errors, "skipped": 0}
    named = {"name": name, "package": _NAME, "id": str(len(root)), "hostname": "localhost"}
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        named
        | {"timestamp": begun, "time": f"{spent_s:.3f}"}
        | {count: str(int(number)) for count, number in counts.items()},
    )
    listed = ElementTree.SubElement(suite, "properties")
    for key, value in properties.items():
        ElementTree.SubElement(listed, "property", {"name": key, "value": printable(value)})
    return suite


def _cell(
    root: ElementTree.Element, figures: CellFigures, store: Store, *, begun: str, spent_s: float
) -> None:
    has_failed = figures.is_worse
    is_silent = not has_failed and not figures.has_answer
    name = printable(figures.cell)
    properties: dict[str, str] = {
        "guarantee": figures.guarantee,
        "answer_group": theory_of(figures),
        "confidence": str(CONFIDENCE),
        "is_sequential": str(figures.harm.is_sequential).lower(),
        "trials": str(figures.trials),
        "broken": str(figures.broken),
        **{name: str(count) for name, count in figures.walk_counts.items()},
        **{verdict: str(figures.verdicts.get(verdict, 0)) for verdict in Verdict},
    }
    for rate in CELL_RATES:
        properties |= _rate(rate, getattr(figures, rate))
    suite = _suite(
        root,
        name,
        properties,
        begun=begun,
        tests=1,
        failures=has_failed,
        errors=is_silent,
        spent_s=spent_s,
    )
    test = ElementTree.SubElement(
        suite, "testcase", {"classname": _NAME, "name": name, "time": f"{spent_s:.3f}"}
    )
    if has_failed:
        _failure(test, figures, store)
    elif is_silent:
        message = f"none of {figures.trials} trials was conclusive"
        if figures.walked is not None:
            message = f"{message}, and no walk"
        ElementTree.SubElement(test, "error", {"type": "inconclusive", "message": message})
    walked = "" if figures.walked is None else f"; {walked_in_words(figures.walked)}"
    _outputs(
        suite,
        f"lost or damaged {in_words(figures.harm)}, acknowledged loss {in_words(figures.loss)}, "
        f"corruption {in_words(figures.corruption)}, each at 95 %{walked}",
    )


def _failure(test: ElementTree.Element, figures: CellFigures, store: Store) -> None:
    broken = figures.broken + figures.broken_walks
    counts = [f"{figures.broken} of {figures.trials} trials"] if figures.trials else []
    if figures.broken_walks:
        counts.append(f"{figures.broken_walks} of {figures.walk_counts['walks']} walks")
    message = f"{' and '.join(counts)} are worse than the guarantee '{figures.guarantee}'"
    failure = ElementTree.SubElement(
        test, "failure", {"type": "broken guarantee", "message": printable(message)}
    )
    found = store.sql.execute(_BROKEN, [figures.cell, _TRIALS_MAX]).fetchall()
    lines = [
        line
        for source, trial, *rest in found
        for line in (
            _broken_in_words(trial, *rest),
            f"  again: tools/replay --live {folder_in_words(store.runs[source], trial)}",
        )
    ]
    if broken > len(found):
        lines.append(f"and {broken - len(found)} more")
    failure.text = "\n".join(lines)


def _broken_in_words(trial: str, verdict: str, rollback_ms: float | None, reasons: str) -> str:
    back = "" if rollback_ms is None else f", {duration_in_words(rollback_ms)} back"
    why = shortened(printable(reasons), _REASONS_CHARACTERS_MAX)
    return f"{printable(trial)}: {verdict}{back}" + (f": {why}" if why else "")


def _outputs(suite: ElementTree.Element, text: str) -> None:
    ElementTree.SubElement(suite, "system-out").text = text
    ElementTree.SubElement(suite, "system-err")


def _rate(name: str, rate: Rate) -> dict[str, str]:
    share = {f"{name}_share": f"{rate.share:.6g}"} if rate.trials else {}
    return {
        f"{name}_events": str(rate.events),
        **share,
        f"{name}_low": f"{rate.low:.6g}",
        f"{name}_high": f"{rate.high:.6g}",
    }


EXPORT = ExportFormat(name="junit", write=export_junit)
