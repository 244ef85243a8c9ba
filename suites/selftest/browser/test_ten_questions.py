"""Ten questions of a reader, answered by the first screen of the published runs, and by other code."""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from pathlib import Path
from urllib.parse import urlencode

import pytest

from suites.selftest.browser.seen import SCREEN_PX, Open
from torture.files import CHECKOUT
from torture.report.write import build_report

PUBLISHED = CHECKOUT / "results" / "published"
QUESTIONS = 10
SEED = 20261125
ASKED = ("transport", "sync", "slog", "filesystem", "fate", "others")
USUAL = {
    "nfs_export": "export_sync", "slog_class": "nvme", "layout": "single", "disk_sector": "sector512e",
    "special_vdev": "nospecial", "administration": "none", "disks": "volatiledisks",
    "zfs_nocacheflush": "cacheflush", "zil_nocacheflush": "zilcacheflush", "lun_sector": "lun512",
    "discard": "nodiscard", "root": "imageroot", "workload": "ledger",
}  # fmt: skip
"""The defaults, written down here once more: the page must not be compared with itself."""
BAD = {"corrupted", "unrepairable", "unavailable", "pool-lost"}


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


def lines() -> Iterator[dict[str, object]]:
    for file in sorted(PUBLISHED.glob("*/trials.jsonl")):
        yield from map(json.loads, file.read_text().splitlines())


def measured() -> dict[tuple[str, ...], Answer]:
    """The answer of each configuration whose trials ran once, with the defaults everywhere else.

    The disks' sectors may be those of before, which is a choice among the other settings.
    """
    trials: dict[tuple[str, ...], dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for line in lines():
        if line.get("origin") != "live":
            continue  # a speed or a walk, without a cut
        axes = line["axes"]
        assert isinstance(axes, dict)
        # a record from before the axis existed had the disks of that time
        axes.setdefault("disk_sector", "sector512")
        odd = [
            axes[axis] for axis, usual in USUAL.items() if axes.get(axis) not in (None, "", usual)
        ]
        if odd not in ([], ["sector512"]):
            continue
        axes["others"] = "".join(odd) or "usual"
        judgement = line.get("judgement", line)
        assert isinstance(judgement, dict)
        findings = judgement.get("findings", judgement)
        cut = line.get("cut", {})  # a trial that the machinery ended may have none
        assert isinstance(cut, dict)
        verdict = judgement["verdict"]
        if verdict == "inconclusive" or cut.get("confirmed"):
            continue
        harmed = verdict in BAD or findings.get("lost", 0) > 0
        trials[tuple(axes[axis] for axis in ASKED)][str(line["trial"])].append(harmed)
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
        assert seen.bottom_of("#sentence") < SCREEN_PX
        said = seen.page.inner_text("#sentence")
        answer = known.get(place)
        if answer is None:
            assert said.endswith("not measured."), said
        elif answer.harmed:
            assert f"{answer.harmed} of {answer.cuts} cut" in said, said
        else:
            found = re.search(r"lost in (\d+) cuts? \[at most ([\d.]+) %\]", said)
            assert found, said
            assert int(found[1]) == answer.cuts
            # rounded up
            assert answer.bound <= float(found[2]) / 100 < answer.bound + 0.01


@pytest.mark.parametrize(
    ("picks", "others"),
    [
        ({"transport": "smb"}, {"sector512"}),
        ({"transport": "nvme_tcp_single"}, {"sector512"}),
        ({"transport": "nfs_image_dsync"}, {"sector512"}),
        ({"filesystem": "xfs"}, {"sector512", "churn"}),
    ],
    ids=["SMB", "one path of NVMe", "writethrough", "XFS"],
)
def test_a_choice_that_was_measured_with_other_disks_or_loads_names_its_numbers(
    page: Path, open_page: Open, picks: dict[str, str], others: set[str]
) -> None:
    """Of its fates the one that lost most often; counted here from the records."""
    wanted = {"transport": "iscsi", "sync": "standard", "slog": "noslog"} | picks
    fates: dict[str, Counter[bool]] = defaultdict(Counter)
    for line in lines():
        axes, judgement = line["axes"], line.get("judgement", line)
        assert isinstance(axes, dict)
        assert isinstance(judgement, dict)
        findings = judgement.get("findings", judgement)
        axes.setdefault("disk_sector", "sector512")
        odd = {
            axes[axis] for axis, usual in USUAL.items() if axes.get(axis) not in (None, "", usual)
        }
        is_asked = odd == others and all(axes.get(axis, "") == own for axis, own in wanted.items())
        if line.get("origin") == "live" and is_asked and judgement["verdict"] != "inconclusive":
            harmed = judgement["verdict"] in BAD or findings["lost"] > 0
            fates[axes["fate"]][harmed] += 1
    worst = max(fates.values(), key=lambda cuts: cuts[True] / cuts.total())
    seen = open_page(page, state=f"#{urlencode(picks)}")
    said = seen.page.inner_text("#sentence")
    assert "measured with other disks or loads only." in said
    assert f"{worst[True]} of {worst.total()} cuts" in said
    assert "512n disks" in said


def test_products_and_ways_that_were_not_measured_are_named(page: Path, open_page: Open) -> None:
    said = open_page(page).page.inner_text("header")
    assert "TrueNAS, Proxmox VE and other products were not measured" in said
    assert "image over NFS was measured through libnfs only" in said


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
