"""The promises that disks and mounts advertise, and whether cuts kept them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from torture.choices.matrix.axes import FATE, TRANSPORT, WORKLOAD
from torture.choices.matrix.cells import Cell
from torture.choices.matrix.guarantees import keeps_flushed_data
from torture.facts.axes.fate import Fate
from torture.facts.stats.rates import Rate, rate_of
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import Origin, TrialRecord
from torture.report.reading.store import Store

_BLOCK_BYTES = 4096
"""The length of the ledger load's blocks."""
_NO_PROMISES = ("0", "write through")
"""Without a cache to flush, no flush is promised anything (sysfs-block)."""


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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Promise:
    """A property, its meaning, the trials that ask for it, and those that show it broken."""

    name: str
    words: str
    is_asked: Callable[[TrialRecord], bool]
    is_broken: Callable[[TrialRecord], bool]


def _has_blocks(record: TrialRecord) -> bool:
    return record.axes.get(WORKLOAD.field) == "ledger" and record.judgement.data is not None


def _writes_atomically(record: TrialRecord) -> bool:
    return record.axes.get(WORKLOAD.field) == "atomic"


def _lacks_an_atomic_write(record: TrialRecord) -> bool:
    return _writes_atomically(record) and record.judgement.data is Verdict.CORRUPTED


def _tears_within(name: str, record: TrialRecord) -> bool:
    """Whether a block was torn that the advertised length contains, whole or with its neighbours."""
    findings = record.judgement.findings
    length = record.advertised.client.get(name, "")
    contains_blocks = length.isdecimal() and int(length) >= _BLOCK_BYTES
    return findings.torn > 0 or (contains_blocks and findings.torn_in_flight > 0)


def _flushes_audited(record: TrialRecord) -> bool:
    """Whether the audit holds the client's flushes due: the cell's settings must not forgo them."""
    if record.cut.audited.completions is None:
        return False
    try:
        return keeps_flushed_data(Cell.parse(record.cell))
    except ValueError:  # a cell of another version
        return False


def _lacks_flushed_data(record: TrialRecord) -> bool:
    """Whether the audit or the data show it; a client that lives may lack what it never flushed."""
    has_lost = record.lost > 0 and record.axes.get(FATE.field) != Fate.NAS_ONLY
    return record.cut.audited.is_broken or has_lost


def _lived_on(record: TrialRecord) -> bool:
    return record.axes.get(FATE.field) == Fate.NAS_ONLY and not record.cut.confirmed.is_made


_PROMISES = (
    _Promise(
        name="physical_block_size",
        words='"smallest unit a physical storage device can write atomically" (sysfs-block)',
        is_asked=_has_blocks,
        is_broken=lambda record: _tears_within("physical_block_size", record),
    ),
    _Promise(
        name="atomic_write_unit_max_bytes",
        words="a write of so many bytes with `RWF_ATOMIC` is there whole or not at all",
        is_asked=_writes_atomically,
        is_broken=_lacks_an_atomic_write,
    ),
    _Promise(
        name="nvme_nawupf_bytes",
        words="NAWUPF: a write of so many bytes is whole or not there after a power failure (NVM"
        " Command Set, 2.1.4)",
        is_asked=lambda record: _has_blocks(record) or _writes_atomically(record),
        is_broken=lambda record: (
            _tears_within("nvme_nawupf_bytes", record) or _lacks_an_atomic_write(record)
        ),
    ),
    _Promise(
        name="write_cache",
        words="a flush makes all completed writes durable, and so does `FUA` its own",
        is_asked=_flushes_audited,
        is_broken=_lacks_flushed_data,
    ),
    _Promise(
        name="hard",
        words="the client waits for its NAS, and no operation fails (nfs(5), mount.cifs(8))",
        is_asked=_lived_on,
        is_broken=lambda record: record.writers_failed > 0,
    ),
    _Promise(
        name="write_verifier",
        words="a server that may have lost unstable writes comes back with another verifier (RFC 1813,"
        " 3.3.7)",
        is_asked=lambda _record: True,
        is_broken=lambda record: record.advertised.client["write_verifier"] != "another",
    ),
    _Promise(
        name="smb_persistent_handles",
        words="an open file outlives its server (MS-SMB2, 3.3.5.9.12)",
        is_asked=_lived_on,
        is_broken=lambda record: record.writers_failed > 0,
    ),
)


def advertised_values(store: Store) -> list[AdvertisedValue]:
    """All promises of a store's trials, by transport and release."""
    groups: dict[tuple[str, ...], list[TrialRecord]] = {}
    for _, record in store.lines(only="is_advertised"):
        if record.origin is Origin.LIVE and record.is_conclusive:
            where = record.where
            transport = record.axes.get(TRANSPORT.field, "")
            key = (transport, record.zfs, where.linux_nas, where.linux_client)
            groups.setdefault(key, []).append(record)
    return [held for key in sorted(groups) for held in _values_of(key, groups[key])]


def _values_of(key: Sequence[str], records: Sequence[TrialRecord]) -> Iterator[AdvertisedValue]:
    transport, zfs, nas, client = key
    known = {choice.name: choice.words for choice in TRANSPORT.choices}
    release = f"OpenZFS {zfs}, Linux {nas}" + (f", client {client}" if client != nas else "")
    for promise in _PROMISES:
        name, none = promise.name, ("", *_NO_PROMISES)
        having = [one for one in records if one.advertised.client.get(name, "") not in none]
        if not having:
            continue
        values = dict.fromkeys(_value(name, record.advertised.client) for record in having)
        asked = [record for record in having if promise.is_asked(record)]
        broken = sum(map(promise.is_broken, asked))
        yield AdvertisedValue(
            transport=known.get(transport, transport),
            release=release,
            name=name,
            values=f"{', '.join(values)}{_of_volume(promise, having)}",
            words=promise.words,
            broken=rate_of(broken, len(asked)),
        )


def _value(name: str, advertised: Mapping[str, str]) -> str:
    beside = {"fua": "fua", "nvme_vwc": "VWC"} if name == "write_cache" else {}
    more = (f", {words} {advertised[one]}" for one, words in beside.items() if one in advertised)
    return advertised[name] + "".join(more)


def _of_volume(promise: _Promise, records: Sequence[TrialRecord]) -> str:
    """The volume's own value, where the client's disk has another one."""
    pairs = [(one.advertised.volume.get(promise.name), one.advertised.client) for one in records]
    others = {own for own, client in pairs if own is not None and own != client[promise.name]}
    is_length = promise.name == "physical_block_size"
    return f" (volume: {', '.join(sorted(others))})" if others and is_length else ""
