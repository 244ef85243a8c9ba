"""Trials of several versions of OpenZFS, or accelerators, in one report, and in a comparison."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import make_records, write_run
from torture.choices.matrix.cells import cells_of
from torture.errors import HarnessError
from torture.facts.axes.sweeps import Matrix
from torture.oracles.verdict.verdicts import Verdict
from torture.records.record.trials import TrialRecord, Where
from torture.report.figures.versus import compare_runs
from torture.report.reading.store import Store

SAFE = cells_of(Matrix.QUICK)[0]


def test_trials_of_several_zfs_versions_are_separate_and_reported(
    tmp_path: Path,
) -> None:
    """One that failed before it could say its version is of its run's."""
    records = list(make_records(6, cells=[SAFE], seed=1))
    broken = changed(records[0], verdict=Verdict.INCONCLUSIVE, machinery_failed=True)
    old, new, again = (
        write_run(tmp_path / name, written)
        for name, written in {
            "old": [replace(record, zfs="2.1.11") for record in records[:4]],
            "new": [replace(record, zfs="2.3.9") for record in records],
            "again": [broken],
        }.items()
    )
    document = json.loads((again / "run.json").read_text())
    (again / "run.json").write_text(json.dumps(document | {"zfs": "2.3.9"}))
    with Store.open([old, new, again]) as store:
        assert store.trials == 10
        assert store.zfs_versions == ("2.3.9", "2.1.11")
        (note,) = (note for note in store.notes if "several versions" in note)
        assert "6 of 2.3.9, 4 of 2.1.11" in note
    with Store.open([new]) as store:
        assert not any("versions of OpenZFS" in note for note in store.notes)


def test_a_comparison_names_both_versions_of_zfs(tmp_path: Path) -> None:
    records = list(make_records(6, cells=[SAFE], seed=1))
    old, new = (
        write_run(tmp_path / zfs, [replace(record, zfs=zfs) for record in records])
        for zfs in ("2.1.11", "2.4.99-0123456789ab")
    )
    assert "old: OpenZFS 2.1.11; new: 2.4.99-0123456789ab" in compare_runs([old], [new]).remarks
    assert "OpenZFS 2.1.11 in both" in compare_runs([old], [old]).remarks
    assert "OpenZFS 2.1.11" in compare_runs([old], [new]).as_markdown()


def booted(records: Sequence[TrialRecord], *, nas: str, client: str) -> list[TrialRecord]:
    where = Where(linux_nas=nas, linux_client=client)
    return [replace(record, where=where) for record in records]


def test_the_same_trials_of_several_kernels_are_separate_and_reported(tmp_path: Path) -> None:
    """A record that does not name its kernels has those of its run's images."""
    records = list(make_records(6, cells=[SAFE], seed=1))
    old, new, unsaid = (
        write_run(tmp_path / name, written)
        for name, written in {
            "old": booted(records[:4], nas="6.12.118", client="6.1.0-56"),
            "new": booted(records, nas="6.12.118", client="6.12.118"),
            "unsaid": records,
        }.items()
    )
    document = json.loads((unsaid / "run.json").read_text())
    images = {name: {"key": "k", "packages": {"kernel": "7.3"}} for name in ("nas", "client")}
    (unsaid / "run.json").write_text(json.dumps(document | {"images": images}))
    mixed = "6.12.118 in the NAS and 6.1.0-56 in the client"
    with Store.open([old, new, unsaid]) as store:
        assert store.trials == 16
        assert set(store.kernels) == {"6.12.118", "7.3", mixed}
        (note,) = (note for note in store.notes if "versions of Linux" in note)
        assert f"4 of {mixed}" in note
    remarks = compare_runs([old], [new]).remarks
    assert f"old: Linux {mixed}; new: 6.12.118" in remarks
    assert "Linux 6.12.118 in both" in compare_runs([new], [new]).remarks
    with Store.open([new]) as store:
        assert not any("versions of Linux" in note for note in store.notes)


def test_kvm_and_emulation_are_said_apart_and_not_compared(tmp_path: Path) -> None:
    records = list(make_records(12, cells=[SAFE], seed=1))
    records = [changed(record, verdict=Verdict.INTACT) for record in records]
    kvm, tcg = (Where(host="a", accelerator=kind) for kind in ("kvm", "tcg"))
    of_kvm, of_tcg, of_unknown = (
        write_run(tmp_path / name, written)
        for name, written in {
            "kvm": [replace(record, where=kvm) for record in records[:4]],
            "tcg": [replace(record, where=tcg) for record in records[4:]],
            "unknown": records,
        }.items()
    )
    with Store.open([of_kvm, of_tcg]) as store:
        assert store.accelerators == ("kvm", "tcg")
        (note,) = (note for note in store.notes if "emulation" in note)
        assert "kvm: a loss in 0 of 4; tcg: a loss in 0 of 8" in note
    with Store.open([of_kvm, of_unknown]) as store:
        assert not any("emulation" in note for note in store.notes)
    with pytest.raises(HarnessError, match="old kvm, new tcg"):
        compare_runs([of_kvm], [of_tcg])
    assert compare_runs([of_kvm], [of_kvm]).pairs
    assert compare_runs([of_unknown], [of_tcg]).pairs
