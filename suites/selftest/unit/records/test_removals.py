"""The removal experiment: whatever is taken from a trial's evidence, its verdict gets no better.

It takes real folders of many kinds of cells. Each document is deleted, halved, emptied and garbled. Each
line of the tools, and lines of the ledger and of the client's disk, are dropped, cut and doubled. The
manifest once stays as it was, and once is written anew as if the item had never been made.
"""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from suites.selftest.unit.examples import examples
from torture.errors import HarnessError
from torture.facts.evidence.folder import TOOLS, load_evidence
from torture.facts.evidence.manifest import MANIFEST, write_manifest
from torture.oracles.verdict.verdicts import Verdict
from torture.records.scoring.judge import judge

PACKED = sorted(Path(__file__).parents[2].joinpath("recorded", "evidence").glob("*.zip"))
LINES_MAX = 12
"""Of documents with hundreds of lines, so many are taken in turn."""
REMOVALS = 60
"""Of each folder and kind of manifest, in a fast run; `pytest --hypothesis-profile` draws more."""

Change = Callable[[bytes], bytes | None]
"""From what a document held to what it holds; None: it is not there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Removal:
    """One item that is taken away or damaged."""

    name: str
    what: str
    change: Change


def removals_of(folder: Path) -> Iterator[Removal]:
    """Every removal from a folder."""
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        yield Removal(name=path.name, what="deleted", change=lambda _data: None)
        yield Removal(name=path.name, what="halved", change=lambda data: data[: len(data) // 2])
        yield Removal(name=path.name, what="emptied", change=lambda _data: b"")
        yield Removal(name=path.name, what="garbled", change=lambda data: data[::-1])
        if path.suffix != ".jsonl":
            continue
        count = len(content.splitlines())
        step = 1 if path.name == TOOLS else max(1, count // LINES_MAX)
        for at in range(0, count, step):
            yield Removal(name=path.name, what=f"line {at} dropped", change=dropped(at, b""))
            yield Removal(name=path.name, what=f"line {at} cut", change=dropped(at, None))
            yield Removal(name=path.name, what=f"line {at} doubled", change=doubled(at))


def dropped(at: int, instead: bytes | None) -> Change:
    def change(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        lines[at] = lines[at][: len(lines[at]) // 2] + b"\n" if instead is None else instead
        return b"".join(lines)

    return change


def doubled(at: int) -> Change:
    def change(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        return b"".join([*lines[: at + 1], *lines[at:]])

    return change


def verdict_of(folder: Path) -> Verdict | None:
    """None where there is no trial any more: its record stays as it is (`rejudge`)."""
    try:
        return judge(load_evidence(folder)).verdict
    except HarnessError:
        return None


def is_better(now: Verdict | None, before: Verdict) -> bool:
    """A loss that becomes inconclusive is better, too: it leaves the rates."""
    if now is None:
        return False
    if Verdict.INCONCLUSIVE in (now, before):
        return now is not before and (before is Verdict.INCONCLUSIVE or before.is_loss)
    return now.badness < before.badness


def unpacked(packed: Path, folder: Path) -> Path:
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(folder)
    return folder


def test_there_are_many_kinds_of_cells_and_every_verdict() -> None:
    cells = {path.name.split(".", 1)[1].rsplit(".", 2)[0] for path in PACKED}
    assert len(cells) >= 12
    assert {path.name.split(".")[0] for path in PACKED} == {verdict.value for verdict in Verdict}


@pytest.mark.parametrize("packed", PACKED, ids=lambda path: path.stem)
def test_the_evidence_as_it_was_gives_the_verdict_that_it_gave(
    packed: Path, tmp_path: Path
) -> None:
    assert verdict_of(unpacked(packed, tmp_path)) == packed.name.split(".")[0]


@pytest.mark.parametrize("is_rewritten", [False, True], ids=["as-it-was", "written-anew"])
@pytest.mark.parametrize("packed", PACKED, ids=lambda path: path.stem)
def test_less_evidence_never_gives_a_better_verdict(
    packed: Path, is_rewritten: bool, tmp_path: Path
) -> None:
    folder = unpacked(packed, tmp_path)
    before = verdict_of(folder)
    assert before is not None
    manifest = (folder / MANIFEST).read_bytes()
    written_down = json.loads(manifest)["verdict"]
    every = list(removals_of(folder))
    dice = random.Random(packed.name)
    better = []
    for removal in dice.sample(every, min(len(every), examples(REMOVALS))):
        document = folder / removal.name
        content = document.read_bytes()
        changed = removal.change(content)
        document.unlink() if changed is None else document.write_bytes(changed)
        if is_rewritten and removal.name != MANIFEST:
            write_manifest(folder, verdict=written_down)
        now = verdict_of(folder)
        if is_better(now, before):
            better.append(f"{removal.name} {removal.what}: {before} is {now}")
        document.write_bytes(content)
        (folder / MANIFEST).write_bytes(manifest)
    assert better == []
