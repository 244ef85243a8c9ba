"""Promises of disks and mounts: read from what a kernel prints, and held against the cuts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import intact_records, page_of, write_run
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.cut_document import AuditDocument
from torture.facts.stats.rates import in_words
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import (
    Advertised,
    Origin,
    TrialRecord,
    Where,
    parse_mount_options,
    parse_protocol,
    parse_queue,
)
from torture.report.page.promises import advertised_values
from torture.report.reading.store import Store

_QUEUE = "logical_block_size=512 physical_block_size=16384 write_cache=write_back fua=1 "
_NFS = "rw,relatime,vers=4.2,rsize=131072,wsize=131072,namlen=255,hard,proto=tcp,addr=10.0.0.1\n"
_DISK = {"physical_block_size": "16384", "write_cache": "write back", "fua": "1"}


def test_the_queue_of_a_disk_is_read_and_nothing_else() -> None:
    assert parse_queue(_QUEUE) == _DISK | {"logical_block_size": "512"}
    assert parse_queue("fua=1 fua shell_said=no physical_block_size= =x") == {"fua": "1"}
    assert parse_queue("") == {}


def test_the_options_of_a_mount_that_promise_something_are_read() -> None:
    assert parse_mount_options(_NFS) == {
        "vers": "4.2",
        "rsize": "131072",
        "wsize": "131072",
        "hard": "yes",
    }
    assert parse_mount_options("\n") == {}


def test_the_promises_of_a_protocol_are_read_and_nothing_else() -> None:
    line = "nvme_vwc=1 nvme_nawupf_bytes=16384 smb_persistent_handles=0 fua=1 nvme_= nvme_mdts="
    read = {"nvme_vwc": "1", "nvme_nawupf_bytes": "16384", "smb_persistent_handles": "0"}
    assert parse_protocol(line) == read
    assert parse_protocol("hypervisor_qemu=10.0.13 nvme_vwc=1") == {
        "hypervisor_qemu": "10.0.13",
        "nvme_vwc": "1",
    }
    assert parse_protocol("Traceback (most recent call last):") == {}


@given(st.text())
def test_garbled_promises_raise_nothing(line: str) -> None:
    assert "addr" not in parse_queue(line) | parse_mount_options(line) | parse_protocol(line)


@pytest.mark.parametrize(
    ("seen", "verifier"),
    [
        ({"before": ["a"], "after": ["b"]}, "another"),
        ({"before": ["a", "b"], "after": ["c", "b"]}, "the same"),
        ({"before": ["a"], "after": []}, None),
        ({"before": "a", "after": ["a"]}, None),
        ({}, None),
    ],
)
def test_a_verifier_is_another_only_if_no_former_one_returns(
    seen: dict[str, Any], verifier: str | None
) -> None:
    advertised = Advertised(client={"vers": "3"}).with_verifiers(seen)
    assert advertised.client.get("write_verifier") == verifier
    assert advertised.client["vers"] == "3"


def _records(
    count: int, *, cell: str = "iscsi-standard-noslog-ext4-bothdie", **more: Any
) -> list[TrialRecord]:
    advertised = Advertised(client=more.pop("client", _DISK), volume=more.pop("volume", {}))
    where = Where(linux_nas="6.12.1", linux_client=more.pop("linux_client", "6.12.1"))
    made = intact_records(count, cells=[Cell.parse(cell)], seed=3)
    return [
        replace(changed(record, **more), advertised=advertised, where=where, zfs="2.3.9")
        for record in made
    ]


def _audited(broken: int, **more: Any) -> list[TrialRecord]:
    """Two records whose audit saw completions before a flush."""
    audit = AuditDocument(acknowledgements=9, completions=8, broken=broken)
    records = _records(2, **more)
    return [replace(one, cut=replace(one.cut, audit=audit, second=None)) for one in records]


def _table(tmp_path: Path, records: list[TrialRecord]) -> list[list[str]]:
    """Of each promise: transport, release, its value, its words, and how many cuts broke it."""
    with Store.open([write_run(tmp_path / "run", records)]) as store:
        return [
            [
                held.transport,
                held.release,
                f"`{held.name}` is {held.values}",
                held.words,
                in_words(held.broken),
            ]
            for held in advertised_values(store.sql)
        ]


def test_a_block_torn_within_the_advertised_one_breaks_the_promise(tmp_path: Path) -> None:
    torn = [changed(record, torn_in_flight=1) for record in _records(2)]
    rest = [replace(record, trial=f"{record.trial}-2") for record in _records(3)]
    block, cache = _table(tmp_path, torn + rest)
    assert block[:2] == ["iSCSI", "OpenZFS 2.3.9, Linux 6.12.1"]
    assert block[2] == "`physical_block_size` is 16384"
    assert block[4].startswith("2/5 40 %")
    assert (cache[2], cache[4]) == ("`write_cache` is write back, fua 1", "-")


def test_a_tear_between_small_blocks_breaks_nothing_and_one_inside_does(tmp_path: Path) -> None:
    small = _DISK | {"physical_block_size": "512"}
    between = [changed(record, torn_in_flight=3) for record in _records(2, client=small)]
    inside = [
        replace(changed(record, torn=1), trial=f"{record.trial}-2")
        for record in _records(1, client=small, volume={"physical_block_size": "16384"})
    ]
    block, _ = _table(tmp_path, between + inside)
    assert block[2] == "`physical_block_size` is 512 (volume: 16384)"
    assert block[4].startswith("1/3 33 %")


@pytest.mark.parametrize(("broken", "said"), [(0, "0/2 0 %"), (4, "2/2 100 %")])
def test_a_flush_is_held_against_the_audit(tmp_path: Path, broken: int, said: str) -> None:
    assert _table(tmp_path, _audited(broken))[1][4].startswith(said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("iscsi-standard-noslog-ext4-bothdie", "1/2 50 %"),
        ("iscsi-standard-noslog-ext4-nasonly", "0/2 0 %"),
        # here the settings, or a device that lies, forgo what the disk promises
        ("iscsi-disabled-noslog-ext4-bothdie", "-"),
        ("iscsi-standard-noslog-zilnocacheflush-ext4-bothdie", "-"),
        ("iscsi-standard-lying-ext4-bothdie", "-"),
        ("iscsi-standard-noslog-of_another_version-ext4-bothdie", "-"),
    ],
)
def test_flushes_are_asked_where_they_are_owed(tmp_path: Path, name: str, said: str) -> None:
    known = {} if "of_another" in name else {"cell": name}
    records = [replace(record, cell=name) for record in _audited(0, **known)]
    records[0] = changed(records[0], verdict=Verdict.ROLLED_BACK, lost=88)
    assert _table(tmp_path, records)[1][4].startswith(said)


def test_a_disk_without_a_cache_promises_no_flush(tmp_path: Path) -> None:
    through = _DISK | {"write_cache": "write through"}
    assert len(_table(tmp_path, _records(2, client=through))) == 1


def test_cuts_without_the_promise_do_not_count(tmp_path: Path) -> None:
    handles, cell = {"smb_persistent_handles": "1"}, "smb-always-noslog-files-nasonly"
    made = _records(1, cell=cell, client=handles, writers_failed=1)
    none = {"smb_persistent_handles": "0"}
    without = [replace(one, trial=f"{one.trial}-2") for one in _records(3, cell=cell, client=none)]
    (row,) = _table(tmp_path, made + without)
    assert (row[2], row[4][:9]) == ("`smb_persistent_handles` is 1", "1/1 100 %")


def test_atomic_writes_are_asked_by_their_own_load_alone(tmp_path: Path) -> None:
    disk = _DISK | {"atomic_write_unit_max_bytes": "16384"}
    own = "nvme_tcp_single-standard-noslog-raw-atomic-bothdie"
    torn = _records(1, cell=own, client=disk, verdict=Verdict.CORRUPTED, data=Verdict.CORRUPTED)
    whole = [replace(one, trial=f"{one.trial}-2") for one in _records(3, cell=own, client=disk)]
    other = _records(2, cell="nvme_tcp_single-standard-noslog-raw-bothdie", client=disk)
    rows = {row[2]: row[4] for row in _table(tmp_path, torn + whole + other)}
    assert rows["`atomic_write_unit_max_bytes` is 16384"].startswith("1/4 25 %")
    assert rows["`physical_block_size` is 16384"].startswith("0/2 0 %")


def test_a_value_of_zero_promises_nothing(tmp_path: Path) -> None:
    (block,) = _table(tmp_path, _records(1, client={"physical_block_size": "512"}))
    assert block[2].startswith("`physical_block_size`")
    none = {"physical_block_size": "512", "atomic_write_unit_max_bytes": "0"}
    [block] = _table(tmp_path / "other", _records(1, client=none))
    assert block[2].startswith("`physical_block_size`")


@pytest.mark.parametrize(
    ("choices", "client", "promise"),
    [
        ("nfs4-always-noslog-files", {"vers": "4.2", "hard": "yes"}, "`hard` is yes"),
        (
            "smb-always-noslog-files",
            {"smb_persistent_handles": "1"},
            "`smb_persistent_handles` is 1",
        ),
    ],
)
def test_a_mounts_promise_is_asked_of_clients_that_live(
    choices: str, client: dict[str, str], promise: str, tmp_path: Path
) -> None:
    lived = _records(2, cell=f"{choices}-nasonly", client=client, writers_failed=0)
    failed = [replace(one, writers_failed=1, trial=f"{one.trial}-2") for one in lived[:1]]
    died = _records(2, cell=f"{choices}-bothdie", client=client)
    (row,) = _table(tmp_path, lived + failed + died)
    assert (row[2], row[4][:8]) == (promise, "1/3 33 %")


def test_a_verifier_that_outlives_its_server_breaks_its_promise(tmp_path: Path) -> None:
    cell, former = "nfs4-standard-noslog-files-nasonly", {"write_verifier": "the same"}
    kept = _records(1, cell=cell, client=former)
    new = _records(2, cell=cell, client={"write_verifier": "another"})
    rest = [replace(one, trial=f"{one.trial}-2") for one in new]
    (row,) = _table(tmp_path, kept + rest)
    assert (row[2], row[4][:8]) == ("`write_verifier` is another, the same", "1/3 33 %")


def test_atomic_units_of_nvme_are_asked_by_blocks_and_by_atomic_writes(tmp_path: Path) -> None:
    disk = _DISK | {"nvme_vwc": "1", "nvme_nawupf_bytes": "16384"}
    own, plain = "nvme_tcp_single-standard-noslog-raw-atomic-bothdie", "nvme_tcp_single-standard-"
    lacking = _records(1, cell=own, client=disk, verdict=Verdict.CORRUPTED, data=Verdict.CORRUPTED)
    torn = [
        changed(one, torn_in_flight=1)
        for one in _records(2, cell=f"{plain}noslog-raw-bothdie", client=disk)
    ]
    lost = _records(1, cell=f"{plain}noslog-ext4-bothdie", client=disk, data=Verdict.CORRUPTED)
    rows = {row[2]: row[4] for row in _table(tmp_path, lacking + torn + lost)}
    assert rows["`nvme_nawupf_bytes` is 16384"].startswith("3/4 75 %")
    assert "`write_cache` is write back, fua 1, VWC 1" in rows


def test_the_promises_are_on_the_page(tmp_path: Path) -> None:
    hostile = _DISK | {"write_cache": "<script>write back"}
    torn = [changed(record, torn_in_flight=1) for record in _records(2, client=hostile)]
    page = page_of(write_run(tmp_path / "run", torn))
    assert "2 promises of disks and mounts, 1 of them broken" in page
    section = page.partition('aria-label="advertised against kept"')[2].partition("</table>")[0]
    assert "2/2 100 %" in section
    assert "&lt;script&gt;write back" in section
    none = write_run(tmp_path / "none", _records(2, client={}))
    assert "advertised against kept" not in page_of(none)


def test_only_conclusive_live_cuts_count(tmp_path: Path) -> None:
    lived = _records(1)
    unknown = _records(1, verdict=Verdict.INCONCLUSIVE, error="no answer")
    planted = [replace(one, origin=Origin.PLANTED, fault="any") for one in _records(1)]
    others = [
        replace(one, trial=f"{one.trial}-{number}", judgement=replace(one.judgement, findings=torn))
        for number, one in enumerate(unknown + planted)
        for torn in [replace(one.judgement.findings, torn=1)]
    ]
    block, _ = _table(tmp_path, lived + others)
    assert block[4].startswith("0/1 0 %")


def test_releases_have_rows_of_their_own_and_older_records_none(tmp_path: Path) -> None:
    other = _records(1, linux_client="7.3.4")
    rows = _table(tmp_path, _records(1) + other + _records(4, client={}))
    assert {row[1].partition("Linux ")[2] for row in rows} == {"6.12.1", "6.12.1, client 7.3.4"}
    assert len(rows) == 4
