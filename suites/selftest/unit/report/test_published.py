"""The runs in git: no path of their host, totals of a separate count, and the counts of documents."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.unit.report.count_published import counts_of
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import DEFAULTS, FATE, Cell, cells_of
from torture.facts.axes.fate import Fate
from torture.facts.axes.sweeps import Matrix
from torture.facts.stats.rates import in_words, rate_of
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.run_document import RUN_FILE, TRIALS_FILE
from torture.records.record.trials import Origin
from torture.records.record.trials_file import read_records
from torture.report.exports import EXPORTS
from torture.report.exports.as_markdown import export_markdown
from torture.report.figures.cell_figures import cell_figures
from torture.report.figures.sensitivity import measured_sensitivity
from torture.report.page.render import render_page
from torture.report.reading.runs import find_runs
from torture.report.reading.store import Store

# without these features the published records of their origins are no records
WALKED, MEASURED = "walked", "measured"
Walked = pytest.importorskip("torture.features.walk.surveys").Walked
pytest.importorskip("torture.features.speed")

PUBLISHED = CHECKOUT / "results" / "published"
RUNS = sorted(path for path in PUBLISHED.iterdir() if path.is_dir())
OF_A_MACHINE = re.compile(r"(?<![\w.])/(tmp|root|home|work|var)/")


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with Store.open([PUBLISHED]) as opened:
        yield opened


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_published_run_is_a_description_and_records(run: Path) -> None:
    assert {path.name for path in run.iterdir()} == {RUN_FILE, TRIALS_FILE}
    (info,) = find_runs(run)
    assert info.is_documented
    found = read_records(run / TRIALS_FILE)
    assert found.records
    assert not found.unreadable_lines
    # live cuts, walked recordings or speeds; never a planted fault or a repetition
    (origin,) = {record.origin for record in found.records}
    assert origin in (Origin.LIVE, WALKED, MEASURED)
    for record in found.records:
        axes = Cell.parse(record.cell).axes
        assert record.axes.items() <= axes.items()
        # a run from before an axis has its default
        later = axes.keys() - record.axes.keys()
        assert all(axes[axis] in ("", DEFAULTS[axis]) for axis in later)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_published_run_holds_no_paths_of_its_host(run: Path) -> None:
    for file in (RUN_FILE, TRIALS_FILE):
        assert not OF_A_MACHINE.search((run / file).read_text())


def test_the_published_rates_are_an_export_of_these_runs(store: Store, tmp_path: Path) -> None:
    (made,) = export_markdown(store, tmp_path)
    assert (CHECKOUT / "docs" / "rates.md").read_text() == made.read_text()


# The totals of the published runs: the report's are those of a script that shares no code with
# it.

WITHOUT_IMPORTS = re.compile(r"^\s*(?:from|import) (?:torture|suites|fixtures)\b", re.MULTILINE)


def test_the_totals_of_the_report_are_those_of_an_independent_count(
    store: Store, tmp_path: Path
) -> None:
    expected = counts_of(PUBLISHED)
    cells = cell_figures(store.tallies())
    page = render_page(store)
    (markdown,) = EXPORTS["markdown"].write(store, tmp_path)
    voids = sum("is void, and in no rate" in note for note in store.notes)
    ((amid,),) = store.sql.execute(
        "SELECT sum(walked_amid_recovery) FROM walks WHERE badness >= 0"
    ).fetchall()
    walked = [
        survey for figures in cells for survey in figures.surveys if isinstance(survey, Walked)
    ]
    assert expected == {
        "cuts": sum(figures.trials for figures in cells),
        "conclusive cuts": sum(figures.conclusive + figures.confirmations for figures in cells),
        "harmed cuts": sum(figures.harm.events for figures in cells),
        "recordings": sum(walks.recordings for walks in walked),
        "states": sum(walks.units for walks in walked),
        "proven states": sum(walks.proven for walks in walked),
        "states amid recovery": amid,
        "losing states": sum(walks.lost for walks in walked),
        "losing recordings": sum(walks.recordings_lost for walks in walked),
        "void": voids,
    }
    cuts = f"{expected['cuts']:,}"
    assert f"{cuts} power cuts of {len(cells)} configurations" in page
    assert f"{cuts} trials of" in markdown.read_text()
    states = f"{expected['losing states']} of {expected['states']:,} walked crash states lost"
    assert states in markdown.read_text()


def test_the_independent_count_has_nothing_of_the_suite() -> None:
    source = Path(__file__).with_name("count_published.py").read_text()
    assert not WITHOUT_IMPORTS.search(source)


def test_a_void_walk_accuses_no_published_cell(store: Store) -> None:
    cells = {one.cell: one for one in cell_figures(store.tallies())}
    figures = cells["iscsi-always-volatile-sector512-btrfs-bothdie"]
    assert not figures.is_worse
    figures = cells["iscsi-always-volatile-btrfs-bothdie"]
    assert not figures.is_worse
    (walked,) = figures.surveys
    assert (walked.recordings, walked.lost) == (2, 0)


# The counts of README and of findings are those of the records: docs/figures.toml has a query each.

COUNTS = tomllib.loads((CHECKOUT / "docs/figures.toml").read_text())["count"]
HARM = "is_loss OR verdict IN ({})".format(
    ", ".join(f"'{verdict}'" for verdict in Verdict if verdict.is_corruption)
)
USUAL_END = (
    "event = 'power' AND away IN ('', 'seconds') AND early IN ('', 'inorder') "
    "AND patience IN ('', 'forever')"
)
"""A loss of power of some seconds, whose client waits for ever."""
K_OF_N = re.compile(r"\d[\d,]* of (?:the )?\d[\d,]*")


def words_of(document: str) -> str:
    """Its text in one line."""
    return " ".join((CHECKOUT / document).read_text().split())


def said_by(store: Store, count: dict[str, Any]) -> str:
    """The words that the records give."""
    text, where = str(count["text"]), str(count["of"])
    if count.get("is_walk"):
        return text.format(**{name: f"{value:,}" for name, value in walked(store, where).items()})
    counts = "" if count.get("with_inconclusive") else "AND badness >= 0 AND NOT is_confirmation"
    if "event" not in where:
        counts += f" AND {USUAL_END}"
    [row] = store.sql.execute(
        f"SELECT count(*), count(*) FILTER ({count.get('event', HARM)}), "
        "sum(acknowledged), sum(lost), round(median(sync_p50_ms))::INT "
        f"FROM live JOIN cells USING (cell) WHERE ({where}) {counts}"
    ).fetchall()
    names = ("n", "k", "operations", "lost", "fsync_ms")
    words = {name: f"{value or 0:,}" for name, value in zip(names, row, strict=True)}
    share = in_words(rate_of(row[1], row[0])).partition(" [")[2]
    return text.format(rate=f"{words['k']} of {words['n']} [{share}", **words)


def walked(store: Store, where: str) -> dict[str, int]:
    """The recordings and states of the walks that count."""
    [row] = store.sql.execute(
        "SELECT count(*), sum(walked_states), sum(walked_states_lost), sum(walked_amid_recovery) "
        "FROM walks JOIN cells USING (cell) "
        f"WHERE walked_states > 0 AND badness >= 0 AND ({where})"
    ).fetchall()
    return dict(zip(("recordings", "states", "lost", "amid"), row, strict=True))


@pytest.mark.parametrize("count", COUNTS, ids=lambda count: count["text"])
def test_a_count_in_a_document_is_that_of_the_records(count: dict[str, Any], store: Store) -> None:
    said = said_by(store, count)
    assert {document: said for document in count["in"] if said not in words_of(document)} == {}


def test_readme_has_no_count_that_the_records_lack(store: Store) -> None:
    """Planted faults are counted in another file."""
    text = words_of("README.md")
    for said in (*(said_by(store, count) for count in COUNTS), *planted(), walked_settings(store)):
        text = text.replace(said, "")
    assert K_OF_N.findall(text) == []


def walked_settings(store: Store) -> str:
    """How many of the safe settings have walked states that count."""
    rows = store.sql.execute("SELECT cell FROM walks WHERE walked_states > 0 AND badness >= 0")
    have = {name for (name,) in rows.fetchall()}
    safe = {
        cell.name
        for cell in cells_of(Matrix.DEFAULT)
        if guarantee_of(cell) is Guarantee.SAFE and cell[FATE] is Fate.BOTH_DIE
    }
    return f"{len(safe & have)} of {len(safe)} safe settings of the default matrix"


def test_readme_says_how_many_safe_settings_were_walked(store: Store) -> None:
    assert walked_settings(store) in words_of("README.md")


_MISSED = {
    "sector-torn": "an old sector in a flushed write",
    "log-dies-early": "a SLOG that dies 5 ms before the cut",
    "hypervisor-flush-dropped": "a hypervisor that drops its flushes",
}


def planted() -> Iterator[str]:
    """The sentences of README on planted faults."""
    measured = measured_sensitivity()
    yield measured.sentence
    missed = {fault.name: fault for fault in measured.faults if fault.detected < fault.cuts}
    for name, words in _MISSED.items():
        fault = missed.pop(name)
        yield f"It detected {words} in {fault.detected} of {fault.cuts} cuts"
    assert not missed, "README names each fault that some cuts did not show"
    dropped = [fault for fault in measured.on_transports if fault.name == "flush-dropped"]
    for words, is_of_files in (("with a disk", False), ("with files", True)):
        own = [fault for fault in dropped if ("-files-" in fault.cell) is is_of_files]
        seen = in_words(rate_of(sum(f.detected for f in own), sum(f.cuts for f in own)))
        counts, _, interval = seen.partition(" [")
        k, _, n = counts.split()[0].partition("/")
        yield f"on transports {words} in {k} of {n} cuts [{interval}"


def test_readme_says_of_planted_faults_the_measured_counts() -> None:
    assert [said for said in planted() if said not in words_of("README.md")] == []


def test_readme_says_how_many_cuts_and_writes_there_are(store: Store) -> None:
    [(cuts, writes)] = store.sql.execute(
        "SELECT count(*), sum(audited_completions) FILTER (transport NOT IN "
        "('scst_file', 'scst_file_head', 'scst_file_ext4', 'scst_file_xfs')) "
        "FROM live JOIN cells USING (cell)"
    ).fetchall()
    text = words_of("README.md")
    assert f"It has {cuts:,} real cuts" in text
    assert f"Of {writes:,} writes that the clients' disks completed" in text
