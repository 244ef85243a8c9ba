"""Files from before the load, and the unwritten rest of a bare device, have to be as they were."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from torture.choices.workloads.ledger import Ledger
from torture.facts.evidence.ledger import Hello
from torture.facts.evidence.ledger import Ledger as LedgerOf
from torture.oracles.verdict.blocks.before import not_as_before, with_data_from_before
from torture.oracles.verdict.blocks.readback import BesideSeen, Readback
from torture.oracles.verdict.judgement import Findings
from torture.oracles.verdict.verdicts import Verdict
from vmimages.client.load import beside
from vmimages.client.load.read import run

MIB = 1 << 20


def prepared(folder: Path) -> dict[str, Any]:
    """The job of a load whose preparation ran in this folder."""
    job = {"directory": f"{folder}/load", **JOB}
    subprocess.run(["sh", "-euc", Ledger().prepare(job)], check=True, timeout=60)
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


def ledger(*, before: int) -> LedgerOf:
    return LedgerOf(events=(Hello(t_ms=0.0, trial=7, mode="files", before=before),))


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
    intact = Findings(verdict=Verdict.INTACT, acknowledged=5)
    assert with_data_from_before(intact, ()) is intact
    found = with_data_from_before(intact, ("file 0 missing",))
    assert (found.verdict, found.lost, found.acknowledged) == (Verdict.CORRUPTED, 1, 6)
    assert found.reasons == ("not as before the load: file 0 missing",)
