"""The same seeds draw the same trials as they always did: an old campaign can be gone on with."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.unit.every_cell import GROWING
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import TRANSPORT, Cell, cells_of
from torture.choices.matrix.choices import parse_choices
from torture.facts.axes.axis import FORMER_NAMES, Former
from torture.facts.axes.sweeps import Matrix
from torture.files import CHECKOUT
from torture.machines.nas.pool import pool_disks
from torture.records.record.run_document import RunLayout, read_run_document
from torture.records.record.specs import DRAW, DRAWS, TrialSpec, draw_seed
from torture.records.record.trials import Origin, TrialRecord
from torture.records.record.trials_file import index_in, read_records
from torture.records.schedules.fixed import repeat
from torture.trials.plan.cut_plan import Aim, CutPlan, draw_cut
from torture.trials.plan.draw import draw_trials
from torture.trials.plan.trial_plan import draw_plan

CELL = "iscsi-always-noslog-ext4-bothdie"
RECORDED = Path(__file__).resolve().parents[2] / "recorded" / "plans"
"""Plans of every fifth trial of the full matrix; a file is named after the commit that drew them. Another
has the cuts of the same seeds since cuts aim at all steps of ZFS's write path, labels and trims too."""

PUBLISHED = sorted(path for path in (CHECKOUT / "results" / "published").iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def before() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RECORDED / "commit-472f8a4.json").read_text())
    return content


@pytest.mark.parametrize("matrix", GROWING)
def test_the_matrices_still_have_their_cells_in_the_same_order(
    matrix: Matrix, before: dict[str, Any]
) -> None:
    cells = before["matrices"][matrix]
    assert [cell.name for cell in cells_of(matrix) if cell.name in set(cells)] == cells


def test_the_cells_guarantee_the_same(before: dict[str, Any]) -> None:
    now = {name: guarantee_of(Cell.parse(name)) for name in before["guarantees"]}
    assert now == before["guarantees"]


def test_the_same_seeds_draw_the_same_trials_on_the_same_disks(before: dict[str, Any]) -> None:
    kept = ("trial", "seed", "gone", "disks")
    recorded = [{key: trial[key] for key in kept} for trial in before["trials"]]
    assert [{key: trial[key] for key in kept} for trial in _drawn_now(before)] == recorded


def test_the_same_seeds_draw_the_same_cuts_and_survivors(before: dict[str, Any]) -> None:
    recorded = json.loads((RECORDED / "cuts.json").read_text())
    now = {trial["trial"]: (trial["cut"], trial["survivors"]) for trial in _drawn_now(before)}
    assert len(now) > 50
    assert json.loads(json.dumps(now)) == recorded


def test_a_spec_of_before_is_of_the_first_draw_and_a_new_one_says_its_own() -> None:
    [spec] = draw_trials([Cell.parse(CELL)], trials=1, run_seed=1, load_ms=4000)
    said = spec.as_json()
    assert TrialSpec.from_json(said) == spec
    assert spec.draw == said.pop("draw") == DRAW
    assert TrialSpec.from_json(said).draw == 1
    assert repeat(replace(spec, draw=1), evidence=Path("e"), origin=Origin.RERUN).draw == 1


def test_a_spec_of_a_draw_that_is_gone_is_refused_with_the_commit_that_has_it() -> None:
    [spec] = draw_trials([Cell.parse(CELL)], trials=1, run_seed=1, load_ms=4000)
    with pytest.raises(ValueError, match="commit 75e50dc5 has 2"):
        TrialSpec.from_json(spec.as_json() | {"draw": 2})


def test_disks_of_before_had_sectors_of_512_bytes() -> None:
    """And the trial's name said nothing of it, and does not now."""
    cell = Cell.parse(CELL)
    old = TrialSpec.from_json(
        {"cell": CELL, "index": 0, "seed": 5, "load_ms": 4000, "survive_ms": 4000, "draw": 1}
    )
    assert old.trial == f"{CELL}.0000-0000000000000005"
    assert old.cell == cell.but(disk_sector="sector512")
    assert {disk.physical_sector_bytes for disk in pool_disks(old.cell)} == {512}
    assert TrialSpec.from_json(old.as_json()) == old
    assert {disk.physical_sector_bytes for disk in pool_disks(cell)} == {4096}


OLD_NAMES = {
    "iscsi-always-plp-throughput-btrfs-bothdie": "logbias=throughput",
    "iscsi-always-noslog-raidz1-volblock64k-lz4-dedup-zilnocacheflush-blkmq-lun4k-ext4-nasonly": (
        "compression=lz4+dedup=on+volblocksize=64K+zfs.zvol_use_blk_mq=1"
    ),
    "nfs4-standard-noslog-throughput-lyingdisks-record16k-zstd-files-bothdie": (
        "compression=zstd+logbias=throughput+recordsize=16K"
    ),
}
"""Names from when these settings had axes, to what they are called now."""


@pytest.mark.parametrize("name", OLD_NAMES)
def test_a_cell_has_the_trials_that_it_had_under_its_old_name(name: str) -> None:
    cell = Cell.parse(name)
    assert cell.axes["settings"] == OLD_NAMES[name]
    assert Cell.parse(cell.name) == cell
    assert cell.name != cell.frozen_name == name
    [spec] = draw_trials([cell], trials=1, run_seed=7, load_ms=500)
    text = f"7/{name}/0/draw {DRAW}"
    assert spec.seed == int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    assert spec.trial == f"{name}.0000-{spec.seed:016x}"
    assert TrialSpec.from_json(spec.as_json() | {"cell": name}) == spec


def test_an_old_word_out_of_its_place_is_refused_with_the_name_there_is() -> None:
    with pytest.raises(
        ValueError, match="is another name of 'iscsi-always-noslog-logbias=throughput-btrfs"
    ):
        Cell.parse("iscsi-throughput-always-noslog-btrfs-bothdie")


def test_a_choice_under_another_name_keeps_its_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    iscsi, scst = CELL, CELL.replace("iscsi", "scst")
    monkeypatch.setitem(FORMER_NAMES, "scst", Former("transport", TRANSPORT.place, "iscsi"))
    assert Cell.parse(scst) == Cell.parse(iscsi)
    assert (Cell.parse(scst).name, Cell.parse(iscsi).frozen_name) == (iscsi, scst)
    assert parse_choices(["transport=scst"]) == {"transport": "iscsi"}


def test_a_setting_that_never_had_an_axis_is_drawn_from_its_name() -> None:
    cell = Cell.parse("iscsi-always-noslog-volblocksize=8K-btrfs-bothdie")
    assert cell.frozen_name == cell.name


def test_no_trial_has_the_name_of_one_that_was_drawn_otherwise() -> None:
    cell = Cell.parse(CELL)
    seeds = {draw_seed(run_seed=1, cell=cell, index=0, draw=draw) for draw in DRAWS}
    assert len(seeds) == 2


def test_only_a_later_draw_takes_aim_at_an_acknowledgement() -> None:
    def cuts(draw: int) -> list[CutPlan]:
        return [
            draw_cut(seed=seed, load_ms=4000, has_intent_log=True, draw=draw)
            for seed in range(2000)
        ]

    assert not any(cut.aim is Aim.ACKNOWLEDGED for cut in cuts(1))
    aimed = [cut for cut in cuts(DRAW) if cut.aim is Aim.ACKNOWLEDGED]
    assert 0.07 < len(aimed) / 2000 < 0.11
    assert all(1.0 <= cut.delay_ms <= 2.0 for cut in aimed)
    assert [cut.after_ms for cut in cuts(1)] == [cut.after_ms for cut in cuts(DRAW)]


def test_each_published_trial_is_drawn_by_one_of_the_draws() -> None:
    """Its cut, and the state that each disk kept: `tools/replay --live` repeats it from its seed."""
    drawn: Counter[int] = Counter()
    for folder in PUBLISHED:
        run = read_run_document(folder)
        assert run is not None
        for record in read_records(RunLayout(folder=folder).trials_file).records:
            if not record.cut.plan:  # a measurement, or a trial that ended before its cut
                continue
            drawn[_draw_of(record, load_ms=int(str(run.options["duration_ms"])))] += 1
    assert drawn[0] == 0, f"{drawn[0]} of {drawn.total()} can be drawn by no version"
    assert drawn[1] > 1000
    assert drawn[3] > 1000


def _draw_of(record: TrialRecord, *, load_ms: int) -> int:
    """The draw whose plan is that of the record, or 0."""
    index = index_in(record.trial)
    assert index is not None
    for draw in reversed(DRAWS):
        spec = TrialSpec(
            cell=Cell.parse(record.cell), index=index, seed=record.seed, load_ms=load_ms,
            origin=record.origin, draw=draw,
        )  # fmt: skip
        plan = draw_plan(spec)
        kept = {serial: state.as_json() for serial, state in plan.survivors.items()}
        was = record.cut.view.get("disks", {})
        if (plan.cut.as_json(), was.items() <= kept.items()) == (record.cut.plan, True):
            return draw
    return 0


def _drawn_now(before: dict[str, Any]) -> list[dict[str, Any]]:
    drawn = draw_trials(
        [Cell.parse(name) for name in before["matrices"][Matrix.FULL]],
        trials=2,
        run_seed=before["run_seed"],
        load_ms=before["load_ms"],
    )
    now: list[dict[str, Any]] = []
    for new in drawn[::5]:
        seed = draw_seed(run_seed=before["run_seed"], cell=new.cell, index=new.index, draw=1)
        spec = TrialSpec.from_json(new.as_json() | {"seed": seed, "draw": 1})
        plan = draw_plan(spec)
        now.append(
            {
                "trial": spec.trial,
                "seed": spec.seed,
                "cut": plan.cut.as_json(),
                "gone": sorted(plan.gone),
                "survivors": {serial: state.as_json() for serial, state in plan.survivors.items()},
                "disks": [disk.serial for disk in pool_disks(spec.cell)],
            }
        )
    return now
