"""An interrupted run goes on: no trial is missing or doubled, and cells end as they would have."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

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
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.machines.lab.lab import LabSettings
from torture.records.record.run_document import read_run_document
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import append_record
from torture.records.schedules.fixed import FixedSchedule
from torture.records.schedules.protocol import Schedule
from torture.records.schedules.until import UntilSchedule
from torture.trials.campaign.run import Run, WantedRun, engine_state, settle

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
    return replace(record, cut=EMPTY) if outcome == "E" else record


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
    replace(document, engine_state="").write(interrupted.folder)
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
