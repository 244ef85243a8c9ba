"""The code of ZFS that a walk's recoveries run: counted by recovery, by walk, and by run."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures import coverage as listing
from fixtures.coverage import list_coverage, together
from suites.selftest.unit.facts.test_blocks import TABLE, notes
from torture.errors import HarnessError
from torture.facts.evidence.walk_document import FileCoverage, WalkCoverage, WalkDocument
from torture.facts.zfs.blocks import Blocks
from torture.trials.trial.walk.engines.code_coverage import Coverage

_BLOCKS = Blocks.parse(TABLE)


def test_recoveries_that_reach_new_code_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "coverage"
    coverage = Coverage(_BLOCKS, file)
    for addresses in ([0x414D8D], [0x414D8D], [0x43901C, 0x43903F], [0x43901C]):
        file.write_bytes(notes(*addresses))
        coverage.update()
    document = coverage.document
    assert document.reached_new == coverage.reached_new == 2
    assert document.files["zil.c"] == FileCoverage(blocks=4, ran=2)
    assert document.total == FileCoverage(blocks=8, ran=3)
    assert _BLOCKS.read_set(document.ran) == coverage.ran
    walk = WalkDocument(coverage=document)
    assert WalkDocument.from_json(walk.as_json()) == walk


@pytest.mark.parametrize("content", [None, b"", notes()[:100]])
def test_missing_notes_are_the_machinerys_failure(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "coverage"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(HarnessError, match="does not have the program's notes"):
        Coverage(_BLOCKS, file).update()


def _walk(*places: int, table: str = _BLOCKS.digest) -> WalkCoverage:
    return WalkCoverage(table=table, ran=f"{sum(1 << place for place in places):x}")


def test_walks_of_one_program_are_counted_together() -> None:
    walks = [_walk(0, 1), _walk(1, 7), _walk(3, table="another")]
    assert together(walks, _BLOCKS) == (0b10000011, 1)


def test_a_run_lists_the_code_that_none_of_its_walks_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_table", lambda _zfs, _linux: TABLE)
    said = list_coverage([_walk(0), _walk(7)], zfs="2.3.9", folder=tmp_path)
    assert said.startswith("2 of 8 blocks of OpenZFS 2.3.9 were run; the others: ")
    text = (tmp_path / "coverage.txt").read_text()
    assert "  zil_replay: 3\n" in text
    assert text.endswith("\n")


def test_a_garbled_record_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_table", lambda _zfs, _linux: TABLE)
    garbled = WalkCoverage(table=_BLOCKS.digest, ran="?")
    said = list_coverage([garbled], zfs="2.3.9", folder=tmp_path)
    assert said.startswith("coverage.txt is not written: ")
    assert not (tmp_path / "coverage.txt").exists()
