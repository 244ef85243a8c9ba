"""The page's first question in a browser: its sentences are Python's, and its link keeps them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from suites.selftest.browser.seen import Open
from suites.selftest.unit.report_records import make_records
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.records.record.trials import TrialRecord

ASKED = 25


@pytest.fixture(scope="session")
def file(make_page: Callable[[list[TrialRecord]], Path]) -> Path:
    cells = [*cells_of(Matrix.DEFAULT), *cells_of(Matrix.HYPERVISOR)]
    return make_page(list(make_records(400, cells=cells, seed=2)))


def leaves(tree: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], list[Any]]]:
    if isinstance(tree, list):
        return [(path, tree)]
    return [leaf for name, below in tree.items() for leaf in leaves(below, (*path, name))]


def test_each_pick_says_the_sentence_of_its_setting(file: Path, open_page: Open) -> None:
    seen = open_page(file)
    data = json.loads(seen.page.locator("#own-data").text_content() or "")
    picked = random.Random(7).sample(leaves(data["settings"]), ASKED)
    for path, (worst, advice, _price, _remarks, rows) in picked:
        for event in ("", *sorted({data["answers"][row][0] for row in rows})[:2]):
            state = dict(zip(("run", "on", "sync", "slog", "layout"), path, strict=True))
            seen.page.evaluate(
                "to => new Promise(done => { addEventListener('hashchange', () => done(),"
                " { once: true }); location.hash = to; })",
                urlencode(state | {"event": event}),
            )
            asked = [rows[worst]] if not event else rows
            for row in asked:
                own_event, _label, lead, outcome, *_ = data["answers"][row]
                if event in ("", own_event):
                    expected = data["texts"][lead] + data["texts"][outcome]
                    assert expected in seen.page.inner_text("#own-answer")
            said = seen.page.inner_text("#own-more [data-part=advice]")
            assert said.rstrip(".").lower() == data["texts"][advice].lower()


def test_hosts_and_events_are_those_of_the_set_up(file: Path, open_page: Open) -> None:
    seen = open_page(file)
    seen.page.select_option("#own select[name=run]", "pve-local")
    options = seen.page.locator("#own select[name=on] option")
    assert options.all_inner_texts() == ["the same host"]
    events = seen.page.locator("#own select[name=event] option:not([disabled])")
    assert events.all_inner_texts() == ["any: the worst that was measured", "all lose power"]


def test_a_link_shows_the_same_answer_and_back_undoes_a_pick(file: Path, open_page: Open) -> None:
    seen = open_page(file)
    before = seen.page.inner_text("#own-answer")
    seen.page.select_option("#own select[name=run]", "pve-nfs-raw")
    seen.page.select_option("#own select[name=sync]", "always")
    after = seen.page.inner_text("#own-answer")
    assert after != before
    link = seen.page.locator("#own-link").get_attribute("href") or ""
    again = open_page(file, state=link)
    assert again.page.inner_text("#own-answer") == after
    assert again.page.input_value("#choice select[name=sync]") == "always"
    seen.page.go_back()
    seen.page.go_back()
    assert seen.page.inner_text("#own-answer") == before


def test_a_link_to_a_part_of_the_page_keeps_the_pick(file: Path, open_page: Open) -> None:
    seen = open_page(file)
    seen.page.select_option("#own select[name=run]", "pve-nfs-raw")
    before = seen.page.inner_text("#own-answer")
    seen.page.click("nav a[href='#configurations']")
    assert seen.page.input_value("#own select[name=run]") == "pve-nfs-raw"
    assert seen.page.inner_text("#own-answer") == before


def test_the_first_answer_needs_no_script(file: Path, open_page: Open) -> None:
    with_script = open_page(file).page.inner_text("#own-answer")
    without = open_page(file, java_script_enabled=False).page.inner_text("#own-answer")
    assert without.lower() == with_script.removesuffix(" details").lower()


def test_a_link_of_before_leads_to_the_table(file: Path, open_page: Open) -> None:
    state = "#transport=nfs3&sync=standard&slog=noslog&fate=nasonly"
    seen = open_page(file, state=state, width=390)
    top = "one => one.getBoundingClientRect().top"
    assert 0 <= seen.page.locator("#sentence").evaluate(top) < 900
    assert "NFSv3" in seen.page.inner_text("#sentence")
