"""The page as its reader meets it: in a browser, clicked, filtered, linked to, on a phone, printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest

from suites.selftest.browser.seen import Open
from suites.selftest.unit.report_records import make_records
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.oracles.verdict.verdicts import Verdict
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
    top = seen.page.inner_text("#answer")
    assert "Theory says safe" in top
    assert "safe, as predicted" not in top, "so few cuts of each show nothing"
    assert "of cuts, at 95 %" in top
    assert seen.page.locator(".picture.wide svg").count() == 3
    assert sorted(seen.cells()) == sorted(cell.name for cell in cells_of(Matrix.DEFAULT))


def test_a_filter_leaves_what_it_says_and_a_link_shows_the_same(
    file: Path, open_page: Open
) -> None:
    seen = open_page(file)
    everything = len(seen.cells())
    seen.page.fill("#filters input", "always")
    seen.page.select_option("#filters select[name=fate]", "nasonly")
    filtered = seen.cells()
    assert 0 < len(filtered) < everything
    assert all("always" in name and name.endswith("nasonly") for name in filtered)
    assert seen.page.inner_text("#filters output") == f"{len(filtered)} of {everything}"
    assert all(
        "nasonly" in name
        for name in seen.page.eval_on_selector_all(
            "#answer li[data-cell], .case",
            "all => all.filter(one => one.checkVisibility()).map(one => one.dataset.cell)",
        )
    )  # fmt: skip
    again = open_page(file, state=seen.page.evaluate("location.hash"))
    assert again.cells() == filtered
    assert again.page.input_value("#filters input") == "always"
    again.page.click("#filters button")
    assert len(again.cells()) == everything


@pytest.mark.parametrize("key", ["number", "loss", "trials", "name"])
def test_a_heading_sorts_both_ways_and_a_link_keeps_the_order(
    file: Path, open_page: Open, key: str
) -> None:
    seen = open_page(file)
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
    assert open_page(file, state=seen.page.evaluate("location.hash")).cells() == order


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
    seen.page.locator(".heat td a").first.click()
    chosen = seen.page.locator("#cells tr.chosen")
    assert chosen.count() == 1
    assert quote(chosen.get_attribute("data-cell") or "") in seen.page.evaluate("location.hash")


@pytest.mark.parametrize("width", [PHONE_PX, 768, 1400])
def test_nothing_hangs_over_the_edge(file: Path, open_page: Open, width: int) -> None:
    seen = open_page(file, width=width)
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
    assert not dark.page.locator("#filters").is_visible()
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
    assert len(seen.cells()) == 3
    seen.page.eval_on_selector_all(".case", "all => all.forEach(one => { one.open = true; })")
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
