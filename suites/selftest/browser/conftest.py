"""A headless Chromium of the machine's own, and pages made of records."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from suites.selftest.browser.seen import SCREEN_PX, Open, Seen
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.trials import TrialRecord
from torture.records.record.trials_file import append_record
from torture.report.write import build_report

_QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync",
          "--no-first-run", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage")  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail(
            "there is no chromium\n  next: tools/run --setup-only suites/selftest", pytrace=False
        )
    # Chromium's own sandbox refuses root; its pages are ours
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=[*_QUIET, *sandbox], timeout=60_000
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def window(browser: Browser) -> Iterator[BrowserContext]:
    """The pages' common window: one of its own costs five times as much processor time as a page."""
    with browser.new_context() as window:
        window.new_page()  # stays, as a window without a page closes
        yield window


@pytest.fixture
def open_page(browser: Browser, window: BrowserContext) -> Iterator[Open]:
    """Opens a file, as wide as asked, with a state behind the `#`; afterwards it must have been quiet.

    Whatever else is asked for needs a window of its own.
    """
    seen: list[Seen] = []

    with ExitStack() as closing:

        def opened(file: Path, *, state: str = "", width: int = 1200, **context: Any) -> Seen:
            own = browser.new_context(**context) if context else window
            page = own.new_page()
            closing.callback(own.close if context else page.close)
            page.set_viewport_size({"width": width, "height": SCREEN_PX})
            view = Seen(page)
            seen.append(view)
            page.goto(file.as_uri() + state)
            return view

        yield opened
    for view in seen:
        assert view.complaints == []
        assert {url.split("#")[0] for url in view.requests} == {view.requests[0].split("#")[0]}


@pytest.fixture(scope="session")
def make_page(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[TrialRecord]], Path]:
    """The page of these records."""

    def made(records: list[TrialRecord]) -> Path:
        run = tmp_path_factory.mktemp("run")
        for record in records:
            append_record(run / TRIALS_FILE, record)
        return build_report([run], output=run).page

    return made
