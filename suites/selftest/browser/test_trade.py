"""Speed beside safety in a browser: on the first screen, for the picked configuration, on a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from suites.selftest.browser.seen import SCREEN_PX, Open
from suites.selftest.unit.report_records import make_records
from suites.selftest.unit.speed.measured_records import measured_rounds
from torture.choices.matrix.cells import cells_of
from torture.facts.axes.sweeps import Matrix
from torture.features.speed.jobs.published import TABLES
from torture.records.record.trials import TrialRecord

TIMES_MS = {
    "iscsi-always-noslog-btrfs-bothdie": 13.0,
    "iscsi-standard-noslog-btrfs-bothdie": 12.0,
    "iscsi-disabled-noslog-btrfs-bothdie": 0.9,
    "iscsi-always-plp-btrfs-bothdie": 1.1,
    "iscsi-standard-plp-btrfs-bothdie": 1.0,
    "nfs4-standard-plp-sata-raidz1-files-bothdie": 4.0,
}


@pytest.fixture(scope="module")
def file(make_page: Callable[[list[TrialRecord]], Path]) -> Path:
    cuts = list(make_records(240, cells=cells_of(Matrix.DEFAULT), seed=1))
    speeds = [
        record
        for name, ms in TIMES_MS.items()
        for record in measured_rounds(name, [ms, ms * 1.1, ms * 0.95, ms])
    ]
    swept = measured_rounds(
        "iscsi-always-plp-sas-raw-bothdie", [1.0] * 4, job="syncwrite-4k-t4", link="gbe10"
    )
    return make_page([*cuts, *speeds, *swept])


def test_the_price_of_the_picked_setting_is_on_the_first_screen(
    file: Path, open_page: Open
) -> None:
    seen = open_page(file)
    shown = seen.page.locator("#prices li:visible")
    assert shown.count() == 3, "always, disabled, a SLOG"
    assert "times" in shown.first.inner_text()
    assert not seen.page.locator("#price").is_visible()
    price = "#own-more [data-part=price]"
    seen.page.select_option("#own select[name=run]", "pve-zfs-over-iscsi")
    assert "times" in seen.page.inner_text(price)
    assert seen.bottom_of(price) < SCREEN_PX


def test_a_picked_setting_shows_its_own_prices_alone(file: Path, open_page: Open) -> None:
    seen = open_page(file)
    seen.page.select_option("#choice select[name=sync]", "always")
    seen.page.select_option("#choice select[name=slog]", "plp")
    own = "iscsi|always|plp|btrfs|usual"
    shown = seen.page.locator("#prices li:visible")
    assert shown.count() == 2, "standard, no SLOG"
    for one in shown.all():
        assert own in (one.get_attribute("data-subject"), one.get_attribute("data-beside"))
    assert "with a SLOG on NVMe" in shown.first.inner_text()


def test_no_other_settings_price_stands_where_none_was_measured(
    file: Path, open_page: Open
) -> None:
    seen = open_page(file)
    seen.page.select_option("#choice select[name=filesystem]", "ext4")
    assert seen.page.locator("#prices li:visible").count() == 0
    assert seen.page.inner_text("#price") == (
        "Speed: not measured for this setting; it was with btrfs."
    )
    seen.page.locator("#price a").click()
    assert seen.page.locator("#prices li:visible").count() == 3


@pytest.mark.parametrize("width", [375, 768, 1400])
def test_it_fits_on_every_screen(file: Path, open_page: Open, width: int) -> None:
    seen = open_page(file, width=width)
    seen.open_all()
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    pictures = seen.page.locator("#trade .picture svg:visible")
    assert pictures.count() == 2, "a front and a sweep"
    assert seen.page.locator("#published .published").count() == len(TABLES)


def test_its_tables_are_read_out(file: Path, open_page: Open) -> None:
    """Each table has a name, each column a heading, and each picture a label."""
    seen = open_page(file)
    seen.open_all()
    for region in seen.page.locator("#trade .scroll").all():
        assert region.get_attribute("aria-label")
        assert region.get_attribute("tabindex") == "0"
    assert seen.page.locator("#trade table th:not([scope])").count() == 0
    assert seen.page.locator("#trade svg:not([aria-label])").count() == 0
