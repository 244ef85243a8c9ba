"""The cut: its scheduler, the wait for its moment, and a flush that it overtakes.

The rules that a trial asks of its audit, by its cell.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torture.choices.matrix.cells import FILESYSTEM, Cell
from torture.facts.axes.sync import Sync
from torture.facts.recording.disks import ShelfDisk
from torture.facts.recording.events import Kind, Recording
from torture.facts.recording.intent_log import Role
from torture.machines.nas import pool
from torture.machines.nas.settings import LAYOUT
from torture.machines.shelf.control import FreezeOn
from torture.records.record.specs import DRAW
from torture.trials.plan.cut_plan import TARGETS, Aim, CutPlan, Target, draw_cut
from torture.trials.trial import cut
from torture.trials.trial.loads import Loads
from torture.trials.trial.moment import wait_for_moment
from torture.trials.trial.promises.proof import Detour, keeps_flushes
from torture.trials.trial.shared.machines import PowerCut

SEEDS = range(2000)
LOAD_MS = 4000


def _drawn(seed: int, *, load_ms: int = LOAD_MS) -> CutPlan:
    return draw_cut(seed=seed, load_ms=load_ms, has_intent_log=True, draw=DRAW)


@settings(deadline=None)
@given(seed=st.integers(0, 2**64 - 1), load_ms=st.integers(500, 600_000))
def test_the_same_seed_draws_the_same_plan_within_the_load(seed: int, load_ms: int) -> None:
    plan = _drawn(seed, load_ms=load_ms)
    assert plan == _drawn(seed, load_ms=load_ms)
    assert load_ms / 4 <= plan.after_ms <= load_ms
    assert 0 <= plan.delay_ms <= 40
    if plan.aim is Aim.ACKNOWLEDGED:
        assert 1 <= plan.delay_ms <= 2
    else:
        assert plan.aim is Aim.OPERATION or plan.delay_ms == 0
    if plan.aim in TARGETS:
        assert 1 <= plan.count <= TARGETS[plan.aim].count_max
    else:
        assert plan.count == 0


@pytest.mark.parametrize("role", [Role.ZIL, Role.DATA, Role.METADATA, Role.UBERBLOCK])
def test_every_step_of_the_write_path_is_aimed_at(role: Role) -> None:
    targets = {_drawn(seed).aim for seed in SEEDS} & TARGETS.keys()
    assert targets == set(TARGETS)
    events = {target.event for target in TARGETS.values() if target.role is role}
    assert {Kind.WRITE_SUBMIT, Kind.WRITE_COMPLETE} <= events


def test_a_quarter_aims_at_a_write_in_flight_and_few_at_nothing() -> None:
    plans = [_drawn(seed) for seed in SEEDS]
    in_flight = [
        plan
        for plan in plans
        if plan.aim in TARGETS and TARGETS[plan.aim].event is Kind.WRITE_SUBMIT
    ]
    # four standard deviations of 2000 draws at 0.27 and 0.05
    assert len(in_flight) / len(plans) == pytest.approx(0.27, abs=0.041)
    anywhere = sum(plan.aim is Aim.ANYWHERE for plan in plans)
    assert anywhere / len(plans) == pytest.approx(0.05, abs=0.02)


def test_without_an_intent_log_nothing_is_aimed_at_it() -> None:
    plans = [
        draw_cut(seed=seed, load_ms=LOAD_MS, has_intent_log=False, draw=DRAW) for seed in SEEDS
    ]
    roles = {TARGETS[plan.aim].role for plan in plans if plan.aim in TARGETS}
    assert roles == {Role.DATA, Role.METADATA, Role.UBERBLOCK, Role.LABEL, None}


def test_the_nas_is_stirred_where_a_load_alone_would_not_bring_the_event_about() -> None:
    def needed(target: Target) -> tuple[str, ...]:
        if target.role is Role.LABEL:
            return pool.DIRTY_LABELS
        return pool.TRIM if target.event in (Kind.TRIM_SUBMIT, Kind.TRIM_COMPLETE) else ()

    for target in TARGETS.values():
        assert target.stir == needed(target)
        assert target.warm_up == (pool.FREE_LOG if target.is_zil_reused else ())


@pytest.mark.parametrize(
    ("of", "share"),
    [
        ("zil-several", 0.05), ("zil-reused", 0.06), ("label", 0.05), ("trim", 0.06),
        ("uberblock", 0.11), ("txg", 0.09),
    ],
)  # fmt: skip
def test_each_step_gets_its_share_of_the_cuts(of: str, share: float) -> None:
    found = sum(_drawn(seed).aim.startswith(of) for seed in SEEDS) / len(SEEDS)
    # four standard deviations of 2000 draws at 0.11
    assert found == pytest.approx(share, abs=0.028)


def test_the_cuts_cover_the_load_evenly() -> None:
    """The largest gap and the quarters: a scheduler that leaves a moment out would never hit it."""
    moments = sorted(_drawn(seed).after_ms for seed in SEEDS)
    assert max(later - earlier for earlier, later in pairwise(moments)) < LOAD_MS / 100
    for quarter in range(4):
        low = LOAD_MS * (0.25 + quarter * 0.1875)
        high = low + LOAD_MS * 0.1875
        share = sum(low <= moment < high for moment in moments) / len(moments)
        assert share == pytest.approx(0.25, abs=0.04)


def test_the_length_of_the_load_moves_the_moment_and_nothing_else() -> None:
    for seed in SEEDS[:100]:
        short, long = (_drawn(seed, load_ms=load_ms) for load_ms in (1000, 8000))
        assert long.after_ms == pytest.approx(8 * short.after_ms)
        assert (long.aim, long.delay_ms) == (short.aim, short.delay_ms)


def test_a_plan_is_plain_data() -> None:
    plan = _drawn(7)
    assert CutPlan(**json.loads(json.dumps(plan.as_json()))) == plan


# Waiting for the moment of a cut: the NAS's commands, and the event at which the shelf freezes.


@dataclass
class Scene:
    """A NAS and a shelf that only listen, and a trial that they could be of."""

    aim: Aim
    said: list[Any] = field(default_factory=list)
    is_frozen: bool = False

    def run(self, *argv: str, deadline_s: float) -> None:
        self.said.append(("run", argv))

    def start(self, argv: tuple[str, ...]) -> int:
        self.said.append(("start", argv))
        return 7

    def freeze_on(self, trigger: FreezeOn) -> None:
        self.said.append(("freeze", trigger.as_json()))
        self.is_frozen = True

    def wait(self) -> bool:
        plan = CutPlan(after_ms=0.0, aim=self.aim, delay_ms=0.0, count=3)
        shelf: Any = self
        nas: Any = SimpleNamespace(run=self.run, agent=self)
        return wait_for_moment(plan, shelf, Loads(()), nas)


@pytest.mark.parametrize("aim", TARGETS)
def test_the_nas_gets_its_command_first_and_then_the_shelf_awaits_the_target(aim: Aim) -> None:
    scene, target = Scene(aim=aim), TARGETS[aim]
    assert scene.wait()
    *orders, (last, trigger) = scene.said
    expected = [("run", target.warm_up)] if target.warm_up else []
    assert orders == expected + ([("start", target.stir)] if target.stir else [])
    assert last == "freeze"
    assert trigger.pop("zil_uncovered", 0) == target.zil_uncovered
    assert trigger.pop("zil_reused", False) == target.is_zil_reused
    assert trigger.pop("role", None) == target.role
    assert trigger == {"event": target.event, "count": 3}


def test_a_cut_without_an_aim_gives_no_commands() -> None:
    scene = Scene(aim=Aim.ANYWHERE)
    assert scene.wait()
    assert scene.said == []


# A flush that did not reach the intent log's disks: lost by ZFS, or by the chain around it.

LEGS = (ShelfDisk(serial="slog0", size_mib=64), ShelfDisk(serial="slog1", size_mib=64))
BOTH = {"data0": 0, "slog0": 1, "slog1": 1}
NEITHER = {"data0": 2, "slog0": 0, "slog1": 0}
ONE = {"data0": 0, "slog0": 0, "slog1": 1}


@pytest.mark.parametrize(
    ("of_volume", "of_dataset", "of_disks", "lost_by"),
    [
        (1, None, BOTH, "zfs"),
        (0, None, BOTH, "chain"),
        (1, None, ONE, ""),
        (0, None, ONE, ""),
        (1, None, NEITHER, ""),
        (0, None, NEITHER, ""),
        (None, NEITHER, BOTH, "zfs"),
        (None, ONE, BOTH, "chain"),
        (None, NEITHER, ONE, ""),
        (None, ONE, ONE, ""),
        (None, NEITHER, NEITHER, ""),
    ],
)
def test_a_flush_was_lost_by_a_part_that_got_it_if_the_disks_would_have_taken_it(
    of_volume: int | None,
    of_dataset: dict[str, int] | None,
    of_disks: dict[str, int],
    lost_by: str,
) -> None:
    sent = Detour(
        of_client=1,
        is_kept_by_qemu=False,
        zil_commits=0,
        of_volume=of_volume,
        of_dataset=of_dataset,
        of_disks=of_disks,
    )
    assert sent.is_lost_by_zfs(LEGS) is (lost_by == "zfs")
    assert sent.is_lost_by_the_chain(LEGS) is (lost_by == "chain")
    assert not replace(sent, of_client=0).is_lost_by_the_chain(LEGS)
    assert not replace(sent, is_kept_by_qemu=True).is_lost_by_the_chain(LEGS)


@pytest.mark.parametrize(
    ("no_flush", "ro", "keeps"),
    [("true", "false", True), ("true", "true", False), ("false", "false", False)],
)
def test_qemu_says_of_a_disk_that_it_keeps_flushes(no_flush: str, ro: str, keeps: bool) -> None:
    """The answer is QEMU 7.2.22's to `-blockdev driver=raw,cache.no-flush=on`, without other keys."""
    cache = f'{{"no-flush": {no_flush}, "direct": false, "writeback": true}}'
    assert keeps_flushes(f'{{"return": [{{"ro": {ro}, "cache": {cache}}}]}}') is keeps


@pytest.mark.parametrize(
    ("name", "sync", "names_are_volatile"),
    [
        ("smb-standard-noslog-files-bothdie", Sync.STANDARD, True),
        ("smb-always-noslog-files-bothdie", Sync.ALWAYS, False),
        ("nfs4-standard-noslog-files-bothdie", Sync.STANDARD, False),
        ("nfs4-export_async-standard-noslog-files-bothdie", Sync.DISABLED, False),
    ],
)
def test_the_audit_gets_the_promises_of_the_cell(
    name: str, sync: Sync, names_are_volatile: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def audit(_recording: Recording, **words: object) -> None:
        asked.update(words)

    monkeypatch.setattr(cut, "audit", audit)
    monkeypatch.setattr(cut, "completions_before", lambda *_of, **_terms: None)
    cell = Cell.parse(name)
    trial: Any = SimpleNamespace(cell=cell, filesystem=cell[FILESYSTEM])
    machines: Any = SimpleNamespace()
    recording = Recording(folder=tmp_path, disks=(), events=())
    power_cut = PowerCut(recording=recording, seq=0, t_ms=0.0, took_ms=0.0)
    cut._audited(trial, machines, power_cut)
    terms = asked["terms"]
    assert (terms.sync, terms.names_are_volatile) == (sync, names_are_volatile)


def test_a_layout_that_the_audit_saw_change_is_no_setting_that_is_not_in_effect() -> None:
    """The audit's own words say it; without a change the layout was wrong from the start."""
    layout = f"under the load: {LAYOUT}: , not logs"
    sync = "at the end: sync and logbias: disabled latency, not standard latency"
    assert cut._unexplained((layout, sync), ("slog0 left",)) == (sync,)
    assert cut._unexplained((layout, sync), ()) == (layout, sync)
