"""The removal experiment: damage stands without any file that does not show it, and intact needs all.

It takes real folders of many kinds of cells. Each document is deleted, halved, emptied and garbled. Each
line of the tools, and lines of the ledger and of the client's disk, are dropped, cut and doubled. The
manifest stays as it was. Or it is written anew, as if the item had never been made. Or it states no
verdict yet, as in a try whose worker died. Or the trial is of a version that wrote none.
"""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pytest

from suites.selftest.unit.examples import examples
from torture.errors import HarnessError
from torture.facts.evidence.folder import SPEC, TOOLS, load_evidence
from torture.facts.evidence.manifest import MANIFEST, MANIFEST_DUE, write_manifest
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.judgement import Judgement
from torture.records.record.trials import TrialRecord
from torture.records.scoring.judge import judge

PACKED = sorted(Path(__file__).parents[2].joinpath("recorded", "evidence").glob("*.zip"))
LINES_MAX = 12
"""Of documents with hundreds of lines, so many are taken in turn."""
REMOVALS = 60
"""Of each folder and kind of manifest, in a fast run; `pytest --hypothesis-profile` draws more."""

Change = Callable[[bytes], bytes | None]
"""From the content of a document to its new content; None: it is not there."""


class Vouches(StrEnum):
    """The word of the manifest for the evidence that is left."""

    AS_IT_WAS = "as-it-was"
    WRITTEN_ANEW = "written-anew"
    WITHOUT_VERDICT = "without-verdict"
    OLDER = "older"


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
            ways: dict[str, Change] = {
                "dropped": lambda _line: b"",
                "cut": lambda line: line[: len(line) // 2] + b"\n",
                "doubled": lambda line: line * 2,
            }
            for way, change in ways.items():
                yield Removal(name=path.name, what=f"line {at} {way}", change=of_line(at, change))


def of_line(at: int, change: Change) -> Change:
    """The change of a whole document by that of one line."""

    def change_one(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        lines[at] = change(lines[at]) or b""
        return b"".join(lines)

    return change_one


def judged(folder: Path) -> Judgement | None:
    """None where there is no trial any more: its record stays as it is (`rejudge`)."""
    try:
        return judge(load_evidence(folder))
    except HarnessError:
        return None


def unpacked(packed: Path, folder: Path) -> Path:
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(folder)
    return folder


class Trial:
    """A folder whose files are spoilt one at a time."""

    def __init__(self, folder: Path, vouches: Vouches) -> None:
        self.folder = folder
        self._vouches = vouches
        if vouches is Vouches.OLDER:
            spec = json.loads((folder / SPEC).read_bytes())
            (folder / SPEC).write_text(json.dumps(spec | {MANIFEST_DUE: False}))
            (folder / MANIFEST).unlink()
        elif vouches is Vouches.WITHOUT_VERDICT:
            write_manifest(folder)
        whole = judged(folder)
        assert whole is not None
        self.whole = whole

    def after(self, removal: Removal) -> Judgement | None:
        """The judgement after one removal, which is undone at once."""
        document, manifest = self.folder / removal.name, self.folder / MANIFEST
        kept = {path: path.read_bytes() for path in {document, manifest} if path.exists()}
        changed = removal.change(kept[document])
        document.unlink() if changed is None else document.write_bytes(changed)
        if self._vouches is Vouches.WRITTEN_ANEW and document != manifest:
            write_manifest(self.folder, verdict=json.loads(kept[manifest])["verdict"])
        now = judged(self.folder)
        for path, content in kept.items():
            path.write_bytes(content)
        return now

    def shows_damage(self, name: str) -> bool:
        """Whether a layer's own damage is less, or gone, once this file alone is gone."""
        now = self.after(Removal(name=name, what="deleted", change=lambda _data: None))
        return now is not None and any(
            after is None or after.badness < before.badness
            for before, after in zip(layers_of(self.whole), layers_of(now), strict=True)
            if before not in (None, Verdict.INTACT, Verdict.INCONCLUSIVE)
        )

    def complaint(self, removal: Removal) -> str:
        """How the judgement after a removal is a better one; empty where it is not."""
        now, before = self.after(removal), self.whole.verdict
        if now is None:
            return ""
        said = f"{removal.name} {removal.what}: {before} is {now.verdict}"
        if before is Verdict.INCONCLUSIVE or now.verdict is Verdict.INTACT:
            return said if now.verdict is not before else ""
        if before is Verdict.INTACT:
            return said if now.verdict is not Verdict.INCONCLUSIVE else ""
        states = self._vouches in (Vouches.AS_IT_WAS, Vouches.WRITTEN_ANEW)
        is_conclusive = now.verdict is not Verdict.INCONCLUSIVE
        is_no_less = is_conclusive and now.verdict.badness >= before.badness
        if not is_no_less and (states or not self.shows_damage(removal.name)):
            return said
        if harms(self.whole) and not harms(now) and now.verdict is before:
            return f"{said}, and no harm any more"
        return ""


def layers_of(found: Judgement) -> tuple[Verdict | None, ...]:
    return tuple(found.parts.values())


def harms(found: Judgement) -> bool:
    return TrialRecord(trial="t", cell="c", judgement=found).is_loss


def test_there_are_many_kinds_of_cells_and_every_verdict() -> None:
    cells = {path.name.split(".", 1)[1].rsplit(".", 2)[0] for path in PACKED}
    assert len(cells) >= 12
    assert {path.name.split(".")[0] for path in PACKED} == {verdict.value for verdict in Verdict}


@pytest.mark.parametrize("packed", PACKED, ids=lambda path: path.stem)
def test_the_evidence_as_it_was_gives_the_verdict_that_it_gave(
    packed: Path, tmp_path: Path
) -> None:
    found = judged(unpacked(packed, tmp_path))
    assert found is not None
    assert found.verdict == packed.name.split(".")[0]


@pytest.mark.parametrize("vouches", list(Vouches))
@pytest.mark.parametrize("packed", PACKED, ids=lambda path: path.stem)
def test_damage_stands_without_any_file_that_does_not_show_it_and_intact_needs_all(
    packed: Path, vouches: Vouches, tmp_path: Path
) -> None:
    trial = Trial(unpacked(packed, tmp_path), vouches)
    every = list(removals_of(trial.folder))
    dice = random.Random(f"{packed.name} {vouches}")
    drawn = dice.sample(every, min(len(every), examples(REMOVALS)))
    assert [said for removal in drawn if (said := trial.complaint(removal))] == []
