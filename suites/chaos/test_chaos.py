"""A campaign on a fleet goes through kills of all that it consists of: no trial is lost or doubled.

`--disturbances N` sets their number, `--seed` draws them and their times. Campaigns follow each other
until all disturbances have hit: one of the quick matrix with `--trials` cuts a cell, then one of trials
without machines. A disturbance takes about 15 s.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fixtures.campaigns import TERMINAL
from fixtures.options import Options
from suites.chaos.disturbances import DISTURBANCES, drawn
from suites.chaos.fleet import Fleet
from suites.chaos.host_disks import MACHINES, HostDisks
from suites.chaos.session import NoOpSession, RealSession, Session
from suites.selftest.runs.processes import commands_in
from torture.deadlines import wait_until_true
from torture.machines.host.scratch import Scratch
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.trials import TrialRecord
from torture.trials.campaign.campaign import TRIES_MAX

_PAUSE_S = (2.0, 14.0)
"""The time between two disturbances; a trial takes some 13 s."""
_CAMPAIGN_S = 1200
_EACH_DISTURBANCE_S = 120
_LEFT_S = 90
"""A host without a sign of its campaign ends its sandbox after 45 s."""
_POLL_S = 0.2
_KINDS = 2
_HITS_EACH = 25
"""Of one campaign, which is then left alone until its end: a campaign that is hit for ever never ends."""
_NO_OP_TRIALS = 30
"""Of each cell: a campaign of some 5 minutes without disturbances."""


@dataclass(kw_only=True)
class Played:
    """The campaigns, and the disturbances that hit them."""

    sessions: list[Session] = field(default_factory=list)
    records: list[tuple[TrialRecord, ...]] = field(default_factory=list)
    """Of each session, in the end."""
    hits: Counter[str] = field(default_factory=Counter)
    trials_hit: set[str] = field(default_factory=set)
    """Those whose machines a disturbance may have hit."""
    left: dict[int, str] = field(default_factory=dict)
    """The processes that still ran in a sandbox when all had ended."""
    scratch_left: frozenset[Path] = frozenset()

    @property
    def inconclusive(self) -> list[TrialRecord]:
        """All of the campaigns' records that have no verdict."""
        return [
            record
            for records in self.records
            for record in records
            if record.verdict is Verdict.INCONCLUSIVE
        ]


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest,
    options: Options,
    tmp_path_factory: pytest.TempPathFactory,
) -> Played:
    """Play it once; each test looks at one promise."""
    wanted: int = request.config.getoption("--disturbances")
    played = Played()
    with HostDisks(tmp_path_factory.mktemp("chaos") / "results") as disks:
        with Fleet(disks) as fleet:
            _play(fleet, played, options=options, wanted=wanted)
        played.records = [session.records for session in played.sessions]
        wait_until_true(lambda: not commands_in(fleet.sandboxes), deadline_s=_LEFT_S, poll_s=1)
        played.left = commands_in(fleet.sandboxes)
        scratch = Scratch(disks.seen(MACHINES))
        scratch.remove_abandoned()  # what every start does first
        played.scratch_left = frozenset(path for path in scratch.home.iterdir() if path.is_dir())
    trials = [record for records in played.records for record in records]
    dead = sum(record.dead_tries for record in trials)
    _show(f"{len(trials)} trials, {dead} dead tries, {len(played.inconclusive)} inconclusive")
    _show(", ".join(f"{name} {count}" for name, count in sorted(played.hits.items())))
    return played


def _show(line: str) -> None:
    print(line, file=TERMINAL, flush=True)


def _session(disks: HostDisks, number: int, options: Options) -> Session:
    name, seed = str(number), options.seed + number
    if number % 2:
        return NoOpSession(disks, name, trials=_NO_OP_TRIALS, seed=seed)
    return RealSession(disks, name, trials=options.trials, seed=seed, load_ms=options.load_ms)


def _play(fleet: Fleet, played: Played, *, options: Options, wanted: int) -> None:
    """Disturb one campaign after the other; each is then left alone until its end."""
    draw = random.Random(options.seed)
    end = time.monotonic() + _CAMPAIGN_S + wanted * _EACH_DISTURBANCE_S
    while len(played.sessions) < _KINDS or played.hits.total() < wanted:
        session = _session(fleet.disks, len(played.sessions), options)
        played.sessions.append(session)
        until = min(wanted, played.hits.total() + _HITS_EACH)
        next_s = time.monotonic() + draw.uniform(*_PAUSE_S)
        try:
            while not session.is_complete or session.is_running:
                assert time.monotonic() < end, f"the chaos did not end\n  log: {session.log}"
                if not session.is_running:
                    assert session.begun <= wanted + 1, f"it ends at once\n  log: {session.log}"
                    session.begin(fleet.cluster.address)
                    _show(f"campaign {len(played.sessions)} begins: {session.in_words()}")
                elif time.monotonic() > next_s and played.hits.total() < until:
                    _disturb(fleet, session, played, draw)
                    _show(f"{played.hits.total()}/{wanted}: {session.in_words()}")
                    next_s = time.monotonic() + draw.uniform(*_PAUSE_S)
                time.sleep(_POLL_S)
        finally:
            session.kill()


def _disturb(fleet: Fleet, session: Session, played: Played, draw: random.Random) -> None:
    """Draw kinds until one has something to disturb; a campaign can always be killed."""
    at_work, ended = fleet.trials_at_work(), session.ended
    while not (kind := drawn(draw)).hit(fleet, session, draw):
        pass
    played.hits[kind.name] += 1
    _show(kind.name)
    if kind.hits_machines:
        played.trials_hit |= at_work | fleet.trials_at_work()
    if kind.hits_each_trial:
        played.trials_hit |= session.ended - ended


def test_no_record_is_missing_or_doubled(played: Played) -> None:
    for session, records in zip(played.sessions, played.records, strict=True):
        assert sorted(record.trial for record in records) == session.drawn


def test_no_trial_is_inconclusive_but_one_whose_machines_or_workers_were_hit(
    played: Played,
) -> None:
    blamed = {
        record.trial: record.error
        for record in played.inconclusive
        if record.trial not in played.trials_hit and record.dead_tries < TRIES_MAX
    }
    assert not blamed
    assert all(record.error for record in played.inconclusive), "an error says why"


def test_a_host_without_images_is_out_with_the_reason(played: Played) -> None:
    said = "".join(session.log.read_text() for session in played.sessions)
    assert "is out after 3 failures in a row" in said
    assert "image with --zfs" in said


def test_nothing_is_left_on_the_host(played: Played) -> None:
    assert played.left == {}
    assert played.scratch_left == frozenset()


def test_each_kind_of_disturbance_was_there(played: Played, request: pytest.FixtureRequest) -> None:
    """Else the others prove less than they say."""
    if request.config.getoption("--disturbances") < 3 * len(DISTURBANCES):
        pytest.skip("so few disturbances need not have one of each kind")
    assert played.hits.keys() == {kind.name for kind in DISTURBANCES}
