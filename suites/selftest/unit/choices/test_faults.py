"""Planted faults: each where all is sound without it, counted as it was seen, and never as its cell's.

The settings that each cell proves, changed or not: a weaker one and a stronger one are seen.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from suites.selftest.unit.conftest import fake_tool
from suites.selftest.unit.made_records import changed, record_in
from suites.selftest.unit.report_records import figures_of
from torture.choices.experiments import (
    DISTURBANCES,
    FAULTS,
    KNOWN_BUGS,
    ZFS_BUGS,
    ZFS_DISTURBANCES,
    experiments_in,
    find,
)
from torture.choices.experiments.protocol import Fault, Sight
from torture.choices.matrix.cell_terms import guarantee_of
from torture.choices.matrix.cells import Cell
from torture.errors import HarnessError
from torture.facts.evidence.cut_document import AuditDocument, CutDocument
from torture.facts.zfs.versions import DEFAULT, FIXES, PLANTED, UNFIXED, zfs_version
from torture.machines.images.recipes import read_recipe
from torture.machines.images.source_trees import choose_zfs
from torture.machines.nas.settings import essentials_of
from torture.oracles.verdict.guarantee import Guarantee, Verdict
from torture.records.record.specs import TrialSpec
from torture.records.record.trials import Absence, Origin, TrialRecord
from torture.records.scoring.detection import CONFIDENCE, cuts_for, detect, seen_by, share_for
from torture.trials.plan.draw import draw_planted, draw_trials

FAULT = FAULTS["flush-dropped"]
CELL = Cell.parse(FAULT.cell)
BROKEN = CutDocument(audit=AuditDocument(broken=2))


def record(verdict: Verdict, **more: object) -> TrialRecord:
    made = record_in(CELL, verdict, origin=Origin.PLANTED, fault=FAULT.name)
    return changed(made, **more)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
def test_a_fault_is_planted_where_all_is_sound_without_it(fault: Fault) -> None:
    assert guarantee_of(Cell.parse(fault.cell)) in (Guarantee.SAFE, Guarantee.ROLLS_BACK)
    assert fault.cuts >= 1
    # what is done beforehand may also bring about what is spoiled
    beforehand = () if fault.damage else (fault.in_nas, fault.in_client)
    hooks = (
        *beforehand, fault.under_load, fault.on_disks, fault.survivors, fault.damage,
        fault.before_import, fault.after_return, fault.before_mount, fault.before_read_back,
        fault.former_forces,
    )  # fmt: skip
    assert sum(bool(hook) for hook in hooks) == 1


@pytest.mark.parametrize("fault", DISTURBANCES.values(), ids=lambda fault: fault.name)
def test_a_disturbance_is_planted_where_nothing_may_be_lost(fault: Fault) -> None:
    assert guarantee_of(Cell.parse(fault.cell)) is Guarantee.SAFE
    assert find(fault.name) is fault
    assert fault.name not in FAULTS


def test_a_fault_is_found_by_its_name_and_nothing_by_another() -> None:
    assert find(FAULT.name) is FAULT
    assert find("") is None
    with pytest.raises(ValueError, match="flush-dropped"):
        find("gremlins")


def test_trials_of_faults_in_the_same_cell_have_different_names() -> None:
    drawn = draw_planted(tuple(FAULTS.values()), trials=2, run_seed=1, load_ms=4000)
    assert len({spec.trial for spec in drawn}) == len({spec.seed for spec in drawn}) == len(drawn)
    assert {spec.fault for spec in drawn[: len(FAULTS)]} == set(FAULTS)
    for fault in FAULTS.values():
        assert sum(spec.fault == fault.name for spec in drawn) == 2 * fault.cuts
    [sound] = draw_trials([CELL], trials=1, run_seed=1, load_ms=4000)
    assert sound.seed not in {spec.seed for spec in drawn}
    for spec in drawn:
        assert TrialSpec.from_json(json.loads(json.dumps(spec.as_json()))) == spec


def test_specs_of_older_versions_have_their_fault() -> None:
    [sound] = draw_trials([CELL], trials=1, run_seed=1, load_ms=4000)
    for old, now in (("none", ""), ("zfs_nocacheflush", "zfs-nocacheflush")):
        assert TrialSpec.from_json(sound.as_json() | {"fault": old}).fault == now


def test_a_planted_trial_is_in_no_rate() -> None:
    assert figures_of([record(Verdict.CORRUPTED)]) == ()
    assert TrialRecord.from_json(record(Verdict.CORRUPTED).as_json()).fault == FAULT.name


def test_each_check_that_said_something_is_counted() -> None:
    quiet = {"pool": Verdict.INTACT, "filesystem": Verdict.INTACT, "data": Verdict.INTACT}
    assert seen_by(record(Verdict.INTACT, verdicts=quiet)) == frozenset()
    assert seen_by(record(Verdict.INTACT, cut=BROKEN, verdicts=quiet)) == {Sight.AUDIT}
    early = Absence(acknowledged_in_outage=3, unfounded=1)
    assert seen_by(record(Verdict.INTACT, verdicts=quiet, absence=early)) == {Sight.OUTAGE}
    vouched = replace(early, unfounded=0)
    assert seen_by(record(Verdict.INTACT, verdicts=quiet, absence=vouched)) == frozenset()
    unlike = CutDocument(not_in_effect=("at the end: export: async, not sync",))
    assert seen_by(record(Verdict.INTACT, cut=unlike, verdicts=quiet)) == {Sight.SETTINGS}
    loud = {"pool": Verdict.UNAVAILABLE, "filesystem": None, "data": Verdict.CORRUPTED}
    assert seen_by(record(Verdict.UNAVAILABLE, verdicts=loud)) == {Sight.POOL, Sight.DATA}


def test_a_detection_counts_trials_that_broke_the_guarantee_of_its_cell() -> None:
    seen, missed = record(Verdict.INTACT, cut=BROKEN), record(Verdict.INTACT)
    unknown = record(Verdict.INCONCLUSIVE)
    detection = detect(FAULT, [seen, missed, unknown])
    assert (detection.cuts, detection.detected, detection.inconclusive) == (3, 1, 1)
    assert detection.by[Sight.AUDIT] == 1
    assert detection.rate_in_words.startswith("1 of 3 [")


def test_a_lie_counts_only_cuts_with_something_acknowledged_to_take() -> None:
    fault = find("lies-for-50-ms")
    assert fault is not None
    view = {"disks": {"data0": {"policy": "lying", "lying_ms": 50}}}

    def cut_of(uncommitted: int, lately: int = 1) -> CutDocument:
        audit = AuditDocument(
            uncommitted=uncommitted,
            acknowledged_lately=lately,
            logged_ms=80 if uncommitted else None,
        )
        return CutDocument(view=view, audit=audit)

    def in_its_cell(verdict: Verdict, cut: CutDocument) -> TrialRecord:
        data = {"data": Verdict.CORRUPTED} if verdict is Verdict.CORRUPTED else {}
        return replace(record(verdict, cut=cut, verdicts=data), cell=fault.cell)

    young, old = cut_of(2), cut_of(0)
    records = [
        in_its_cell(Verdict.INTACT, old),
        in_its_cell(Verdict.INTACT, young),
        in_its_cell(Verdict.CORRUPTED, young),
        in_its_cell(Verdict.CORRUPTED, old),
        in_its_cell(Verdict.INTACT, cut_of(2, lately=0)),
    ]
    detection = detect(fault, records)
    assert (detection.detected, detection.cuts, detection.without_risk) == (2, 3, 2)


@pytest.mark.parametrize("cuts", [1, 2, 5, 29, 300])
def test_so_many_cuts_see_it_with_that_confidence(cuts: int) -> None:
    share = share_for(cuts)
    assert 1 - (1 - share) ** cuts == pytest.approx(CONFIDENCE)
    assert cuts_for(share * 1.0001) == cuts
    assert cuts_for(share) in (cuts, cuts + 1)


def test_a_fault_that_is_never_seen_takes_for_ever() -> None:
    assert cuts_for(0.0) is None
    assert cuts_for(1.0) == 1
    assert cuts_for(0.5) == math.ceil(math.log(0.05) / math.log(0.5))


# Changes planted in OpenZFS: each is one changed line, a version of its own, and predicted.

PATCHES, FIXED, LESS = (sorted(folder.glob("*.patch")) for folder in (PLANTED, FIXES, UNFIXED))
ZFS_CHANGES = ZFS_BUGS | ZFS_DISTURBANCES


@pytest.mark.parametrize("change", ZFS_CHANGES.values(), ids=lambda change: change.name)
def test_a_change_is_one_line_of_one_file_beside_harmless_ones(change: Fault) -> None:
    patch = zfs_version(change.zfs).patch
    assert patch is not None
    assert sum(line.startswith("+++ b/module/") for line in patch.read_text().splitlines()) == 1
    others = [zfs_version(other.zfs).patch for other in ZFS_DISTURBANCES.values()]
    harmless = [line for other in others if other != patch for line in _changed_lines(other)]
    changed = [line for line in _changed_lines(patch) if line not in harmless]
    assert sum(line.startswith("-") for line in changed) == 1
    assert sum(line.startswith("+") for line in changed) <= 1


def _changed_lines(patch: Path | None) -> list[str]:
    assert patch is not None
    lines = patch.read_text().splitlines()
    signs = (line for line in lines if line.startswith(("+", "-")))
    return [line for line in signs if not line.startswith(("+++", "---"))]


@pytest.mark.parametrize("bug", ZFS_CHANGES.values(), ids=lambda bug: bug.name)
def test_a_change_is_a_version_and_nothing_else_is_planted_with_it(bug: Fault) -> None:
    version = zfs_version(bug.zfs)
    assert version.patch in PATCHES
    assert version.recipe == zfs_version(DEFAULT).recipe
    assert find(bug.name) is bug
    assert bug.name not in FAULTS | DISTURBANCES
    assert guarantee_of(Cell.parse(bug.cell)) is Guarantee.SAFE
    assert bug.cuts >= 1
    assert not any((bug.in_nas, bug.in_client, bug.damage))
    slow = find("log-write-slow")
    assert slow is not None
    assert slow.is_harmless
    assert bug.on_disks in (None, slow.on_disks)


def test_every_patch_is_a_fault_with_a_prediction() -> None:
    assert {zfs_version(bug.zfs).patch for bug in ZFS_CHANGES.values()} == set(PATCHES)


def test_every_fix_clears_a_known_bug_in_the_same_cell() -> None:
    sides = [bug for bug in KNOWN_BUGS.values() if "+" in bug.cleared.version]
    assert {zfs_version(bug.cleared.version).patch for bug in sides} == set(FIXED)
    for bug in sides:
        assert bug.affected.cell == bug.cleared.cell
        assert bug.affected.zfs == DEFAULT


def test_every_fix_that_is_taken_out_is_the_affected_side_of_a_known_bug() -> None:
    sides = [bug for bug in KNOWN_BUGS.values() if "+" in bug.affected.version]
    assert {zfs_version(bug.affected.version).patch for bug in sides} == set(LESS)
    for bug in sides:
        assert bug.affected.chosen_cell == bug.cleared.chosen_cell
        assert bug.cleared.zfs == DEFAULT


def test_a_patch_has_a_kernel_and_an_image_of_its_own() -> None:
    names = [DEFAULT, *(f"{DEFAULT}+{patch.stem}" for patch in (*PATCHES, *FIXED, *LESS))]
    recipes = [read_recipe("nas", zfs=name) for name in names]
    kernels = {recipe.kernel.base_key for recipe in recipes if recipe.kernel}
    assert len(kernels) == len(names)
    assert len({recipe.image_key for recipe in recipes}) == len(names)
    assert len({recipe.base_key for recipe in recipes}) == 1, "the tools are Debian's"
    clients = {read_recipe("client", zfs=name).image_key for name in names}
    assert len(clients) == 1, "a client has no planted bug"


@pytest.mark.parametrize(
    "name", [f"{DEFAULT}+", f"{DEFAULT}+unknown", "2.3.99+uberblock_not_flushed", f"{DEFAULT}+../x"]
)
def test_an_unknown_bug_is_refused(name: str) -> None:
    with pytest.raises(HarnessError, match="no recipe for ZFS"):
        choose_zfs(name)


ZPOOL = """tank\t12G\t1M
  mirror-0\t4G\t1M
    virtio-data0\t-\t-
    virtio-data1\t-\t-
logs\t-\t-
  {log}\t1G\t0
    virtio-slog0\t-\t-
    1234567890\t-\t-
"""
"""`zpool list -Hv` of OpenZFS 2.3.9, of a pool without one leg of its log."""


def asked_of(cell: Cell, folder: Path, *, get: str, zpool: str, exports: str) -> dict[str, bool]:
    """Whether each essential setting of a cell is in effect, where ZFS and exportfs say so."""
    for name, said in {"zfs": get, "zpool": zpool, "exportfs": exports}.items():
        (folder / f"{name}.txt").write_text(said)
        fake_tool(folder, name, f"cat {folder}/{name}.txt")
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    every = [one for one in essentials_of(cell) if "cacheflush" not in one.name]
    done = subprocess.run(
        ["sh", "-c", "\n".join(["set -eu", *(one.script for one in every)])],
        env=environment, check=True, timeout=20, capture_output=True, text=True,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    return {one.name: line == one.expected for one, line in zip(every, lines, strict=True)}


@pytest.mark.parametrize(
    ("get", "log", "option", "otherwise"),
    [
        ("always\nlatency\n", "mirror-1", "sync", []),
        ("standard\nlatency\n", "mirror-1", "sync", ["sync and logbias"]),
        ("always\nthroughput\n", "mirror-1", "sync", ["sync and logbias"]),
        ("always\nlatency\n", "virtio-slog0", "sync", ["vdevs of the pool"]),
        ("always\nlatency\n", "mirror-1", "async", ["export"]),
    ],
)
def test_a_weaker_and_a_stronger_setting_are_seen(
    get: str, log: str, option: str, otherwise: list[str], tmp_path: Path
) -> None:
    cell = Cell.parse("nfs3-always-mirror-mirrored-files-bothdie")
    seen = asked_of(
        cell,
        tmp_path,
        get=get,
        zpool=ZPOOL.format(log=log),
        exports=f"/tank/vm  *({option},wdelay,hide,no_subtree_check,fsid=0,sec=sys,rw,insecure)\n",
    )
    assert [name for name, is_in_effect in seen.items() if not is_in_effect] == otherwise


def test_each_tunable_that_turns_flushes_off_is_looked_at() -> None:
    for middle, expected in {"noslog": "0 0", "noslog-nocacheflush": "1 0"}.items():
        asked = {
            one.name: one.expected
            for one in essentials_of(Cell.parse(f"iscsi-always-{middle}-ext4-bothdie"))
        }
        assert asked["zfs_nocacheflush and zil_nocacheflush"] == expected


_ENTRY = '[[faults]]\nname = "f"\nwords = "w"\nlayer = "disk"\nseen_by = "data"\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (_ENTRY.replace('seen_by = "data"\n', ""), "f: faults have `seen_by`"),
        (_ENTRY.replace("faults", "disturbances"), "disturbances have not"),
        (_ENTRY + 'seen = "pool"\n', "unknown field `seen`"),
        (_ENTRY.replace('"data"', '"the data"'), "the data"),
        (_ENTRY + 'survivors.data0.policy = "lying"\n', "lying_ms"),
        (_ENTRY + "cuts = 1.5\n", "int"),
        (_ENTRY[:-2], "[Uu]nterminated|newline"),
    ],
)
def test_a_wrong_table_is_refused_by_its_name(tmp_path: Path, text: str, why: str) -> None:
    table = tmp_path / "mine.toml"
    table.write_text(_ENTRY)
    assert [fault.seen_by for fault in experiments_in(table).faults] == [Sight.DATA]
    table.write_text(text)
    with pytest.raises(ValueError, match=rf"mine\.toml: .*{why}"):
        experiments_in(table)
