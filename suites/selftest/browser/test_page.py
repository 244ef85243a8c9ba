"""The page as its reader meets it in a browser, and ten questions that its first screen answers."""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from math import comb
from pathlib import Path
from threading import Thread
from urllib.parse import quote, urlencode

import pytest

from suites.selftest.browser.seen import SCREEN_PX, Open
from suites.selftest.unit.report_records import make_records
from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.files import CHECKOUT
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import TrialRecord
from torture.report.write import build_report

PHONE_PX = 375


@pytest.fixture(scope="session")
def file(make_page: Callable[[list[TrialRecord]], Path]) -> Path:
    return make_page(list(make_records(240, cells=cells_of(Matrix.DEFAULT), seed=1)))


def test_it_is_whole_without_a_network_and_says_the_answer_first(
    file: Path, open_page: Open
) -> None:
    seen = open_page(file)
    said = seen.page.inner_text("#own-answer")
    assert re.match(r"(The NAS|All|I) .*: .* in \d+ (of \d+ )?cuts", said), said
    assert seen.bottom_of("#own-answer") < 400
    assert re.match(r"Over \S.* cuts? ", seen.page.inner_text("#sentence"))
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
    assert {"run", "on", "sync", "slog", "layout", "event"} <= set(reached)


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


# Ten questions of a reader, answered by the first screen of the published runs, and by other code.

PUBLISHED = CHECKOUT / "results" / "published"
QUESTIONS = 10
SEED = 20261125
ASKED = ("transport", "sync", "slog", "filesystem", "fate", "others")
USUAL = {
    "nfs_export": "export_sync", "slog_class": "nvme", "layout": "single", "disk_sector": "sector512e",
    "special_vdev": "nospecial", "administration": "none", "disks": "volatiledisks",
    "zfs_nocacheflush": "cacheflush", "zil_nocacheflush": "zilcacheflush", "lun_sector": "lun512",
    "discard": "nodiscard", "root": "imageroot", "workload": "ledger", "event": "power",
    "away": "seconds", "patience": "forever", "early": "inorder",
}  # fmt: skip
"""The defaults, written down here once more: the page must not be compared with itself."""
BAD = {"corrupted", "unrepairable", "unavailable", "pool-lost", "split-brain"}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The cuts of a configuration that count, and those that lost or damaged something."""

    cuts: int
    harmed: int

    @property
    def bound(self) -> float:
        """The upper end of the 95 % interval (Clopper-Pearson), by bisection of the binomial sum."""
        low, high = self.harmed / self.cuts, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            below = sum(
                comb(self.cuts, k) * middle**k * (1 - middle) ** (self.cuts - k)
                for k in range(self.harmed + 1)
            )
            low, high = (middle, high) if below > 0.025 else (low, middle)
        return high


@dataclass(frozen=True, kw_only=True)
class Cut:
    """One that counts; `odd` are its choices that are no defaults."""

    axes: dict[str, str]
    odd: list[str]
    trial: str
    is_harmed: bool


def cuts() -> Iterator[Cut]:
    files = sorted(PUBLISHED.glob("*/trials.jsonl"))
    for line in (json.loads(line) for file in files for line in file.read_text().splitlines()):
        if line.get("origin") != "live":
            continue  # a speed or a walk, without a cut
        axes, judgement = line["axes"], line.get("judgement", line)
        # a record from before the axis existed had the disks of that time
        axes.setdefault("disk_sector", "sector512")
        odd = [
            axes[axis] for axis, usual in USUAL.items() if axes.get(axis) not in (None, "", usual)
        ]
        verdict, findings = judgement["verdict"], judgement.get("findings", judgement)
        # a trial that the machinery ended may have no cut
        if verdict != "inconclusive" and not line.get("cut", {}).get("confirmed"):
            is_harmed = verdict in BAD or findings.get("lost", 0) > 0
            yield Cut(axes=axes, odd=odd, trial=line["trial"], is_harmed=is_harmed)


def measured() -> dict[tuple[str, ...], Answer]:
    """The answer of each configuration whose trials ran once, with the defaults everywhere else.

    The disks' sectors may be those of before, which is a choice among the other settings.
    """
    trials: dict[tuple[str, ...], dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for cut in cuts():
        if cut.odd in ([], ["sector512"]):
            choices = cut.axes | {"others": "".join(cut.odd) or "usual"}
            trials[tuple(choices[axis] for axis in ASKED)][cut.trial].append(cut.is_harmed)
    return {
        place: Answer(cuts=len(own), harmed=sum(harmed for [harmed] in own.values()))
        for place, own in trials.items()
        if all(len(tries) == 1 for tries in own.values())
    }


def questions(known: dict[tuple[str, ...], Answer]) -> list[tuple[str, ...]]:
    """Safe, losing and unmeasured configurations, drawn by the seed."""
    drawn = random.Random(SEED)
    losing = sorted(place for place, answer in known.items() if answer.harmed)
    clean = sorted(place for place, answer in known.items() if not answer.harmed)
    disks = [place for place in (*losing, *clean) if place[3] != "files"]
    unmeasured = sorted({(*place[:2], "lying", *place[3:]) for place in disks} - known.keys())
    picked = [
        *drawn.sample(losing, min(3, len(losing))),
        *drawn.sample(unmeasured, 2),
    ]
    return picked + drawn.sample(clean, QUESTIONS - len(picked))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_report([PUBLISHED], output=tmp_path_factory.mktemp("published")).page


def test_the_first_screen_answers_ten_questions_as_the_records_do(
    page: Path, open_page: Open
) -> None:
    known = measured()
    asked = questions(known)
    assert len(asked) == QUESTIONS
    seen = open_page(page)
    for place in asked:
        choices = dict(zip(ASKED, place, strict=True))
        # files have one filesystem, which is not picked
        picks = {axis: choice for axis, choice in choices.items() if choice != "files"}
        seen.page.evaluate(
            "to => new Promise(done => { addEventListener('hashchange', () => done(), { once: true });"
            " location.hash = to; })",
            urlencode(picks),
        )
        assert seen.page.locator("#sentence").evaluate(
            f"one => one.getBoundingClientRect().bottom < {SCREEN_PX}"
        )
        said = seen.page.inner_text("#sentence")
        answer = known.get(place)
        if answer is None:
            assert said.endswith("not measured."), said
        elif answer.harmed:
            assert f"{answer.harmed} of {answer.cuts} cut" in said, said
        else:
            found = re.search(r"lost in (\d+) cuts? \[at most ([\d.]+) %;", said)
            assert found, said
            assert int(found[1]) == answer.cuts
            # rounded up
            assert answer.bound <= float(found[2]) / 100 < answer.bound + 0.01


@pytest.mark.parametrize(
    ("picks", "others"),
    [
        ({"transport": "smb"}, {"sector512"}),
        ({"transport": "nvme_tcp_single"}, {"sector512"}),
        ({"filesystem": "xfs"}, {"sector512", "churn"}),
    ],
    ids=["SMB", "one path of NVMe", "XFS"],
)
def test_a_choice_that_was_measured_with_other_disks_or_loads_names_its_numbers(
    page: Path, open_page: Open, picks: dict[str, str], others: set[str]
) -> None:
    """Of its fates the one that lost most often; counted here from the records."""
    wanted = {"transport": "iscsi", "sync": "standard", "slog": "noslog"} | picks
    fates: dict[str, Counter[bool]] = defaultdict(Counter)
    for cut in cuts():
        if set(cut.odd) == others and wanted.items() <= cut.axes.items():
            fates[cut.axes["fate"]][cut.is_harmed] += 1
    worst = max(fates.values(), key=lambda counts: counts[True] / counts.total())
    seen = open_page(page, state=f"#{urlencode(picks)}")
    said = seen.page.inner_text("#sentence")
    assert "measured with other disks or loads only." in said
    assert f"{worst[True]} of {worst.total()} cuts" in said
    assert "512n disks" in said


def test_products_and_ways_that_were_not_measured_are_named(page: Path, open_page: Open) -> None:
    said = open_page(page).page.inner_text("header")
    assert "TrueNAS, Proxmox VE and other products were not measured" in said
    assert "libnfs only" not in said, "an image on a mount was measured, too"
    assert "the hypervisor's QEMU 10.0.13" in said


def test_the_first_answer_is_the_worst_fate(page: Path, open_page: Open) -> None:
    """And the other fate stands below it."""
    known = measured()
    place = ("iscsi", "standard", "noslog", "btrfs")
    fates = {fate: known[*place, fate, "usual"] for fate in ("bothdie", "nasonly")}
    worst = max(fates.values(), key=lambda answer: answer.harmed / answer.cuts)
    seen = open_page(page)
    assert f"{worst.harmed} of {worst.cuts} cuts" in seen.page.inner_text("#sentence")
    assert f"lost in {fates['bothdie'].cuts} cuts" in seen.page.inner_text("#beside")


def test_a_field_is_empty_only_where_nothing_was_measured(page: Path, open_page: Open) -> None:
    """With any filesystem: one that was measured nowhere shows the others, marked as near."""
    seen = open_page(page)
    count = (
        "() => [...document.querySelectorAll('td[data-field]')].filter(field => field.children.length"
        " && ![...field.children].some(mark => mark.checkVisibility())).length"
    )
    for filesystem in ("btrfs", "xfs", "raw"):
        seen.page.select_option("#choice select[name=filesystem]", filesystem)
        assert seen.page.evaluate(count) == 0
    assert seen.page.locator(".mark.near:visible").count() > 0
