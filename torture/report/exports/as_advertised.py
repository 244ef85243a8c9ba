"""The promises that disks and mounts advertise, and whether cuts kept them: a table in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torture.choices.matrix.axes import FATE, TRANSPORT, WORKLOAD
from torture.facts.axes.fate import Fate
from torture.facts.stats.rates import in_words, rate_of
from torture.files import write_whole
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import Origin, TrialRecord
from torture.report.exports.protocol import ExportFormat
from torture.report.figures.tables import EXPORT_SCHEMA
from torture.report.reading.store import Store
from torture.report.reading.text import escaped, markdown_table

_BLOCK_BYTES = 4096
"""The length of the ledger load's blocks."""
_COLUMNS = ("transport", "release", "advertised", "promise", "broken in cuts")
_NO_PROMISE = "0"
_LEGEND = """\
A row is a promise that the client's kernel shows of its disk (`queue` in sysfs) or of its mount.
**Broken in cuts** counts the conclusive live cuts that show it broken, with the exact interval of 95 %.
A dash: no cut asked. `volume` is the physical block of the zvol in the NAS, where the disk's differs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Promise:
    """A property, its meaning, the trials that ask for it, and those that show it broken."""

    name: str
    words: str
    is_asked: Callable[[TrialRecord], bool]
    is_broken: Callable[[TrialRecord], bool]


def _has_blocks(record: TrialRecord) -> bool:
    return record.axes.get(WORKLOAD.field) == "ledger" and record.judgement.data is not None


def _tears_a_block(record: TrialRecord) -> bool:
    """Whether a block was torn that the advertised one contains, whole or with its neighbours."""
    findings = record.judgement.findings
    length = record.advertised.client.get("physical_block_size", "")
    contains_blocks = length.isdecimal() and int(length) >= _BLOCK_BYTES
    return findings.torn > 0 or (contains_blocks and findings.torn_in_flight > 0)


def _is_audited(record: TrialRecord) -> bool:
    return record.cut.audited.completions is not None


def _lived_on(record: TrialRecord) -> bool:
    return record.axes.get(FATE.field) == Fate.NAS_ONLY and not record.cut.confirmed.is_made


_PROMISES = (
    _Promise(
        name="physical_block_size",
        words='"smallest unit a physical storage device can write atomically" (sysfs-block)',
        is_asked=_has_blocks,
        is_broken=_tears_a_block,
    ),
    _Promise(
        name="atomic_write_unit_max_bytes",
        words="a write of so many bytes with `RWF_ATOMIC` is there whole or not at all",
        is_asked=lambda record: record.axes.get(WORKLOAD.field) == "atomic",
        is_broken=lambda record: record.judgement.data is Verdict.CORRUPTED,
    ),
    _Promise(
        name="write_cache",
        words="a flush makes all completed writes durable, and so does `FUA` its own",
        is_asked=_is_audited,
        is_broken=lambda record: record.cut.audited.is_broken,
    ),
    _Promise(
        name="hard",
        words="the client waits for its NAS, and no operation fails (nfs(5), mount.cifs(8))",
        is_asked=_lived_on,
        is_broken=lambda record: record.writers_failed > 0,
    ),
)


def export_advertised(store: Store, folder: Path) -> tuple[Path, ...]:
    """Write `advertised.md`."""
    groups: dict[tuple[str, ...], list[TrialRecord]] = {}
    for _, record in store.lines(only="is_advertised"):
        if record.origin is Origin.LIVE and record.is_conclusive:
            where = record.where
            transport = record.axes.get(TRANSPORT.field, "")
            key = (transport, record.zfs, where.linux_nas, where.linux_client)
            groups.setdefault(key, []).append(record)
    rows = [row for key in sorted(groups) for row in _rows(key, groups[key])]
    parts = [
        [f"<!-- export schema {EXPORT_SCHEMA}: made by tools/report, not by hand -->"],
        ["# Advertised against kept"],
        [_LEGEND] if rows else ["No trial has asked its disk or mount."],
        markdown_table(_COLUMNS, rows, left=len(_COLUMNS) - 1) if rows else [],
    ]
    text = "\n\n".join("\n".join(part) for part in parts if part) + "\n"
    return (write_whole(folder / "advertised.md", text.encode()),)


def _rows(key: Sequence[str], records: Sequence[TrialRecord]) -> Iterator[list[str]]:
    transport, zfs, nas, client = key
    known = {choice.name: choice.words for choice in TRANSPORT.choices}
    release = f"OpenZFS {zfs}, Linux {nas}" + (f", client {client}" if client != nas else "")
    for promise in _PROMISES:
        having = [record for record in records if promise.name in record.advertised.client]
        values = dict.fromkeys(_value(promise.name, record.advertised.client) for record in having)
        values.pop(_NO_PROMISE, None)
        if not values:
            continue
        asked = [record for record in having if promise.is_asked(record)]
        broken = sum(map(promise.is_broken, asked))
        yield [
            escaped(known.get(transport, transport)),
            escaped(release),
            f"`{promise.name}` " + escaped(f"is {', '.join(values)}{_of_volume(promise, having)}"),
            promise.words,
            in_words(rate_of(broken, len(asked))),
        ]


def _value(name: str, advertised: Mapping[str, str]) -> str:
    fua = f", fua {advertised['fua']}" if name == "write_cache" and "fua" in advertised else ""
    return advertised[name] + fua


def _of_volume(promise: _Promise, records: Sequence[TrialRecord]) -> str:
    """The volume's own value, where the client's disk has another one."""
    pairs = [(one.advertised.volume.get(promise.name), one.advertised.client) for one in records]
    others = {own for own, client in pairs if own is not None and own != client[promise.name]}
    is_length = promise.name == "physical_block_size"
    return f" (volume: {', '.join(sorted(others))})" if others and is_length else ""


EXPORT = ExportFormat(name="advertised", write=export_advertised)
