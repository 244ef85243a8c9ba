"""The same seeds draw the same trials as they always did: an old campaign can be gone on with.

An interrupted run goes on: no trial is missing or doubled, and cells end as they would have.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from suites.selftest.unit.every_cell import GROWING
from suites.selftest.unit.fake_workers import (
    ASKED,
    OTHER,
    THIRD,
    UNTIL,
    FakeSite,
    campaign_of,
    play,
    record_of,
    specs_of,
)
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import TRANSPORT, Cell, cells_of
from torture.choices.matrix.choices import parse_choices
from torture.errors import HarnessError
from torture.facts.axes.axis import FORMER_NAMES, Former
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.files import CHECKOUT
from torture.machines.lab.lab import LabSettings
from torture.machines.nas.pool import pool_disks
from torture.records.record.run_document import RunLayout, read_run_document
from torture.records.record.specs import DRAW, DRAWS, TrialSpec, draw_seed
from torture.records.record.trials import Origin, TrialRecord
from torture.records.record.trials_file import append_record, index_in, read_records
from torture.records.schedules.fixed import FixedSchedule, repeat
from torture.records.schedules.protocol import Schedule
from torture.records.schedules.until import UntilSchedule
from torture.trials.campaign.run import Run, WantedRun, engine_state, settle
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


def test_a_word_that_was_two_choices_has_their_trials() -> None:
    cell = Cell.parse("nfs_image_dsync-standard-noslog-sector512-btrfs-nasonly")
    assert cell.name == "nfs_image-directsync-standard-noslog-sector512-btrfs-nasonly"
    assert cell.frozen_name == "nfs_image_dsync-standard-noslog-sector512-btrfs-nasonly"
    said = {"transport": "nfs_image", "cache": "directsync"}
    assert parse_choices(["transport=nfs_image_dsync"]) == said
    assert Cell.parse(cell.name).frozen_name == cell.frozen_name


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


# An interrupted run goes on: no trial is missing or doubled, and cells end as they would have.

CELLS = (ASKED, OTHER, THIRD)
EMPTY = CutDocument(audit=AuditDocument(under_way=0, acknowledged_lately=0))
OUTCOMES = st.lists(st.sampled_from("....LC?E"), min_size=61, max_size=61).map("".join)
"""`E` is an empty cut, which a fixed schedule draws again."""


def made(kind: str) -> Schedule:
    specs = specs_of(*CELLS, trials=20)
    return UntilSchedule(specs, UNTIL) if kind == "until" else FixedSchedule(specs)


def ended(spec: TrialSpec, outcomes: str) -> TrialRecord:
    """The trial's record, which depends on the trial alone."""
    outcome = outcomes[spec.seed % len(outcomes)]
    record = record_of(spec, "?" if outcome == "E" else outcome)
    return structs.replace(record, cut=EMPTY) if outcome == "E" else record


def played(schedule: Schedule, outcomes: str, *, until: int | None = None) -> list[TrialRecord]:
    """The records of one worker, up to the interruption before that trial."""
    records: list[TrialRecord] = []
    while len(records) != until and (spec := schedule.next_spec()) is not None:
        records.append(ended(spec, outcomes))
        schedule.record_ended(spec, records[-1])
    return records


@given(kind=st.sampled_from(["fixed", "until"]), outcomes=OUTCOMES, at=st.integers(0, 80))
def test_a_run_that_goes_on_ends_as_an_uninterrupted_one(kind: str, outcomes: str, at: int) -> None:
    whole, second = made(kind), made(kind)
    expected = played(whole, outcomes)
    first = played(made(kind), outcomes, until=at)
    settle(second, first)
    both = first + played(second, outcomes)
    names = [record.trial for record in both]
    assert len(names) == len(set(names))
    assert sorted(names) == sorted(record.trial for record in expected)
    assert second.is_over
    assert second.total == whole.total == len(expected)
    if isinstance(whole, UntilSchedule) and isinstance(second, UntilSchedule):
        assert second.settled == whole.settled
        assert second.in_words() == whole.in_words()


@given(outcomes=OUTCOMES, chosen=st.sets(st.integers(0, 59)))
def test_trials_may_have_ended_in_any_order(outcomes: str, chosen: set[int]) -> None:
    """Several workers end their trials out of order, and the interruption leaves gaps."""
    specs = specs_of(*CELLS, trials=20)
    first = [ended(specs[number], outcomes) for number in chosen]
    schedule = UntilSchedule(specs, UNTIL)
    settle(schedule, first)
    names = {record.trial for record in first} | {
        record.trial for record in played(schedule, outcomes)
    }
    whole = UntilSchedule(specs, UNTIL)
    assert {record.trial for record in played(whole, outcomes)} <= names
    assert schedule.settled == whole.settled


def test_records_of_other_trials_are_refused() -> None:
    records = played(FixedSchedule(specs_of(OTHER, trials=1)), "." * 61)
    with pytest.raises(HarnessError, match="1 trials of that run are not drawn by this command"):
        settle(FixedSchedule(specs_of(ASKED, trials=3)), records)


def test_a_campaign_goes_on_behind_the_records_of_the_interrupted_one(tmp_path: Path) -> None:
    specs = specs_of(ASKED, trials=5)
    earlier = [record_of(spec, "L") for spec in specs[:2]]
    for record in earlier:
        append_record(tmp_path / "trials.jsonl", record)
    with (tmp_path / "trials.jsonl").open("a") as file:
        file.write('{"trial": "cut off by the end of')
    schedule = FixedSchedule(specs)
    settle(schedule, earlier)
    site = FakeSite()
    campaign = campaign_of(tmp_path, schedule, site, earlier=earlier)
    records = play(campaign, ASKED)
    assert {record.trial for record in records} == {spec.trial for spec in specs}
    assert records[:2] == tuple(earlier)
    assert campaign.total == 5
    assert sorted(spec.index for spec in site.begun) == [2, 3, 4]


LAB = LabSettings(warm_states=Path("/nowhere"))
OPTIONS = {"cells": [ASKED.name], "trials": 3, "jobs": 2, "until": None}


@pytest.fixture(scope="module")
def interrupted() -> Iterator[Run]:
    with tempfile.TemporaryDirectory() as results:
        yield Run.begin(results=Path(results), seed=7, lab=LAB, options=OPTIONS)


def wanted(**changes: object) -> WantedRun:
    options = OPTIONS | {key: value for key, value in changes.items() if key in OPTIONS}
    seed = changes.get("seed", 7)
    assert isinstance(seed, int)
    return WantedRun(seed=seed, lab=LAB, options=options)


@pytest.mark.parametrize("changes", [{}, {"jobs": 7}])
def test_the_same_command_goes_on_with_its_run(
    interrupted: Run, changes: dict[str, object]
) -> None:
    assert wanted(**changes).among([interrupted.folder]) == interrupted


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"seed": 8}, "seed: 7, now 8"),
        ({"trials": 4}, "trials: 3, now 4"),
        ({"cells": [OTHER.name]}, f"cells: ['{ASKED.name}'], now ['{OTHER.name}']"),
        ({"until": "upper<0.3"}, "until: None, now 'upper<0.3'"),
    ],
)
def test_another_command_is_refused_with_the_difference(
    interrupted: Run, changes: dict[str, object], difference: str
) -> None:
    assert wanted(**changes).among([interrupted.folder]) is None
    assert wanted(**changes).differences(interrupted.folder) == (difference,)


def test_a_command_with_another_extra_is_refused(
    interrupted: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slogs").mkdir()
    (tmp_path / "slogs" / "own.py").write_text("")
    monkeypatch.setenv("TORTURE_EXTRA", str(tmp_path))
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert wanted().differences(interrupted.folder) == (
        f"extra: {{}}, now {{'slogs/own.py': '{digest}'}}",
    )


def test_a_run_of_another_state_of_the_suite_is_refused(
    interrupted: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = read_run_document(interrupted.folder)
    assert document is not None
    assert document.engine_state == engine_state()
    monkeypatch.setattr("torture.trials.campaign.run.engine_state", lambda: "0123456789abcdef")
    assert wanted().differences(interrupted.folder) == (
        f"state of the suite: '{engine_state()}', now '0123456789abcdef'",
    )
    structs.replace(document, engine_state="").write(interrupted.folder)
    try:
        assert not wanted().differences(interrupted.folder), "an older run goes on"
    finally:
        document.write(interrupted.folder)


def test_the_state_of_the_suite_is_that_of_the_code_that_makes_trials(tmp_path: Path) -> None:
    files = ["torture/a.py", "torture/report/b.py", "vmimages/c", "docs/d", "torture/__pycache__/e"]
    states = []
    for changed_file in ["", *files]:
        checkout = tmp_path / (changed_file.replace("/", "-") or "plain")
        for name in files:
            file = checkout / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("new" if name == changed_file else "old")
        states.append(engine_state(checkout))
    assert [state != states[0] for state in states[1:]] == [True, False, True, False, False]


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="is no run"):
        wanted().among([tmp_path])


def test_other_images_are_another_run(interrupted: Run, tmp_path: Path) -> None:
    document = json.loads(interrupted.run_file.read_text())
    document["images"]["nas"] = {"key": "of-another-kernel", "packages": {}}
    (tmp_path / "run.json").write_text(json.dumps(document))
    [difference] = wanted().differences(tmp_path)
    assert difference.startswith("image nas: 'of-another-kernel', now ")


def test_only_one_process_goes_on_with_a_run(interrupted: Run) -> None:
    with (
        interrupted.owned(),
        pytest.raises(HarnessError, match="is running already"),
        interrupted.owned(),
    ):
        pass
    with interrupted.owned():
        pass
