"""The page as its reader meets it: in a browser, clicked, filtered, linked to, on a phone, printed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest

from suites.selftest.browser.seen import SCREEN_PX, Open
from suites.selftest.unit.report_records import make_records
from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import TrialRecord

CELLS = sorted(cell.name for cell in cells_of(Matrix.DEFAULT))[:12]
PHONE_PX = 375


@pytest.fixture(scope="session")
def file(make_page: Callable[[list[TrialRecord]], Path]) -> Path:
    return make_page(list(make_records(240, cells=cells_of(Matrix.DEFAULT), seed=1)))


def test_it_is_whole_without_a_network_and_says_the_answer_first(
    file: Path, open_page: Open
) -> None:
    seen = open_page(file)
    assert re.match(r"Over \S.* cuts? ", seen.page.inner_text("#sentence"))
    assert seen.bottom_of("#sentence") < 400
    assert seen.page.locator("#grid .mark").count() == len(cells_of(Matrix.DEFAULT))
    assert seen.page.evaluate("document.documentElement.scrollHeight") <= 6 * SCREEN_PX
    seen.open_all()
    assert seen.page.locator(".picture.wide svg").count() == 3
    assert sorted(seen.cells()) == sorted(cell.name for cell in cells_of(Matrix.DEFAULT))


@pytest.mark.parametrize("name", [cell.name for cell in cells_of(Matrix.DEFAULT)][::18])
def test_picking_a_configuration_answers_for_it_and_back_undoes_it(
    file: Path, open_page: Open, name: str
) -> None:
    cell = Cell.parse(name)
    seen = open_page(file)
    before = seen.page.inner_text("#sentence")
    export = cell.axes["nfs_export"]
    transport = cell.axes["transport"] + ("-export_async" if export == "export_async" else "")
    picks = {"transport": transport} | {
        axis: cell.axes[axis] for axis in ("sync", "slog", "filesystem", "fate")
    }
    for picker, choice in picks.items():
        if choice != "files":
            seen.page.select_option(f"#choice select[name={picker}]", choice)
    own = seen.page.locator(".mark.own")
    assert own.get_attribute("data-mark") == name
    assert own.is_visible()
    answer = own.get_attribute("data-answer") or "?"
    assert answer in seen.page.inner_text("#sentence")
    again = open_page(file, state=seen.page.evaluate("location.hash"))
    assert again.page.inner_text("#sentence") == seen.page.inner_text("#sentence")
    for _ in range(len(picks) - (picks["filesystem"] == "files")):
        seen.page.go_back()
    assert seen.page.inner_text("#sentence") == before


def test_a_configuration_that_nothing_measured_is_called_so(file: Path, open_page: Open) -> None:
    seen = open_page(file)
    seen.page.select_option("#choice select[name=transport]", "nfs3")
    seen.page.select_option("#choice select[name=slog]", "lying")
    assert "NFSv3" in seen.page.inner_text("#sentence")
    assert seen.page.inner_text("#sentence b") == "not measured."
    assert seen.page.locator(".mark.own").count() == 0


def test_the_pickers_are_reached_by_keys_within_ten_steps(file: Path, open_page: Open) -> None:
    seen = open_page(file)
    reached = []
    for _ in range(10):
        seen.page.keyboard.press("Tab")
        reached.append(seen.page.evaluate("document.activeElement.name || ''"))
    assert {"transport", "sync", "slog", "filesystem", "fate"} <= set(reached)


def test_a_filter_leaves_the_rows_it_names_and_a_link_shows_the_same(
    file: Path, open_page: Open
) -> None:
    seen = open_page(file)
    seen.open_all()
    everything = len(seen.cells())
    seen.page.fill("#filters input", "always")
    seen.page.select_option("#choice select[name=fate]", "nasonly")
    filtered = seen.cells()
    assert 0 < len(filtered) < everything
    assert all("always" in name and name.endswith("nasonly") for name in filtered)
    assert seen.page.inner_text("#filters output") == f"{len(filtered)} of {everything}"
    again = open_page(file, state=seen.page.evaluate("location.hash"))
    again.open_all()
    assert again.cells() == filtered
    assert again.page.input_value("#filters input") == "always"
    again.page.click("#filters button")
    assert len(again.cells()) == everything


@pytest.mark.parametrize("key", ["loss", "name"])
def test_a_heading_sorts_both_ways_and_a_link_keeps_the_order(
    file: Path, open_page: Open, key: str
) -> None:
    seen = open_page(file)
    seen.open_all()
    place = seen.page.evaluate(
        f"""[...document.querySelectorAll('#cells th')].findIndex(
            one => one.querySelector('button').dataset.key === '{key}')"""
    )

    def values() -> list[str]:
        found: list[str] = seen.page.eval_on_selector_all(
            "#cells tbody tr", f"rows => rows.map(row => row.cells[{place}].dataset.value)"
        )
        return found

    heading = seen.page.locator(f"#cells th button[data-key={key}]")
    number = heading.get_attribute("data-kind") == "number"
    heading.click()
    assert (
        [float(value) for value in values()] == sorted(float(value) for value in values())
        if number
        else True
    )
    first = values()
    heading.click()
    assert values() != first or len(set(first)) == 1
    assert seen.page.locator("#cells th[aria-sort=descending]").count() == 1
    order = seen.cells()
    again = open_page(file, state=seen.page.evaluate("location.hash"))
    again.open_all()
    assert again.cells() == order


def test_a_link_to_a_case_opens_it_and_one_to_a_cell_finds_it(file: Path, open_page: Open) -> None:
    seen = open_page(file)
    trial = seen.page.locator(".case").nth(2).get_attribute("data-trial")
    assert trial
    case = open_page(file, state=f"#trial={quote(trial)}")
    opened = case.page.locator(".case[open]")
    assert opened.get_attribute("data-trial") == trial
    assert "tools/replay" in opened.inner_text()
    assert (
        case.page.evaluate("document.querySelector('.case[open]').getBoundingClientRect().top")
        < 900
    )
    seen.page.locator("#sentence a").click()
    chosen = seen.page.locator("#cells tr.chosen")
    assert chosen.count() == 1
    assert chosen.is_visible()
    assert quote(chosen.get_attribute("data-cell") or "") in seen.page.evaluate("location.hash")


@pytest.mark.parametrize("width", [PHONE_PX, 768, 1400])
def test_nothing_hangs_over_the_edge(file: Path, open_page: Open, width: int) -> None:
    seen = open_page(file, width=width)
    seen.open_all()
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    wide = seen.page.locator(".picture.wide").first.is_visible()
    assert wide is (width > 640)


def test_it_is_dark_where_people_want_it_dark_and_light_on_paper(
    file: Path, open_page: Open
) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light = open_page(file, color_scheme="light").page.evaluate(colour)
    dark = open_page(file, color_scheme="dark")
    assert dark.page.evaluate(colour) != light
    dark.page.emulate_media(media="print")
    assert dark.page.evaluate(colour) == "rgb(255, 255, 255)"
    assert not dark.page.locator("#choice").is_visible()
    assert len(dark.page.pdf()) > 20_000


HOSTILE = "<script>window.hacked=1</script><img src=x onerror='window.hacked=2'>\"'&{{7*7}}</svg>"


def hostile(record: TrialRecord, number: int) -> TrialRecord:
    """The record with hostile text in every string there is, keys too."""

    def spoilt(value: object) -> object:
        match value:
            case str():
                return HOSTILE
            case dict():
                return {f"{key}{HOSTILE}": spoilt(part) for key, part in value.items()}
            case list() | tuple():
                return [spoilt(part) for part in value]
        return value

    data = json.loads(json.dumps(record.as_json()))
    kept = {"judgement", "origin", "schema", "seed", "timings", "cut"}
    spoilt_data = {key: part if key in kept else spoilt(part) for key, part in data.items()}
    spoilt_data["cut"] = {"disks": spoilt(data.get("cut", {}).get("disks", {}))}
    words = dict.fromkeys(("fsck", "pool_summary", "administration"), HOSTILE)
    reasons = [HOSTILE for _ in data["judgement"].get("reasons", [])]
    spoilt_data["judgement"] = data["judgement"] | words | {"reasons": reasons}
    spoilt_data["timings"] = {HOSTILE: 5, "load": 4000}
    spoilt_data |= {"trial": f"{HOSTILE}{number}", "cell": f"{HOSTILE}{number % 3}"}
    return TrialRecord.from_json(spoilt_data)


def test_hostile_text_is_text(
    make_page: Callable[[list[TrialRecord]], Path], open_page: Open
) -> None:
    records = make_records(60, cells=cells_of(Matrix.QUICK), seed=2)
    page = make_page([hostile(record, number) for number, record in enumerate(records)])
    seen = open_page(page)
    assert seen.page.evaluate("window.hacked") is None
    assert seen.page.locator("img").count() == 0
    assert seen.page.locator("script").count() == 1
    seen.open_all()
    assert len(seen.cells()) == 3
    case = seen.page.locator(".case").first.inner_text()
    assert case.count("<script>window.hacked=1</script>") > 3
    seen.page.fill("#filters input", "<script>")
    assert len(seen.cells()) == 3
    link = seen.page.locator(".case a[href^='#trial=']").first
    link.click()
    assert seen.page.locator(".case.chosen").count() == 1


class Counting(BaseHTTPRequestHandler):
    """A server that only counts who asks."""

    asked = 0

    def do_GET(self) -> None:
        Counting.asked += 1
        self.send_error(404)


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Counting) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join(timeout=10)


def test_a_policy_holds_even_if_text_got_through(
    file: Path, open_page: Open, tmp_path: Path, address: str
) -> None:
    """The second wall: a script that is not the page's own does not run, and nothing is fetched."""
    injected = f"<header><script>window.hacked=1</script><img src='{address}/x' alt=''>"
    broken = tmp_path / "broken.html"
    broken.write_text(file.read_text().replace("<header>", injected, 1))
    seen = open_page(broken)
    assert seen.page.evaluate("window.hacked") is None
    assert Counting.asked == 0
    assert len(seen.complaints) == 2
    assert all("Content Security Policy" in complaint for complaint in seen.complaints)
    # the browser tells of a request that it refuses, too
    seen.complaints.clear()
    seen.requests.remove(f"{address}/x")


def test_every_verdict_has_its_colour(file: Path) -> None:
    text = file.read_text()
    assert all(f"--{verdict}:" in text for verdict in Verdict)
