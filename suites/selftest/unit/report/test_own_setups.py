"""The page's first question: which cell answers for a set-up, and in which words."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from suites.selftest.unit.report_records import intact_records, write_run
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import AXES, DEFAULTS, TRANSPORT, Cell, cells_of
from torture.facts.axes.away import AWAY, Patience
from torture.facts.axes.sweeps import Matrix
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.report.exports import EXPORTS
from torture.report.figures.cell_figures import CellFigures, cell_figures
from torture.report.figures.tables import EXPORT_SCHEMA
from torture.report.page.own_setup import own_setup
from torture.report.reading.store import Store
from torture.report.setups import SetUp, answers, controls, sentences, setups
from torture.report.setups.answers import Answer, Setting
from torture.report.setups.sentences import Said

PUBLISHED = CHECKOUT / "results" / "published"


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with Store.open([PUBLISHED]) as opened:
        yield opened


@pytest.fixture(scope="module")
def cells(store: Store) -> tuple[CellFigures, ...]:
    return cell_figures(store.tallies())


@pytest.fixture(scope="module")
def settings(cells: tuple[CellFigures, ...]) -> tuple[Setting, ...]:
    return answers.settings_of(cells)


@pytest.fixture(scope="module")
def said(settings: tuple[Setting, ...]) -> tuple[Said, ...]:
    return sentences.all_said(settings)


def every_answer(settings: tuple[Setting, ...]) -> Iterator[tuple[Setting, Answer]]:
    return ((setting, answer) for setting in settings for answer in setting.answers)


@pytest.mark.parametrize("setup", setups(), ids=lambda own: own.name)
def test_a_set_up_is_a_cell_and_says_where_its_product_does_it_so(setup: SetUp) -> None:
    base = Cell.parse("iscsi-standard-noslog-ext4-bothdie").but(**setup.cell)
    assert {axis: base.axes[axis] for axis in setup.cell} == setup.cell
    assert len(setup.source) > 40
    assert any(setup.on in option.of for option in controls().on)
    waits_s = dict(base[TRANSPORT].below.traits.waits_s).get(Patience(setup.patience), math.inf)
    assert setup.lasting or waits_s > max(choice.value for choice in AWAY.choices)


def test_every_option_names_choices_of_its_axis() -> None:
    own = controls()
    for axis in ("sync", "slog", "layout"):
        assert {option.name for option in getattr(own, axis)} <= set(AXES[axis].names)
    for change in [*(one.change for one in own.on), *(c for one in own.event for c in one.changes)]:
        assert all(choice in AXES[axis].names for axis, choice in change.items())
    assert own.near.same | own.near.small | own.near.far.keys() <= set(AXES)


def test_the_nearest_cell_is_the_least_distant_one_with_the_same_promise(
    cells: tuple[CellFigures, ...], settings: tuple[Setting, ...]
) -> None:
    """Against a slow search over all cells, for some of the answers."""
    near = controls().near

    def choice(axes: dict[str, str], axis: str) -> str:
        return axes.get(axis) or DEFAULTS.get(axis, "")

    def distance(asked: dict[str, str], promise: Guarantee, figures: CellFigures) -> int | None:
        apart = [a for a in AXES if choice(asked, a) != choice(figures.axes, a)]
        fits = (
            not near.same.intersection(apart)
            and figures.axes["transport"] in near.kind_of(asked["transport"])
            and figures.guarantee == promise
            and figures.conclusive
        )
        return sum(near.far.get(axis, 40) for axis in apart) if fits else None

    measured = answers.Measured(cells)
    asked = {answer.asked for _, answer in every_answer(settings) if answer.asked is not None}
    for cell in sorted(asked, key=lambda own: own.name)[::40]:
        found, differing = measured.nearest(cell)
        axes, promise = cell.axes, guarantee_of(cell)
        known = [far for own in cells if (far := distance(axes, promise, own)) is not None]
        assert (found is None) == (not known)
        if found is not None:
            assert distance(axes, promise, found) == min(known)
            assert all(choice(axes, a) != choice(found.axes, a) for a in differing)


def test_no_setting_is_called_safe_of_which_a_measured_event_lost(said: tuple[Said, ...]) -> None:
    called = [
        (own.setting, answer.answer)
        for own in said
        for answer in own.answers
        if "safe:" in answer.sentence
    ]
    assert called
    for setting, answer in called:
        assert not any(own.is_harmed or own.offline for own in setting.answers)
        assert answer.is_own
        assert answer.guarantee in (Guarantee.SAFE, Guarantee.MAY_GO_OFFLINE)
        assert answer.figures is not None
        assert answer.figures.harm.trials >= 29


@pytest.mark.parametrize(
    ("guarantee", "unresolved", "end"),
    [
        (Guarantee.SAFE, 0, "of cuts)"),
        (Guarantee.SAFE, 3, "and inconclusive ones leave it open"),
        (Guarantee.LOSES, 0, "though theory expects a loss"),
    ],
)
def test_nothing_lost_is_safe_by_the_rule_of_the_whole_page(
    cells: tuple[CellFigures, ...],
    settings: tuple[Setting, ...],
    guarantee: Guarantee,
    unresolved: int,
    end: str,
) -> None:
    """Theory must promise it, and no inconclusive cut may hide a loss."""
    whole = next(own for own in cells if own.cell == "iscsi-always-noslog-ext4-nasonly")
    trials, verdicts = (
        whole.trials + unresolved,
        whole.verdicts | {Verdict.INCONCLUSIVE: unresolved},
    )
    figures = replace(whole, guarantee=guarantee, trials=trials, verdicts=verdicts)
    words = sentences.outcome_in_words(one_answer(figures, settings[0]), is_safe=True)
    assert words.startswith("safe: ") == (end == "of cuts)")
    assert words.endswith(end)


def test_nothing_is_called_not_measured_that_was_with_another_disk_or_load(
    said: tuple[Said, ...],
) -> None:
    kinds = {"own": 0, "near": 0, "none": 0}
    for own in (answer for one in said for answer in one.answers):
        answer = own.answer
        kinds["own" if answer.is_own else "none" if answer.figures is None else "near"] += 1
        assert ("not measured" in own.lead) == (not answer.is_own)
        if answer.figures is None:
            assert own.outcome == ""
            assert "theory" in own.lead or "no such trial" in own.lead
    assert min(kinds.values()) > 100


def test_an_advice_names_a_setting_that_loses_nothing(said: tuple[Said, ...]) -> None:
    families = answers.beside([own.setting for own in said])
    seen = set()
    for own in said:
        setting, words = own.setting, own.advice
        seen.add(words.split(":")[0])
        if "set sync=always:" in words:
            other = families[setting.family]["always", setting.slog.name]
            assert not other.is_harmed
            assert not other.may_lose
        if words.startswith("keep "):
            assert not setting.may_lose
            assert setting.is_harmed == ("although by theory" in words)
    assert {"set sync=always", "keep sync=always", "keep sync=standard"} <= seen
    assert "take a SLOG with power-loss protection, or mirror it" in seen


def test_a_lossy_setting_is_not_advised_since_few_cuts_lost_nothing(
    settings: tuple[Setting, ...],
) -> None:
    families = answers.beside(settings)
    lossy = [own for own in settings if own.may_lose and not own.is_harmed and own.cuts]
    assert lossy
    for setting in lossy:
        assert not sentences.advice_in_words(setting, families[setting.family]).startswith("keep ")


def one_answer(figures: CellFigures, setting: Setting) -> Answer:
    return replace(setting.answers[0], figures=figures, differing=())


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("nfs4-rawimage-standard-noslog-ext4-nasonly", "nothing lost in 29 cuts ("),
        (
            "scst_file-standard-noslog-ext4-bothdie",
            "you lose up to 5.5 s of what was confirmed, in ",
        ),
        (
            "scst-standard-noslog-ext4-nasonly",
            "you lose confirmed writes, or they are damaged, in ",
        ),
        (
            "iscsi_guest-defaults-standard-noslog-ext4-away180-nasonly",
            "the disk is dead until someone acts, in ",
        ),
    ],
)
def test_an_outcome_says_the_loss_first(
    cells: tuple[CellFigures, ...], settings: tuple[Setting, ...], name: str, begin: str
) -> None:
    figures = next(own for own in cells if own.cell == name)
    assert sentences.outcome_in_words(one_answer(figures, settings[0]), is_safe=False).startswith(
        begin
    )


def test_a_lost_pool_is_brought_back_by_a_backup_alone(
    cells: tuple[CellFigures, ...], settings: tuple[Setting, ...]
) -> None:
    lost = next(own for own in cells if own.verdicts.get(Verdict.POOL_LOST))
    assert sentences.return_in_words(one_answer(lost, settings[0]), {}).startswith("only a backup")
    dead = next(own for own in cells if own.cell.startswith("iscsi_guest-defaults-standard"))
    seen = {dead.cell: {"log in": 3}}
    assert "attaching the disk anew" in sentences.return_in_words(
        one_answer(dead, settings[0]), seen
    )


def test_a_model_of_a_product_is_called_one(said: tuple[Said, ...]) -> None:
    for own in said:
        assert ("model" in " ".join(own.remarks)) == own.setting.setup.is_model
    models = {own.group for own in setups() if own.is_model}
    assert models == {"oVirt", "XCP-ng", "ESXi"}
    assert models.isdisjoint(own.group for own in setups() if not own.is_model)


def test_a_nas_without_such_a_cell_is_answered_by_another_one_that_says_so(
    said: tuple[Said, ...],
) -> None:
    """SCST's client has no patience to choose: LIO's cell answers for three minutes' absence."""
    own = next(one for one in said if one.setting.key[:3] == ("pve-lun", "truenas", "standard"))
    away = next(one for one in own.answers if one.answer.happening.name == "away")
    assert away.answer.figures is not None
    assert "transport" in away.answer.differing
    assert away.lead.startswith("not measured; ")
    assert "iSCSI" in away.lead


def test_a_choice_without_a_cell_promises_nothing(settings: tuple[Setting, ...]) -> None:
    """A SLOG cannot be gone after an orderly reboot."""
    none = [answer for _, answer in every_answer(settings) if answer.asked is None]
    assert none
    assert {answer.guarantee for answer in none} == {None}
    assert {answer.happening.name for answer in none} >= {"reboot"}


@pytest.mark.parametrize(
    ("matrix", "has_question"), [(Matrix.QUICK, False), (Matrix.DEFAULT, True)]
)
def test_a_run_of_few_cells_has_no_such_question(
    tmp_path: Path, matrix: Matrix, has_question: bool
) -> None:
    run = write_run(tmp_path / "run", intact_records(62, cells=cells_of(matrix), seed=1))
    with Store.open([run]) as store:
        found = own_setup(store, cell_figures(store.tallies()), [])
    assert (found is not None) == has_question


def test_the_page_has_the_sentences_of_the_export(
    store: Store, cells: tuple[CellFigures, ...], settings: tuple[Setting, ...], tmp_path: Path
) -> None:
    own = own_setup(store, cells, [])
    assert own is not None
    data = json.loads(own.data)
    (file,) = EXPORTS["answers"].write(store, tmp_path)
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert len(rows) == sum(len(setting.answers) for setting in settings)
    sentences_of_page = set()
    for run in data["settings"].values():
        for place in (p for on in run.values() for sync in on.values() for p in sync.values()):
            for _worst, advice, _price, _remarks, rows_of_place in place.values():
                for at in rows_of_place:
                    _event, _label, lead, outcome, *_ = data["answers"][at]
                    sentence = data["texts"][lead] + data["texts"][outcome]
                    sentences_of_page.add((sentence, data["texts"][advice]))
    assert {(row["sentence"], row["advice"]) for row in rows} == sentences_of_page


def test_a_forum_gets_ten_lines_at_most_with_versions_and_a_link(
    store: Store, tmp_path: Path
) -> None:
    (file,) = EXPORTS["forum"].write(store, tmp_path)
    head, *parts = file.read_text().strip().split("\n\n")
    assert head == f"<!-- export schema {EXPORT_SCHEMA} -->"
    assert len(parts) > 2 * len(setups())
    for part in parts:
        assert len(part.splitlines()) <= 10
        assert "OpenZFS 2.3.9" in part.splitlines()[0]
        assert "#run=" in part.splitlines()[-1]


def test_a_page_of_a_set_up_has_the_picture_of_its_site(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_PAGE", "https://example.org/torture/published/index.html")
    files = {file.stem: file.read_text() for file in EXPORTS["setups"].write(store, tmp_path)}
    page = files["setup-pve-lun-lvm"]
    assert 'property="og:image" content="https://example.org/torture/report.png"' in page
    assert "https://example.org/torture/published/index.html#run=pve-lun-lvm&amp;on=" in page
    assert page.count("<h2>") >= 6


def test_the_default_begins_with_its_worst_measured_event(settings: tuple[Setting, ...]) -> None:
    first = settings[0]
    assert (first.sync.name, first.slog.name, first.layout.name) == ("standard", "noslog", "single")
    assert first.worst.is_harmed
    assert first.worst.is_own
    assert first.worst.guarantee is Guarantee.LOSES
    assert sentences.event_in_words(first.worst) == "the NAS alone loses power, the VM lives on"
