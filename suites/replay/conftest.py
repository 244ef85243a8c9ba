"""The campaign of walked recordings, and its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from rich import box
from rich.table import Table

from fixtures.campaigns import Running, begun_campaign, print_table, selected
from fixtures.features.walk import GROUP, chosen_walk
from fixtures.options import CELLS, CHOICES, LOAD, RUNNING, TRIALS, VERSIONS, Options, take_options
from torture.choices.matrix.cells import Cell
from torture.features.walk.documents import WalkDocument
from torture.features.walk.draws import draw_walked
from torture.features.walk.walk import why_not_walked
from torture.features.walk.words import certainty_in_words
from torture.records.record.trials import TrialRecord
from torture.records.schedules.fixed import FixedSchedule
from torture.trials.campaign.campaign import Campaign

_TABLE_FILE = "replay.json"
_HOUR_MS = 3_600_000
_STATES = 300
"""Of each recording, where `--states` does not say another number."""

_campaign_key = pytest.StashKey[Campaign]()


def pytest_configure(config: pytest.Config) -> None:
    """A walk ends with its states."""
    take_options(config, CELLS, CHOICES, VERSIONS, TRIALS, LOAD, RUNNING, GROUP)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the cells whose states cannot be walked."""
    for item in items:
        cell = item.callspec.params.get("cell") if isinstance(item, pytest.Function) else None
        if isinstance(cell, Cell) and (why := why_not_walked(cell)):
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def walked(request: pytest.FixtureRequest, options: Options) -> Iterator[Running]:
    """The recordings of all selected cells, made and walked from its first use on."""
    specs = draw_walked(
        selected(request.session, Cell, "cell", needing="walked"),
        recordings=options.trials,
        walk=chosen_walk(request.config, default_states=_STATES),
        run_seed=options.seed,
        load_ms=options.load_ms,
    )
    schedule = FixedSchedule(specs)
    with begun_campaign(request.config, options, schedule, specs=specs) as running:
        request.config.stash[_campaign_key] = running.campaign
        yield running


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of walks, and where it is kept."""
    campaign = terminalreporter.config.stash.get(_campaign_key, None)
    if campaign is None:
        return
    walks = [
        (record, walk)
        for record in campaign.records
        if (walk := record.part(WalkDocument)) is not None
    ]
    kept = {"walks": [{"trial": record.trial} | walk.as_json() for record, walk in walks]}
    file = campaign.run.folder / _TABLE_FILE
    print_table(terminalreporter, "replay", _table(walks), kept=kept, file=file)
    for record, walk in walks:
        for line in certainty_in_words(walk):
            terminalreporter.write_line(f"{record.cell}: {line.strip()}")


def _table(walks: list[tuple[TrialRecord, WalkDocument]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for column in (
        "recording of",
        "distinct states",
        "recovered",
        "proven",
        "amid a recovery",
        "contents (once)",
        "ends (once)",
        "outcomes",
        "checked again",
        "states/h",
        "ms a recovery",
        "MiB left",
        "ms a content",
        "trial",
    ):
        table.add_column(column, overflow="fold")
    for record, walk in walks:
        per_hour = walk.counted / walk.walked_ms * _HOUR_MS if walk.walked_ms else 0
        table.add_row(
            record.cell,
            str(walk.distinct),
            str(walk.recovered),
            str(walk.proven),
            f"{walk.amid_recovery}, depth {walk.depth}",
            f"{walk.contents} ({walk.seen_once})",
            f"{walk.ends} ({walk.ends_seen_once})",
            ", ".join(f"{verdict} {count}" for verdict, count in walk.outcomes.items()),
            _checked_again(walk),
            f"{per_hour:.0f}",
            _recovery_ms(walk),
            _first_and_last(walk.nas_available_mib),
            _each(walk.checking_ms, walk.contents),
            record.verdict,
        )
    return table


def _recovery_ms(walk: WalkDocument) -> str:
    mean = _each(walk.recovering_ms, _recoveries(walk))
    return f"{mean} ({walk.first_ms} first, {walk.last_ms} last)" if walk.first_ms else mean


def _recoveries(walk: WalkDocument) -> int:
    again = walk.repeated + walk.proofs_repeated + walk.compared
    return walk.recovered + again


def _first_and_last(mib: Sequence[int]) -> str:
    return f"{mib[0]} first, {mib[-1]} last" if mib else "-"


def _each(ms: int, count: int) -> str:
    return f"{ms / count:.0f}" if count else "-"


def _checked_again(walk: WalkDocument) -> str:
    """The recoveries that were made once more, by their kind, and the differences."""
    kinds = {
        "twice": (walk.repeated, walk.differing),
        "proven": (walk.proofs_repeated, walk.proofs_differing),
        "fresh": (walk.fresh, walk.fresh_differing),
        "both": (walk.compared, walk.disagreeing),
    }
    again = ", ".join(f"{count} {kind}" for kind, (count, _) in kinds.items() if count)
    differing = sum(different for _, different in kinds.values())
    return f"{again}; {differing} differ" if again else "nothing"
