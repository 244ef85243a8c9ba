"""The input of a trial: plain data, and the same for the same seed whatever else is selected."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suites.selftest.unit.every_cell import any_cell, usual_cell
from torture.choices.matrix.cells import Cell, cells_of
from torture.choices.workloads.protocol import Brought
from torture.facts.axes.sweeps import Matrix
from torture.records.record.specs import TrialSpec, draw_seed
from torture.records.record.trials import Origin
from torture.trials.plan.draw import draw_trials

CELLS = cells_of(Matrix.FULL)
EXAMPLE = Cell.parse("iscsi-standard-noslog-btrfs-nasonly")

NAME_MAX = 255
"""Of a folder (limits.h(0p))."""


brought = st.builds(Brought, load=st.text(), path=st.text(), sha256=st.text(), text=st.text())


def specs_of(cells: st.SearchStrategy[Cell]) -> st.SearchStrategy[TrialSpec]:
    return st.builds(
        TrialSpec,
        cell=cells,
        index=st.integers(0, 9999),
        seed=st.integers(0, 2**64 - 1),
        load_ms=st.integers(500, 10**6),
        survive_ms=st.integers(0, 10**6),
        brought=st.lists(brought, max_size=2).map(tuple),
    )


specs = specs_of(usual_cell())

repeated = st.builds(
    lambda spec, origin: replace(spec, origin=origin, repeats=spec.trial, replay_of="/there"),
    specs,
    st.sampled_from([Origin.REPLAY, Origin.RERUN]),
)


@settings(deadline=None)
@given(st.one_of(specs, repeated))
def test_a_spec_comes_back_from_json(spec: TrialSpec) -> None:
    data = json.loads(json.dumps(spec.as_json()))
    assert TrialSpec.from_json(data) == spec
    assert TrialSpec.from_json(data | {"load": {"mode": "raw"}, "later": 1}) == spec


@settings(deadline=None)
@given(specs)
def test_a_trial_is_named_by_its_cell_its_index_and_its_seed(spec: TrialSpec) -> None:
    name, _, rest = spec.trial.partition(".")
    index, _, seed = rest.partition("-")
    assert (Cell.parse(name), int(index), int(seed, 16)) == (spec.cell, spec.index, spec.seed)
    assert len(spec.trial) <= NAME_MAX


@settings(deadline=None)
@given(specs_of(any_cell()))
def test_with_any_settings_a_trial_has_a_name_that_a_folder_can_have(spec: TrialSpec) -> None:
    assert TrialSpec.from_json(spec.as_json()) == spec
    assert len(f"{spec.trial}.{Origin.REPLAY}") <= NAME_MAX


@settings(deadline=None)
@given(repeated)
def test_a_repeated_trial_never_has_the_name_of_the_first(spec: TrialSpec) -> None:
    first = replace(spec, origin=Origin.LIVE, repeats="", replay_of="")
    assert spec.trial == f"{first.trial}.{spec.origin}"
    assert len(spec.trial) <= NAME_MAX


@pytest.mark.parametrize("change", [{"origin": "replay"}, {"repeats": "x"}], ids=str)
def test_a_trial_that_repeats_says_so_twice_or_not_at_all(change: dict[str, str]) -> None:
    data = TrialSpec(cell=EXAMPLE, index=0, seed=1, load_ms=4000).as_json()
    with pytest.raises(ValueError, match="cannot repeat"):
        TrialSpec.from_json(data | change)


def test_a_spec_from_before_there_were_origins_is_live() -> None:
    data = TrialSpec(cell=EXAMPLE, index=0, seed=1, load_ms=4000).as_json()
    for name in ("origin", "repeats"):
        del data[name]
    assert TrialSpec.from_json(data | {"replay_of": "/there"}).origin == Origin.LIVE


@pytest.mark.parametrize("missing", ["cell", "index", "seed", "load_ms", "survive_ms"])
def test_half_a_spec_is_refused(missing: str) -> None:
    data: dict[str, Any] = TrialSpec(cell=EXAMPLE, index=0, seed=1, load_ms=4000).as_json()
    del data[missing]
    with pytest.raises(KeyError, match=missing):
        TrialSpec.from_json(data)


def test_a_spec_of_no_cell_is_refused() -> None:
    data = TrialSpec(cell=EXAMPLE, index=0, seed=1, load_ms=4000).as_json()
    with pytest.raises(ValueError, match="'punchcard'"):
        TrialSpec.from_json(data | {"cell": "punchcard-standard-noslog-btrfs-nasonly"})


def test_seeds_are_64_bits_and_all_different() -> None:
    seeds = {
        draw_seed(run_seed=run_seed, cell=cell, index=index)
        for run_seed in range(5)
        for cell in CELLS
        for index in range(20)
    }
    assert len(seeds) == 5 * len(CELLS) * 20
    assert 2**63 < max(seeds) < 2**64


def test_the_seed_of_a_trial_never_changes() -> None:
    """Recorded once: the trials of an old run must be drawn again from its seed."""
    assert draw_seed(run_seed=1, cell=EXAMPLE, index=0, draw=1) == 0xD42B1D57E661E906


def test_the_same_seed_draws_the_same_trials() -> None:
    first, again = (draw_trials(CELLS, trials=3, run_seed=5, load_ms=4000) for _ in range(2))
    other = draw_trials(CELLS, trials=3, run_seed=6, load_ms=4000)
    assert first == again
    assert not {spec.seed for spec in first} & {spec.seed for spec in other}


def test_every_cell_has_its_first_trial_before_any_has_its_second() -> None:
    drawn = draw_trials(CELLS, trials=3, run_seed=1, load_ms=4000)
    assert [spec.index for spec in drawn] == [i for i in range(3) for _ in CELLS]
    assert [spec.cell for spec in drawn] == [*CELLS] * 3


@settings(deadline=None)
@given(
    selected=st.lists(st.sampled_from(CELLS), unique=True),
    trials=st.integers(0, 4),
    run_seed=st.integers(),
)
def test_selecting_fewer_cells_in_any_order_keeps_their_trials(
    selected: list[Cell], trials: int, run_seed: int
) -> None:
    everything = draw_trials(CELLS, trials=4, run_seed=run_seed, load_ms=4000)
    some = draw_trials(selected, trials=trials, run_seed=run_seed, load_ms=4000)
    assert len(some) == len(selected) * trials
    assert set(some) <= set(everything)
    assert len({spec.trial for spec in some}) == len(some)
