"""The input of a trial: plain data, and the same for the same seed whatever else is selected.

A manifest says what there was, and the cell what there has to be.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from suites.selftest.unit.every_cell import any_cell, usual_cell
from suites.selftest.unit.good_evidence import (
    EVERYTHING,
    MIXED,
    OLD,
    evidence,
    otherwise,
    tool,
    without,
)
from torture.choices.matrix.cells import Cell, cells_of
from torture.choices.workloads.protocol import Brought
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.folder import LEDGER, PROOF, TOOLS, Evidence, Step
from torture.facts.evidence.manifest import (
    MANIFEST,
    MANIFEST_DUE,
    ManifestFinding,
    check_manifest,
    write_manifest,
)
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.specs import TrialSpec, draw_seed
from torture.records.record.trials import Origin
from torture.records.scoring.judge import judge, missing_evidence
from torture.trials.plan.draw import draw_trials

CELLS = cells_of(Matrix.FULL)
EXAMPLE = Cell.parse("iscsi-standard-noslog-btrfs-nasonly")
SPEC: dict[str, Any] = TrialSpec(cell=EXAMPLE, index=0, seed=1, load_ms=4000).as_json()

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
    with pytest.raises(ValueError, match="cannot repeat"):
        TrialSpec.from_json(SPEC | change)


def test_a_spec_from_before_there_were_origins_is_live() -> None:
    data = {name: value for name, value in SPEC.items() if name not in ("origin", "repeats")}
    assert TrialSpec.from_json(data | {"replay_of": "/there"}).origin == Origin.LIVE


@pytest.mark.parametrize("missing", ["cell", "index", "seed", "load_ms", "survive_ms"])
def test_half_a_spec_is_refused(missing: str) -> None:
    data = {name: value for name, value in SPEC.items() if name != missing}
    with pytest.raises(KeyError, match=missing):
        TrialSpec.from_json(data)


def test_a_spec_of_no_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="'punchcard'"):
        TrialSpec.from_json(SPEC | {"cell": "punchcard-standard-noslog-btrfs-nasonly"})


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


DUE = {MANIFEST_DUE: True}
_IN_THE_END = (
    Step.POOL_SYNC, Step.POOL_BLOCKS, Step.NAS_DMESG, Step.CHECK_DMESG,
    Step.FS_FIRST_CHECK, Step.CLIENT_DMESG, Step.CLIENT_UMOUNT,
)  # fmt: skip


def whole(**changes: Any) -> Evidence:
    """Evidence that has all that a cell of btrfs, with a client that lives, has to have."""
    cases = {Step.POOL_BLOCKS: "zdb/sound", Step.FS_FIRST_CHECK: "btrfs/clean"}
    outputs = (tool(s, cases.get(s, "kernel/log-replayed"), exit_code=0) for s in _IN_THE_END)
    manifest = ManifestFinding(is_due=True)
    vouched: dict[str, Any] = {"documents": frozenset({PROOF, LEDGER}), "manifest": manifest}
    return evidence(*outputs, **(vouched | changes))


def missing(made: Evidence) -> tuple[str, ...]:
    """The missing evidence of a cut of its cell."""
    return missing_evidence(made, Cell.parse(made.spec["cell"]), is_replay=False)


def test_evidence_that_has_all_lacks_nothing() -> None:
    assert missing(whole()) == ()
    assert judge(whole()).verdict is Verdict.INTACT


@pytest.mark.parametrize("step", _IN_THE_END)
def test_a_tool_that_was_not_run_vouches_for_nothing(step: Step) -> None:
    lacking = without(whole(), step)
    assert any(str(step) in said for said in missing(lacking))
    assert judge(lacking).verdict is Verdict.INCONCLUSIVE
    old = replace(lacking, manifest=ManifestFinding())
    assert missing(old) == (), "older versions are judged as before"


@pytest.mark.parametrize("step", [Step.NAS_DMESG, Step.CHECK_DMESG, Step.CLIENT_DMESG])
@pytest.mark.parametrize("code", [None, 1])
def test_a_kernel_log_that_was_not_read_to_its_end_vouches_for_nothing(
    step: Step, code: int | None
) -> None:
    lacking = otherwise(whole(), step, exit_code=code)
    assert any(" failed (exit" in said for said in missing(lacking))
    assert judge(lacking).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("name", [PROOF, LEDGER])
def test_a_document_that_is_not_there_is_missing(name: str) -> None:
    lacking = whole(documents=frozenset({PROOF, LEDGER} - {name}))
    assert f"{name} is missing" in missing(lacking)


def test_a_loss_stays_one_when_anything_is_missing() -> None:
    lost = replace(whole(), readbacks=evidence(found=MIXED).readbacks)
    judgement = judge(without(lost, Step.NAS_DMESG))
    assert judgement.verdict is Verdict.CORRUPTED
    assert any("nas-dmesg" in reason for reason in judgement.reasons)


def test_the_verdict_in_the_manifest_is_the_least() -> None:
    written = ManifestFinding(is_due=True, complaints=("cut.json is missing",), verdict="pool-lost")
    assert judge(whole(manifest=written)).verdict is Verdict.POOL_LOST
    intact = replace(written, verdict="intact")
    assert judge(whole(manifest=intact)).verdict is Verdict.INCONCLUSIVE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spec.json").write_text(json.dumps(DUE))
    (tmp_path / "cut.json").write_text("{}")
    (tmp_path / TOOLS).write_text('{"step": "pool-import"}\n{"step": "nas-dmesg"}\n')
    write_manifest(tmp_path, verdict="intact")
    return tmp_path


def test_a_folder_as_it_was_written_has_no_complaint(folder: Path) -> None:
    assert check_manifest(folder, DUE) == ManifestFinding(is_due=True, verdict="intact")
    assert check_manifest(folder, {}) == ManifestFinding(), "none is due"


def test_every_change_is_reported(folder: Path) -> None:
    (folder / "cut.json").unlink()
    (folder / "outage.json").write_text("{}")
    (folder / TOOLS).write_text('{"step": "pool-import"}\n')
    assert check_manifest(folder, DUE).complaints == (
        "cut.json is missing",
        "outage.json is not in manifest.json",
        "tools.jsonl has changed since it was written",
        "tools.jsonl: nas-dmesg is gone",
    )


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"schema": 2}', '{"files": 3}'])
def test_a_manifest_that_cannot_be_read_is_a_complaint(folder: Path, content: str | None) -> None:
    (folder / MANIFEST).unlink() if content is None else (folder / MANIFEST).write_text(content)
    [complaint] = check_manifest(folder, DUE).complaints
    assert complaint.startswith("manifest.json cannot be read")


# A trial whose settings are not those of its cell vouches for nothing, and excuses nothing.


@pytest.mark.parametrize(
    ("found", "verdict"), [(EVERYTHING, Verdict.INCONCLUSIVE), (OLD, Verdict.ROLLED_BACK)]
)
def test_a_trial_with_another_setting_vouches_for_nothing_and_excuses_nothing(
    found: str, verdict: Verdict
) -> None:
    sound = evidence(found=found)
    other = structs.replace(sound.cut, not_in_effect=("at the end: export: async, not sync",))
    judgement = judge(replace(sound, cut=other))
    assert judgement.verdict is verdict
    assert any("export: async, not sync" in reason for reason in judgement.reasons)
