"""Schedules: which trial comes next, when a cell has had enough, and that one file adds another."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

import torture.records.schedules
from suites.selftest.unit.fake_workers import ASKED, FEWEST, OTHER, UNTIL, record_of, specs_of
from suites.selftest.unit.made_records import changed
from torture.discovery import offered
from torture.facts.evidence.cut_document import AuditDocument, Confirmation, CutDocument
from torture.facts.stats.sequential import Answer, Until
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Origin, TrialRecord, needing_attention
from torture.records.schedules import order_of, schedule_kinds
from torture.records.schedules.fixed import FixedSchedule, ReplaySchedule, repeat
from torture.records.schedules.protocol import Schedule
from torture.records.schedules.until import Settled, UntilSchedule

SPECS = specs_of(ASKED)
TWO_CELLS = specs_of(ASKED, OTHER, trials=FEWEST + 3)

Outcomes = st.lists(st.sampled_from("..........LC?"), min_size=60, max_size=60).map("".join)


def begin_all(schedule: Schedule) -> list[TrialSpec]:
    """Take every trial that can be begun, as if there were a worker for each."""
    begun = []
    while (spec := schedule.next_spec()) is not None:
        begun.append(spec)
    return begun


def settled_by(
    outcomes: str, order: Sequence[int], *, until: Until = UNTIL, specs: Sequence[TrialSpec] = SPECS
) -> Settled | None:
    """The facts when so many trials have ended in that order, all of them begun before."""
    schedule = UntilSchedule(specs, until)
    begin_all(schedule)
    for place in order:
        schedule.record_ended(specs[place], record_of(specs[place], outcomes[place]))
    return schedule.settled.get(ASKED)


def settled_row_by_row(outcomes: str, until: Until = UNTIL) -> Settled | None:
    """Slowly: every row of first trials, the shortest first."""
    for end in range(1, len(outcomes) + 1):
        row = outcomes[:end].replace("?", "")
        events = sum(letter in ("LC" if until.counted == "loss" else "C") for letter in row)
        if (answer := until.answer(events, len(row))) is not None:
            return Settled(answer=answer, events=events, trials=len(row))
    return None


@settings(deadline=None)
@given(Outcomes, st.permutations(range(60)), st.sampled_from(["upper<0.3", "corruption upper<0.2"]))
def test_the_order_in_which_trials_end_decides_nothing(
    outcomes: str, order: list[int], question: str
) -> None:
    until = Until.parse(question)
    assert settled_by(outcomes, order, until=until) == settled_row_by_row(outcomes, until)


def test_a_trial_that_takes_long_is_waited_for() -> None:
    """The trials that lose are slow: a rule that counted what has ended would say yes."""
    outcomes = "LLLLLLLL" + "." * 52
    quick = range(8, 60)
    assert UNTIL.answer(0, len(quick)) is Answer.YES
    assert settled_by(outcomes, quick) is None
    assert settled_by(outcomes, [*quick, *range(8)]) == settled_row_by_row(outcomes)
    assert settled_row_by_row(outcomes) == Settled(answer=Answer.NO, events=5, trials=5)


def test_inconclusive_trials_count_for_nothing_and_hold_nothing_up() -> None:
    outcomes = "?." * 30
    found = settled_by(outcomes, range(60))
    assert found == Settled(answer=Answer.YES, events=0, trials=FEWEST)
    assert settled_by("?" * 60, range(60)) is None


@pytest.mark.parametrize("question", ["upper<0.3", "corruption upper<0.3"])
def test_damage_without_a_lost_operation_is_harm_and_a_confirmed_finding_is_in_no_rate(
    question: str,
) -> None:
    schedule = UntilSchedule(SPECS, Until.parse(question))
    begin_all(schedule)
    for place, spec in enumerate(SPECS):
        harmed = changed(record_of(spec, "C"), lost=0)
        cut = structs.replace(harmed.cut, confirmed=Confirmation(finding="a finding", marks=1))
        schedule.record_ended(spec, structs.replace(harmed, cut=cut) if place < 9 else harmed)
        if place == 8:
            assert schedule.settled == {}
    assert schedule.settled[ASKED].answer is Answer.NO
    assert schedule.settled[ASKED].events == schedule.settled[ASKED].trials


def test_it_settles_once_and_says_so_in_words() -> None:
    schedule = UntilSchedule(TWO_CELLS, UNTIL)
    row = [spec for spec in begin_all(schedule) if spec.cell == ASKED]
    settled_at: list[int] = []
    for place, spec in enumerate(row):
        assert schedule.in_words() == f"loss upper<0.3: {'yes 1, ' * bool(settled_at)}" + (
            "unanswered 1" if settled_at else "unanswered 2"
        )
        before = schedule.settled
        schedule.record_ended(spec, record_of(spec, "."))
        settled_at += [place] * (schedule.settled != before)
    assert settled_at == [FEWEST - 1]
    assert schedule.in_words() == "loss upper<0.3: yes 1, unanswered 1"


def test_an_answered_cell_has_only_its_trials_under_way_left() -> None:
    schedule = UntilSchedule(TWO_CELLS, UNTIL)
    begun = [spec for _ in range(2 * FEWEST + 2) if (spec := schedule.next_spec()) is not None]
    own = [spec for spec in begun if spec.cell == ASKED]
    assert len(own) == FEWEST + 1
    for spec in own[:-1]:
        assert not schedule.is_cell_over(ASKED)
        schedule.record_ended(spec, record_of(spec, "."))
    assert (schedule.total, schedule.is_cell_over(ASKED)) == (len(TWO_CELLS) - 2, False)
    schedule.record_ended(own[-1], record_of(own[-1], "."))
    assert (schedule.is_cell_over(ASKED), schedule.is_over) == (True, False)
    assert {spec.cell for spec in begin_all(schedule)} == {OTHER}


def test_a_trial_that_is_given_back_after_the_answer_is_dropped() -> None:
    schedule = UntilSchedule(SPECS, UNTIL)
    begun = [spec for _ in range(FEWEST + 1) if (spec := schedule.next_spec()) is not None]
    for spec in begun[:-1]:
        schedule.record_ended(spec, record_of(spec, "."))
    assert (schedule.total, schedule.is_over) == (FEWEST + 1, False)
    schedule.give_back(begun[-1])
    assert (schedule.total, schedule.is_over) == (FEWEST, True)
    assert schedule.next_spec() is None


def test_a_trial_that_is_given_back_before_the_answer_is_the_next_again() -> None:
    for schedule in (FixedSchedule(SPECS), UntilSchedule(SPECS, UNTIL)):
        first = schedule.next_spec()
        assert first is SPECS[0]
        schedule.give_back(first)
        assert begin_all(schedule) == [*SPECS]
        assert (schedule.total, schedule.is_over) == (60, False)


@settings(deadline=None)
@given(Outcomes, st.data())
def test_a_fixed_schedule_runs_all_trials_with_any_verdicts(
    outcomes: str, data: st.DataObject
) -> None:
    specs = TWO_CELLS[: len(outcomes)]
    schedule = FixedSchedule(specs)
    under_way = begin_all(schedule)
    assert under_way == [*specs]
    for spec, outcome in zip(data.draw(st.permutations(under_way)), outcomes, strict=False):
        assert not schedule.is_over
        assert not schedule.is_cell_over(spec.cell)
        schedule.record_ended(spec, record_of(spec, outcome))
    assert schedule.is_over
    assert (schedule.total, schedule.in_words()) == (len(specs), "")


EMPTY = CutDocument(audit=AuditDocument(under_way=0, acknowledged_lately=0))


def an_empty_one(spec: TrialSpec) -> TrialRecord:
    return structs.replace(record_of(spec, "?"), cut=EMPTY)


def test_an_empty_cut_is_drawn_again_with_a_seed_of_its_own() -> None:
    first, *others = specs_of(ASKED, trials=2)
    schedule = FixedSchedule([first, *others])
    begin_all(schedule)
    schedule.record_ended(first, an_empty_one(first))
    [again] = begin_all(schedule)
    assert (again.cell, again.index, again.load_ms) == (first.cell, first.index, first.load_ms)
    assert again.seed not in {first.seed, *(spec.seed for spec in others)}
    assert schedule.total == 3
    for spec in (*others, again):
        assert not schedule.is_cell_over(ASKED)
        schedule.record_ended(spec, record_of(spec, "."))
    assert schedule.is_over


def test_a_cell_whose_cuts_are_all_empty_comes_to_an_end() -> None:
    [first] = specs_of(ASKED, trials=1)
    schedule = FixedSchedule([first])
    seeds = []
    while (spec := schedule.next_spec()) is not None:
        seeds.append(spec.seed)
        schedule.record_ended(spec, an_empty_one(spec))
    assert len(set(seeds)) == len(seeds) == 4
    assert (schedule.is_over, schedule.total) == (True, 4)


def test_an_empty_cut_is_to_be_looked_at_only_where_the_cell_has_nothing_else() -> None:
    first, second = specs_of(ASKED, trials=2)
    empty, broken_off = an_empty_one(first), record_of(first, "M")
    assert needing_attention([empty, record_of(second, ".")]) == []
    assert needing_attention([empty, broken_off]) == [empty, broken_off]
    assert needing_attention([empty, broken_off, record_of(second, "C")]) == [broken_off]


@pytest.mark.parametrize("outcome", [".", "L", "?"])
def test_no_other_trial_is_drawn_again(outcome: str) -> None:
    [first] = specs_of(ASKED, trials=1)
    planted = replace(first, origin=Origin.PLANTED, fault="flush-dropped")
    for spec, cut in ((planted, EMPTY), (first, CutDocument())):
        schedule = FixedSchedule([spec])
        begin_all(schedule)
        schedule.record_ended(spec, structs.replace(record_of(spec, outcome), cut=cut))
        assert schedule.is_over
    lossy = FixedSchedule([first])
    lossy.record_ended(first, structs.replace(record_of(first, "L"), cut=EMPTY))
    assert lossy.is_over
    until = UntilSchedule(SPECS, UNTIL)
    until.record_ended(SPECS[0], an_empty_one(SPECS[0]))
    assert until.total == len(SPECS)


def test_a_cell_of_which_there_are_no_trials_is_over() -> None:
    assert FixedSchedule(SPECS).is_cell_over(OTHER)


@pytest.mark.parametrize("origin", [Origin.REPLAY, Origin.RERUN])
def test_a_replay_is_one_trial_and_differs_from_the_first_by_name(origin: Origin) -> None:
    spec = repeat(SPECS[3], evidence=Path("/results/run/trials/there"), origin=origin)
    assert spec.trial == f"{SPECS[3].trial}.{origin}"
    assert (spec.seed, spec.index, spec.cell) == (SPECS[3].seed, 3, ASKED)
    schedule = ReplaySchedule(spec)
    assert schedule.in_words() == f"{origin} of {SPECS[3].trial}"
    assert begin_all(schedule) == [spec]
    again = repeat(spec, evidence=Path("/results/other/trials/there"), origin=Origin.REPLAY)
    assert again.trial == f"{SPECS[3].trial}.{origin}.replay"


def test_a_trial_that_repeats_none_is_no_replay() -> None:
    with pytest.raises(ValueError, match="repeats no trial"):
        ReplaySchedule(SPECS[0])


def test_every_schedule_is_found_by_its_own_name() -> None:
    kinds = schedule_kinds()
    assert kinds.keys() >= {"fixed", "until", "replay"}
    assert [kind.name for kind in kinds.values()] == list(kinds)


def test_the_requested_schedule_is_made_of_the_runs_trials() -> None:
    fixed, until = order_of("fixed"), order_of("until:lower > 0.5")
    assert (fixed.question, fixed.trials, fixed.text) == ("", 1, "fixed")
    assert isinstance(fixed.make(SPECS), FixedSchedule)
    assert (until.question, until.text) == ("loss lower>0.5", "until:lower > 0.5")
    assert until.trials == 4 * Until.parse("lower>0.5").trials_at_best
    made = until.make(SPECS)
    assert isinstance(made, UntilSchedule)
    assert made.in_words() == "loss lower>0.5: unanswered 1"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sometimes", "there is no schedule 'sometimes', but .*fixed.*replay.*until"),
        ("fixed:5", "'fixed' takes no question: '5'"),
        ("until", "cannot read the question ''; say e.g. 'upper<0.01'"),
        ("until:upper>0.1", "ask 'upper<', not 'upper>'"),
        ("replay", "tools/replay EVIDENCE"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        order_of(text)


DUMMY = """
from torture.records.schedules.fixed import FixedSchedule
from torture.records.schedules.protocol import ScheduleKind, ScheduleOrder

SCHEDULE = ScheduleKind(
    name="backwards",
    words="the last trial first",
    order=lambda asked: ScheduleOrder(make=lambda specs: FixedSchedule(specs[::-1]), trials=3),
)
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose files are schedules, too."""
    monkeypatch.setattr(
        torture.records.schedules, "__path__", [*torture.records.schedules.__path__, str(tmp_path)]
    )
    for name in ("backwards", "misspelt"):
        monkeypatch.delitem(sys.modules, f"torture.records.schedules.{name}", raising=False)
    return tmp_path


def test_a_new_schedule_is_one_new_file(added: Path) -> None:
    (added / "backwards.py").write_text(DUMMY)
    order = order_of("backwards")
    assert order.trials == 3
    assert begin_all(order.make(SPECS)) == [*reversed(SPECS)]
    assert {"fixed", "until", "replay", "backwards"} <= schedule_kinds().keys()


def test_a_file_may_offer_several(added: Path) -> None:
    (added / "backwards.py").write_text(f"{DUMMY}\nSCHEDULES = (SCHEDULE, SCHEDULE)\n")
    offers = [kind.name for kind in offered("torture.records.schedules", "SCHEDULE")]
    assert offers.count("backwards") == 2


def test_a_file_that_offers_nothing_does_not_go_unnoticed(added: Path) -> None:
    (added / "misspelt.py").write_text("SCHEDUEL = 1\n")
    with pytest.raises(ImportError, match="misspelt does not define SCHEDULE"):
        schedule_kinds()
