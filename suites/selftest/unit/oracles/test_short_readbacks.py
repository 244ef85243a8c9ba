"""A read-back that is short, and data from before the load: what has to be as it was."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.unit.good_evidence import readback_of
from suites.selftest.unit.oracles.oracle_story import Story
from suites.selftest.unit.oracles.tree_ledgers import START, judged, ledger_of, left_by
from torture.choices.workloads.ledger import Ledger as LedgerLoad
from torture.facts.evidence.ledger import Hello, Ledger, parse_ledger
from torture.oracles.verdict.blocks.history import (
    BesideSeen,
    Readback,
    parse_readback,
)
from torture.oracles.verdict.blocks.oracle import consult, not_as_before, with_data_from_before
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.judgement import Findings
from vmimages.client.load import beside
from vmimages.client.load.blocks import BLOCK_BYTES, Encoder, halves_of
from vmimages.client.load.read import run

TRIAL, REGIONS, BLOCKS = 7, 4, 2


def region(at: int, blocks: list[Any]) -> dict[str, Any]:
    size = BLOCKS * BLOCK_BYTES
    return {"file": at, "name": f"region-{at}", "listed": True, "size": size, "blocks": blocks}


def on_a_device(regions: list[Any], **more: Any) -> Findings:
    """Of a bare device whose four regions were written, and acknowledged."""
    story = Story("raw")
    story.events.append(Hello(t_ms=0.0, trial=TRIAL, mode="raw", device_bytes=65536))
    for at in range(REGIONS):
        story.acked("overwrite", at + 1, 0, 1, file=at)
    document = readback_of(regions, looked=REGIONS, mode="raw")
    readback = parse_readback(json.dumps(document | more))
    return consult(Ledger(events=tuple(story.events)), readback, cut_ms=None)


WHOLE = [region(at, [at + 1, at + 1]) for at in range(REGIONS)]


def test_a_whole_device_is_intact() -> None:
    assert on_a_device(WHOLE).lost == 0


@pytest.mark.parametrize(
    "short", [["partial", "partial"], [], [2], [2, "partial"], [2, [2, 2, 2]], [2, []]], ids=str
)
def test_a_region_that_ends_early_has_lost_its_acknowledged_blocks(short: list[Any]) -> None:
    findings = on_a_device([WHOLE[0], region(1, short), *WHOLE[2:]])
    assert findings.verdict is Verdict.CORRUPTED
    assert (findings.lost, findings.missing + findings.torn) == (1, findings.missing or 1)


def test_an_empty_device_has_lost_all() -> None:
    findings = on_a_device([region(at, ["partial"] * BLOCKS) for at in range(REGIONS)])
    assert (findings.verdict, findings.lost) == (Verdict.CORRUPTED, REGIONS)


@pytest.mark.parametrize(
    ("after", "verdict"), [(65536, "intact"), (131072, "intact"), (65535, "corrupted")]
)
def test_a_device_never_becomes_shorter(after: int, verdict: str) -> None:
    assert on_a_device(WHOLE, device_bytes=after).verdict == verdict


@pytest.mark.parametrize(
    "blocks", [[4], [], ["partial", "partial"], [4, [4, 4, 4, 4]], [4, ["partial"] * 8]], ids=str
)
def test_a_file_without_the_blocks_of_its_size_has_lost_them(blocks: list[Any]) -> None:
    story = Story().acked("create", 4, 0, 1)
    file = {"file": 0, "name": "f0", "listed": True, "size": 8192, "blocks": blocks}
    document = readback_of([file], looked=1)
    ledger = Ledger(events=tuple(story.events))
    findings = consult(ledger, parse_readback(json.dumps(document)), cut_ms=None)
    assert (findings.verdict, findings.lost) == (Verdict.CORRUPTED, 1)


@pytest.mark.parametrize("kept", [0, 1])
def test_a_tree_that_was_not_read_back_is_lost(kept: int) -> None:
    hello = Hello(t_ms=0.0, trial=1, mode="application", writers=2)
    events = [hello, *ledger_of(*START)]
    trees = left_by(events)
    assert judged(events, trees).verdict is Verdict.INTACT
    findings = judged(events, trees[:kept])
    assert findings.verdict is Verdict.CORRUPTED
    assert (findings.lost > 0) is (kept == 0), "writer 0 did it all"


def test_sectors_that_a_tree_does_not_have_are_lost() -> None:
    events = ledger_of(*START)
    trees = left_by(events)
    trees[0]["entries"]["f2"]["runs"].clear()
    findings = judged(events, trees)
    assert findings.verdict is Verdict.CORRUPTED
    assert findings.lost > 0


def test_the_reader_says_where_a_device_ends(tmp_path: Path) -> None:
    encoder, length = Encoder(TRIAL), BLOCKS * BLOCK_BYTES
    whole = b"".join(
        encoder.block(file=at, seq=at + 1, index=index)
        for at in range(REGIONS)
        for index in range(BLOCKS)
    )
    device = tmp_path / "device"
    job = {
        "trial": TRIAL,
        "mode": "raw",
        "writers": 2,
        "files_per_writer": 2,
        "blocks_per_file_max": BLOCKS,
        "device": str(device),
    }
    device.write_bytes(whole)
    seen = {file["file"]: file["blocks"] for file in run(job)["files"]}
    assert seen == {at: [at + 1] * BLOCKS for at in range(REGIONS)} | {
        at: [f"errno:{errno.ENODATA}"] * BLOCKS for at in seen if at >= REGIONS
    }
    device.write_bytes(whole[: length + BLOCK_BYTES // 2])
    answer = run(job)
    seen = {file["file"]: file["blocks"] for file in answer["files"]}
    assert answer["device_bytes"] == length + BLOCK_BYTES // 2
    assert seen[0] == [1, 1]
    assert all(seen[at] == [f"errno:{errno.ENODATA}"] * BLOCKS for at in range(1, REGIONS))


@pytest.mark.parametrize("split", [32, 40, 256, 504])
@pytest.mark.parametrize(("head", "tail"), [(3, 2), (2, 3), (3, 0), (0, 3)])
def test_the_reader_names_both_writes_of_a_half_sector(head: int, tail: int, split: int) -> None:
    where = {"file": 1, "index": 4, "sector": 5}
    encoder = Encoder(TRIAL)
    begins, ends = (encoder.sector(seq=seq, **where) if seq else bytes(512) for seq in (head, tail))
    assert halves_of(begins[:split] + ends[split:], trial=TRIAL, **where) == f"half:{head}:{tail}"


def test_bytes_of_no_write_are_garbage() -> None:
    where = {"file": 1, "index": 4, "sector": 5}
    whole = Encoder(TRIAL).sector(seq=3, **where)
    for made in (b"\xa5" * 512, whole[:256] + b"\xa5" * 256, whole[:250] + bytes(262)):
        assert halves_of(made, trial=TRIAL, **where) == "garbage"


def test_the_ledger_says_how_long_the_device_was() -> None:
    line = b'{"event":"hello","seq":0,"trial":1,"mode":"raw","device_bytes":4096,"t_ms":1}\n'
    assert parse_ledger(line).device_bytes == 4096
    assert parse_ledger(line.replace(b"4096", b"null")).device_bytes is None


# Files from before the load, and the unwritten rest of a bare device, have to be as they were.

MIB = 1 << 20


def prepared(folder: Path) -> dict[str, Any]:
    """The job of a load whose preparation ran in this folder."""
    job = {"directory": f"{folder}/load", **JOB}
    subprocess.run(["sh", "-euc", LedgerLoad().prepare(job)], check=True, timeout=60)
    return job


JOB = {
    "mode": "files",
    "trial": 7,
    "writers": 1,
    "files_per_writer": 1,
    "blocks_per_file_max": 1,
    "before": 8,
}


def test_files_that_were_left_alone_are_no_finding(tmp_path: Path) -> None:
    assert run(prepared(tmp_path))["beside"] == []


def test_each_file_that_is_gone_changed_or_longer_is_found(tmp_path: Path) -> None:
    job = prepared(tmp_path)
    before = tmp_path / "load-before"
    (before / "1").unlink()
    (before / "2").write_bytes(beside.content_of(2)[:-1] + b"x")
    (before / "5").write_bytes(beside.content_of(5) + b"x")
    (before / "6").write_bytes(beside.content_of(6)[:512])
    assert run(job)["beside"] == [
        {"name": "file 1", "state": "missing"},
        *({"name": f"file {number}", "state": "changed"} for number in (2, 5, 6)),
    ]


def test_a_job_of_before_looks_for_no_files(tmp_path: Path) -> None:
    job = prepared(tmp_path)
    (tmp_path / "load-before" / "1").unlink()
    del job["before"]
    assert run(job)["beside"] == []


@pytest.mark.parametrize(
    ("place", "length", "is_found"),
    [(300 * MIB, 4 * MIB, True), (512 * MIB - beside.STRIDE_BYTES, 4096, True), (0, 4096, False)],
)
def test_garbage_where_nothing_was_written_on_a_device_is_found(
    tmp_path: Path, place: int, length: int, is_found: bool
) -> None:
    disk = tmp_path / "disk"
    with disk.open("wb") as file:
        file.truncate(512 * MIB)
        file.seek(place)
        file.write(os.urandom(length))
    found = run({**JOB, "mode": "raw", "device": str(disk)})["beside"]
    assert bool(found) is is_found
    assert all(one["state"] == "garbage" for one in found)


def ledger(*, before: int) -> Ledger:
    return Ledger(events=(Hello(t_ms=0.0, trial=7, mode="files", before=before),))


def readback(mode: str, *states: str) -> Readback:
    seen = tuple(BesideSeen(name=f"file {number}", state=it) for number, it in enumerate(states))
    return Readback(
        mode=mode, trial=7, looked=0, files=(), temporaries=(), unexpected=(),
        directory_errno=None, beside=seen,
    )  # fmt: skip


def test_they_count_only_where_the_load_found_them_and_the_disk_could_be_read() -> None:
    files, raw = readback("files", "missing", "errno:5"), readback("raw", "garbage")
    everything = not_as_before(ledger(before=8), files, ignores_errors=False)
    assert everything == ("file 0 missing", "file 1 errno:5")
    assert not_as_before(ledger(before=8), files, ignores_errors=True) == ("file 0 missing",)
    assert not_as_before(ledger(before=0), files, ignores_errors=False) == ()
    assert not_as_before(ledger(before=0), raw, ignores_errors=False) == ("file 0 garbage",)


def test_a_lost_file_from_before_is_corruption_beside_intact_data() -> None:
    intact = Findings(verdict=Verdict.INTACT, acknowledged=5, lost=0)
    assert with_data_from_before(intact, ()) is intact
    found = with_data_from_before(intact, ("file 0 missing",))
    assert (found.verdict, found.lost, found.acknowledged) == (Verdict.CORRUPTED, 1, 6)
    assert found.reasons == ("not as before the load: file 0 missing",)
