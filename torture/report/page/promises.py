"""The promises that disks and mounts advertise, and how many cuts broke each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from torture.choices.matrix.cell_terms import keeps_flushed_data
from torture.choices.matrix.cells import CHOICES, Cell
from torture.facts.stats.rates import Rate, rate_of

_BLOCK_BYTES = 4096
"""The length of the ledger load's blocks."""
_VALUE = "advertised ->> '{name}'"
_NO_PROMISES = ("", "0", "write through")
"""Without a cache to flush, no flush is promised anything (sysfs-block)."""
_HAS_BLOCKS = "(workload = 'ledger' AND data_verdict <> '')"
_LACKS_ATOMIC_WRITE = "(workload = 'atomic' AND data_verdict = 'corrupted')"
_TEARS = (
    "(torn > 0 OR (torn_in_flight > 0 AND "
    f"coalesce(try_cast({_VALUE} AS UBIGINT), 0) >= {_BLOCK_BYTES}))"
)
"""A block is torn that the advertised length contains, whole or with its neighbours."""
_CUTS = """
SELECT * REPLACE (advertised::JSON AS advertised) FROM live JOIN cells USING (cell)
WHERE badness >= 0 AND advertised <> '{}'
"""
_LIVED_ON = "(fate = 'nasonly' AND NOT is_confirmation)"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Promise:
    """A property, its meaning, and the conditions of SQL: which cuts ask for it, and break it."""

    name: str
    words: str
    asked: str
    broken: str
    value: str = _VALUE
    volume: str = "NULL"
    """The same of the zvol in the NAS."""


_PROMISES = (
    _Promise(
        name="physical_block_size",
        words='"smallest unit a physical storage device can write atomically" (sysfs-block)',
        asked=_HAS_BLOCKS,
        broken=_TEARS,
        volume="nullif(volume_block_size, '')",
    ),
    _Promise(
        name="atomic_write_unit_max_bytes",
        words="a write of so many bytes with RWF_ATOMIC is there whole or not at all",
        asked="workload = 'atomic'",
        broken=_LACKS_ATOMIC_WRITE,
    ),
    _Promise(
        name="nvme_nawupf_bytes",
        words="NAWUPF: a write of so many bytes is whole or not there after a power failure (NVM"
        " Command Set, 2.1.4)",
        asked=f"{_HAS_BLOCKS} OR workload = 'atomic'",
        broken=f"{_TEARS} OR {_LACKS_ATOMIC_WRITE}",
    ),
    _Promise(
        name="write_cache",
        words="a flush makes all completed writes durable, and so does FUA its own",
        asked="audited_completions IS NOT NULL AND owes_flushed_data",
        # a client that lives may lack what it never flushed
        broken="audit_broken > 0 OR (lost > 0 AND fate <> 'nasonly')",
        value=f"concat({_VALUE}, ', fua ' || (advertised ->> 'fua'), "
        "', VWC ' || (advertised ->> 'nvme_vwc'))",
    ),
    _Promise(
        name="hard",
        words="the client waits for its NAS, and no operation fails (nfs(5), mount.cifs(8))",
        asked=_LIVED_ON,
        broken="writers_failed > 0",
    ),
    _Promise(
        name="write_verifier",
        words="a server that may have lost unstable writes comes back with another verifier (RFC 1813,"
        " 3.3.7)",
        asked="true",
        broken=f"{_VALUE} <> 'another'",
    ),
    _Promise(
        name="smb_persistent_handles",
        words="an open file outlives its server (MS-SMB2, 3.3.5.9.12)",
        asked=_LIVED_ON,
        broken="writers_failed > 0",
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class AdvertisedValue:
    """A promise of a transport's disks or mounts, in one release."""

    transport: str
    release: str
    name: str
    values: str
    """Its value, or its several ones, and the volume's own where it differs."""
    words: str
    broken: Rate
    """The conclusive live cuts that show it broken, of those that asked for it."""


def advertised_values(sql: duckdb.DuckDBPyConnection) -> list[AdvertisedValue]:
    """All promises of the live cuts, by transport and release."""
    cells = [cell for (cell,) in sql.execute(f"SELECT DISTINCT cell FROM ({_CUTS})").fetchall()]
    owing = [cell for cell in cells if _owes_flushed_data(cell)]
    rows = [
        (*row, promise)
        for promise in _PROMISES
        for row in sql.execute(_query(promise), {"owing": owing}).fetchall()
    ]
    rows.sort(key=lambda row: row[:4])
    return [
        AdvertisedValue(
            transport=CHOICES[transport].words if transport in CHOICES else transport,
            release=f"OpenZFS {zfs}, Linux {nas}" + (f", client {client}" if client != nas else ""),
            name=promise.name,
            values=values + (f" (volume: {volume})" if volume else ""),
            words=promise.words,
            broken=rate_of(broken, asked),
        )
        for transport, zfs, nas, client, values, volume, broken, asked, promise in rows
    ]


def _owes_flushed_data(cell: str) -> bool:
    """Whether theory promises what the client flushes: the cell's settings must not forgo it."""
    try:
        return keeps_flushed_data(Cell.parse(cell))
    except ValueError:  # a cell of another version
        return False


def _query(promise: _Promise) -> str:
    others = f"nullif({promise.volume}, {_VALUE})"
    query = f"""
SELECT transport, zfs, linux_nas, linux_client,
    string_agg(DISTINCT {promise.value}, ', ' ORDER BY {promise.value}),
    string_agg(DISTINCT {others}, ', ' ORDER BY {others}),
    count(*) FILTER (({promise.asked}) AND ({promise.broken})),
    count(*) FILTER ({promise.asked})
FROM (SELECT *, list_contains($owing::VARCHAR[], cell) AS owes_flushed_data FROM ({_CUTS}))
WHERE {_VALUE} NOT IN {_NO_PROMISES}
GROUP BY ALL
"""
    return query.replace("{name}", promise.name)


_DOCS = Path(__file__).parents[3] / "docs"
DOCUMENT, REPORTS = _DOCS / "findings.md", _DOCS / "reports"
_SECTION = re.compile(
    r"^## (?P<title>[^\n]+)\n\n- \*\*Who is affected:\*\* (?P<affected>(?:(?!\n\n).)+?)\n"
    r"- \*\*What to do:\*\* (?P<advice>(?:(?!\n\n).)+?)\n\n",
    re.MULTILINE | re.DOTALL,
)
_BOUND = re.compile(r"^\| affected (from|to) \| (.+) \|$", re.MULTILINE)
_FINDING = re.compile(r"findings\.md#([\w-]+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One finding; its words have no Markdown."""

    title: str
    affected: str
    advice: str
    versions: str = ""
    """The first and the last affected ones, as its report has them; empty without a report."""


def findings_in(document: str, reports: Iterable[str] = ()) -> tuple[Finding, ...]:
    """The findings of a document that begin with these two lines, in its order.

    Each `report` is a page of docs/reports: a table names its findings and the affected versions. Of two
    reports of a finding the first one's versions count.
    """
    versions: dict[str, str] = {}
    for report in reports:
        bounds = "; ".join(f"{bound}: {words}" for bound, words in _BOUND.findall(report))
        versions = dict.fromkeys(_FINDING.findall(report), _plain(bounds)) | versions
    return tuple(_finding(match.groupdict(), versions) for match in _SECTION.finditer(document))


def known_findings() -> tuple[Finding, ...]:
    """Those of the checkout; none where the document is not there."""
    if not DOCUMENT.is_file():
        return ()
    reports = [file.read_text(encoding="utf-8") for file in sorted(REPORTS.glob("*.md"))]
    return findings_in(DOCUMENT.read_text(encoding="utf-8"), reports)


def _finding(words: Mapping[str, str], versions: Mapping[str, str]) -> Finding:
    found = Finding(**{name: _plain(text) for name, text in words.items()})
    anchor = re.sub(r"[^\w -]", "", words["title"].lower()).replace(" ", "-")
    return replace(found, versions=versions.get(anchor, ""))


def _plain(text: str) -> str:
    without_links = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    return " ".join(without_links.replace("`", "").replace("**", "").split())
