"""The counts of README and of findings are those of the records: docs/figures.toml has a query each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import FATE, cells_of
from torture.facts.axes.fate import Fate
from torture.facts.axes.sweeps import Matrix
from torture.facts.stats.rates import in_words, rate_of
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.report.figures.sensitivity import measured_sensitivity
from torture.report.reading.store import Store

PUBLISHED = CHECKOUT / "results" / "published"
COUNTS = tomllib.loads((CHECKOUT / "docs/figures.toml").read_text())["count"]
HARM = "is_loss OR verdict IN ({})".format(
    ", ".join(f"'{verdict}'" for verdict in Verdict if verdict.is_corruption)
)
K_OF_N = re.compile(r"\d[\d,]* of (?:the )?\d[\d,]*")


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with Store.open([PUBLISHED]) as opened:
        yield opened


def words_of(document: str) -> str:
    """Its text in one line."""
    return " ".join((CHECKOUT / document).read_text().split())


def said_by(store: Store, count: dict[str, Any]) -> str:
    """The words that the records give."""
    text, where = str(count["text"]), str(count["of"])
    if count.get("is_walk"):
        return text.format(**{name: f"{value:,}" for name, value in walked(store, where).items()})
    counts = "" if count.get("with_inconclusive") else "AND badness >= 0 AND NOT is_confirmation"
    [(n, k)] = store.sql.execute(
        f"SELECT count(*), count(*) FILTER ({count.get('event', HARM)}) "
        f"FROM live JOIN cells USING (cell) WHERE ({where}) {counts}"
    ).fetchall()
    share = in_words(rate_of(k, n)).partition(" [")[2]
    return text.format(rate=f"{k:,} of {n:,} [{share}", k=f"{k:,}", n=f"{n:,}")


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
        "SELECT count(*), sum(audited_completions) FROM live"
    ).fetchall()
    text = words_of("README.md")
    assert f"It has {cuts:,} real cuts" in text
    assert f"of {writes:,} writes that the clients' disks completed" in text
