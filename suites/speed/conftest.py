"""The campaign of measurements, and its tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from rich.console import Group

from fixtures.campaigns import Running, begun_campaign, print_table, selected
from fixtures.options import CHOICES, LOAD, RUNNING, VERSIONS, Options, take_options
from fixtures.user_files import brought_by
from suites.speed.narrowing import NarrowingSchedule
from suites.speed.questions import DEFAULT, GOBONNIEGO, QUESTIONS, QUICK, Question, cell_of
from suites.speed.tables import figures_of, path_table_of, paths_of, pictured, table_of
from torture.choices.workloads.gobonniego import NAME
from torture.features.speed.draws import draw_measured
from torture.features.speed.trade.write_path_picture import alone, write_path_picture
from torture.files import write_whole
from torture.machines.host.abilities import Accelerator, choose_accelerator
from torture.records.record.trials import TrialRecord
from torture.trials.campaign.campaign import Campaign

_SETS = {"quick": QUICK, "default": DEFAULT, "full": QUESTIONS}
_PASSES_LEAST, _PASSES_MAX = 2, 4
"""The rows forwards and backwards: a drift of the host hits no row more than others."""
_ROUNDS_OF_A_PASS = 2

_campaign_key = pytest.StashKey[Campaign]()


def pytest_configure(config: pytest.Config) -> None:
    """A measurement has its own cells, and its rounds for trials."""
    take_options(config, CHOICES, VERSIONS, LOAD, RUNNING)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options of this suite."""
    add = parser.getgroup("powercut").addoption
    add(
        "--tables",
        choices=list(_SETS),
        default="default",
        help="suites/speed: quick has the log devices alone, default R1 to R4, full R1 to R7 "
        "(default: %(default)s)",
    )
    add(
        "--slow-motion",
        default=None,
        metavar="N",
        help="suites/speed: modelled disks, link and timers take N times as long, and figures are "
        "multiplied by N. auto: the least in which the emulator has little share. off: none "
        "(default: off with KVM, else auto)",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each published table."""
    if "question" in metafunc.fixturenames:
        questions = _SETS[metafunc.config.getoption("--tables")]
        has_gobonniego = any(one.load == NAME for one in brought_by(metafunc.config))
        lacks_it = pytest.mark.skip(reason="no gobonniego: --gobonniego PATH")
        metafunc.parametrize(
            "question",
            [
                pytest.param(
                    question,
                    id=question.name,
                    marks=lacks_it if question is GOBONNIEGO and not has_gobonniego else (),
                )
                for question in questions
            ],
        )


@pytest.fixture(scope="session")
def measuring(request: pytest.FixtureRequest, options: Options) -> Iterator[Running]:
    """The measurements of all selected questions, one at a time, from its first use on."""
    questions = selected(request.session, Question, "question", needing="measuring")
    chosen = _slow_motion(request.config.getoption("--slow-motion"), options)
    orders = []
    for question in questions:
        for number in range(_PASSES_MAX):
            rows = question.rows if number % 2 == 0 else tuple(reversed(question.rows))
            for row in rows:
                order = structs.replace(row.order, rounds=_ROUNDS_OF_A_PASS)
                if chosen is not None:
                    order = structs.replace(order, slow_motion=chosen)
                orders.append((cell_of(row), order))
    specs = draw_measured(orders, run_seed=options.seed, brought=options.brought)
    alone = replace(options, jobs=1)
    measured = [row for question in questions for row in question.rows]
    schedule = NarrowingSchedule(specs, measured, passes_least=_PASSES_LEAST)
    with begun_campaign(
        request.config, alone, schedule, specs=specs, moves_latest=False
    ) as running:
        request.config.stash[_campaign_key] = running.campaign
        yield running


@pytest.fixture
def measured(question: Question, measuring: Running) -> list[TrialRecord]:
    """The records of a question's rows, in the order of the rows."""
    for row in question.rows:
        measuring.wait_for(cell_of(row), name=question.name)
    return _records_of(question, measuring.campaign)


def _slow_motion(text: str | None, options: Options) -> int | None:
    """The number of the option; None for `auto`. Raises `pytest.UsageError`."""
    if text is None:
        is_emulated = choose_accelerator(options.lab.accelerator).kind is Accelerator.TCG
        text = "auto" if is_emulated else "off"
    if text == "auto":
        return None
    try:
        times = 1 if text == "off" else int(text)
    except ValueError:
        times = 0
    if times < 1:
        raise pytest.UsageError(f"--slow-motion takes auto, off or a number, not {text!r}")
    return times


def _records_of(question: Question, campaign: Campaign) -> list[TrialRecord]:
    cells = {cell_of(row).name for row in question.rows}
    return [record for record in campaign.records if record.cell in cells]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A table for each question, and where it is kept."""
    campaign = terminalreporter.config.stash.get(_campaign_key, None)
    if campaign is None:
        return
    for question in QUESTIONS:
        records = _records_of(question, campaign)
        figures = figures_of(question, records)
        if not figures:
            continue
        kept: dict[str, Any] = {"question": question.name, "published": question.published}
        kept["rows"] = [figure.as_json() for figure in figures]
        file = campaign.run.folder / f"{question.name}.json"
        table = table_of(question, figures)
        paths = paths_of(question, records)
        kept["paths"] = [path.as_json() for path in paths]
        shown = Group(table, path_table_of(paths)) if paths else table
        print_table(terminalreporter, question.name, shown, kept=kept, file=file)
        if (chosen := pictured(paths)) is not None:
            drawn = [path.drawn() for path in chosen if path is not None]
            picture = file.with_suffix(".svg")
            write_whole(picture, alone(write_path_picture(*drawn)).encode())
            terminalreporter.write_line(f"picture: {picture}")
        terminalreporter.write_line(f"published: {question.published}")
