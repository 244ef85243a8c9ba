"""Several versions, runs or nights in one report: compared, merged without a lost or doubled line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from suites.selftest.unit.made_records import changed
from suites.selftest.unit.report_records import intact_records, make_records, write_run
from torture.choices.matrix.cells import Cell, cells_of
from torture.errors import HarnessError
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.cut_document import AuditDocument
from torture.oracles.verdict.guarantee import Verdict
from torture.records.record.run_document import TRIALS_FILE
from torture.records.record.trials import Advertised, TrialRecord, Where
from torture.records.record.trials_file import read_records
from torture.report.figures.cell_figures import cell_figures
from torture.report.figures.versus import Versus, compare_runs
from torture.report.reading.runs import find_run
from torture.report.reading.store import Store, write_merged

SAFE = cells_of(Matrix.QUICK)[0]


def runs_of(folder: Path, **records: Sequence[TrialRecord]) -> list[Path]:
    return [write_run(folder / name, written) for name, written in records.items()]


def test_trials_of_several_zfs_versions_are_separate_and_reported(
    tmp_path: Path,
) -> None:
    """One that failed before it could say its version is of its run's."""
    records = list(make_records(6, cells=[SAFE], seed=1))
    broken = changed(records[0], verdict=Verdict.INCONCLUSIVE, machinery_failed=True)
    old, new, again = runs_of(
        tmp_path,
        old=[replace(record, zfs="2.1.11") for record in records[:4]],
        new=[replace(record, zfs="2.3.9") for record in records],
        again=[broken],
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
    old, new, unsaid = runs_of(
        tmp_path,
        old=booted(records[:4], nas="6.12.118", client="6.1.0-56"),
        new=booted(records, nas="6.12.118", client="6.12.118"),
        unsaid=records,
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
    records = intact_records(12, cells=[SAFE])
    kvm, tcg = (Where(host="a", accelerator=kind) for kind in ("kvm", "tcg"))
    of_kvm, of_tcg, of_unknown = runs_of(
        tmp_path,
        kvm=[replace(record, where=kvm) for record in records[:4]],
        tcg=[replace(record, where=tcg) for record in records[4:]],
        unknown=records,
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


# Several runs written as one: no line lost or doubled, and the next report has equal figures.

CELLS = cells_of(Matrix.QUICK)
RECORDS = tuple(make_records(90, cells=CELLS, seed=5))


def shards(root: Path) -> list[Path]:
    return [
        write_run(
            root / f"shard-{n}" / f"run{n}",
            [record for record in RECORDS if record.cell in {each.name for each in CELLS[n::3]}],
            options={"cells": [each.name for each in CELLS[n::3]], "shard": f"{n + 1}/3"},
            begun=f"2026-11-2{n}T00:00:00+0000",
        )
        for n in range(3)
    ]


def test_merged_shards_are_the_whole_run_line_by_line(tmp_path: Path) -> None:
    whole = write_run(tmp_path / "whole", RECORDS)
    shards(tmp_path / "night")
    with Store.open([tmp_path / "night"]) as store:
        merged = write_merged(store, tmp_path / "site" / "run")
        figures = cell_figures(store.tallies())
    lines = (merged / TRIALS_FILE).read_bytes().splitlines()
    assert sorted(lines) == sorted((whole / TRIALS_FILE).read_bytes().splitlines())
    found = read_records(merged / TRIALS_FILE).records
    order = [(record.cell, int(record.trial.rsplit(".")[-1].split("-")[0])) for record in found]
    assert order == sorted(order)
    with Store.open([merged]) as again, Store.open([whole]) as unsharded:
        assert cell_figures(again.tallies()) == figures == cell_figures(unsharded.tallies())
        assert again.notes == ()


def test_its_run_json_has_the_fields_they_agree_on(tmp_path: Path) -> None:
    with Store.open(shards(tmp_path / "night")) as store:
        run = find_run(write_merged(store, tmp_path / "merged"))
    assert (run.name, run.document.seed) == ("merged", 1)
    assert run.document.merged == ("run0", "run1", "run2")
    assert run.document.versions == {"qemu": "7.2.22"}
    assert run.document.begun == "2026-11-20T00:00:00+0000"
    assert run.document.options["cells"] == sorted(cell.name for cell in CELLS)
    assert run.document.options["keep"] == "bad"
    assert "shard" not in run.document.options
    assert not run.document.is_sequential


def test_that_one_of_them_stopped_early_and_other_seeds_are_not_forgotten(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "fixed", RECORDS[:9], seed=1),
        write_run(tmp_path / "until", RECORDS[9:], seed=2, options={"until": "upper<0.01"}),
    ]
    with Store.open(runs) as store:
        run = find_run(write_merged(store, tmp_path / "merged"))
    assert run.document.is_sequential
    assert run.document.seed is None


def test_a_merged_run_still_reports_the_lines_that_were_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "night", RECORDS)
    with (run / TRIALS_FILE).open("ab") as file:
        file.write(b"{broken}\n")
    with Store.open([run]) as store:
        merged = write_merged(store, tmp_path / "merged")
        notes = store.notes
    with Store.open([merged]) as again:
        assert again.notes == tuple(f"merged: {note}" for note in notes)
        assert len(notes) == 1


def test_a_line_is_kept_as_it_was_with_unknown_fields(tmp_path: Path) -> None:
    line = json.dumps(RECORDS[0].as_json() | {"weather": "größer"}, indent=None).encode()
    run = write_run(tmp_path / "run", ())
    (run / TRIALS_FILE).write_bytes(b"  " + line + b" \r\n")
    with Store.open([run]) as store:
        merged = write_merged(store, tmp_path / "merged")
    assert (merged / TRIALS_FILE).read_bytes() == b"  " + line + b" \r\n"


def test_it_replaces_a_merged_run_and_nothing_else(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", RECORDS[:9])
    second = write_run(tmp_path / "second", RECORDS[9:])
    with Store.open([first]) as store:
        write_merged(store, tmp_path / "merged")
        before = (first / TRIALS_FILE).read_bytes()
        for taken in (first, second):
            with pytest.raises(HarnessError, match="already holds a run"):
                write_merged(store, taken)
        assert (first / TRIALS_FILE).read_bytes() == before
    with Store.open([first, second]) as store:
        write_merged(store, tmp_path / "merged")
    with Store.open([tmp_path / "merged"]) as store:
        assert store.trials == len(RECORDS)
        with pytest.raises(HarnessError, match="already holds a run"):
            write_merged(store, tmp_path / "merged")


# Two nights: one with fewer conclusive trials than the last may have lost data.

PAIR = [Cell.parse(f"iscsi-always-noslog-{filesystem}-bothdie") for filesystem in ("ext4", "xfs")]
TRIALS = 40
"""Of both cells together."""

IsUnresolved = Callable[[int, TrialRecord], bool]


def night(folder: Path, unresolved: IsUnresolved, *, is_empty: bool = False) -> Path:
    """A night of safe cells; of which trials nothing is known, by number."""
    at_work = 0 if is_empty else 1
    audit = AuditDocument(under_way=at_work, acknowledged_lately=at_work)
    records = intact_records(TRIALS, cells=PAIR)
    for number, record in enumerate(records):
        if unresolved(number, record):
            cut = replace(record.cut, disks={}, hit=False, audit=audit)
            records[number] = changed(record, verdict=Verdict.INCONCLUSIVE, cut=cut)
    return write_run(folder, records)


def accused(record: TrialRecord) -> TrialRecord:
    audit = AuditDocument(broken=1, under_way=1)
    return replace(record, cut=replace(record.cut, audit=audit))


@pytest.fixture
def against(tmp_path: Path) -> Callable[..., Versus]:
    """A night without inconclusive trials, and this one."""
    old = night(tmp_path / "old", lambda _number, _record: False)

    def compare(unresolved: IsUnresolved, **more: bool) -> Versus:
        return compare_runs([old], [night(tmp_path / "new", unresolved, **more)])

    return compare


def test_a_night_with_fewer_conclusive_trials_of_a_cell_is_worse(
    against: Callable[..., Versus],
) -> None:
    versus = against(lambda number, record: record.cell == PAIR[1].name and number < 16)
    assert versus.worse == ()
    assert versus.has_failed
    assert "No configuration of 2 got significantly worse. More trials are incon" in versus.sentence
    assert "8/40 20 % [9.05-36 %], before 0/40" in versus.sentence
    assert f"most in {PAIR[1].name}" in versus.sentence


def test_a_night_without_conclusive_trials_has_not_passed(against: Callable[..., Versus]) -> None:
    versus = against(lambda _number, _record: True)
    assert versus.pairs == ()
    assert versus.has_failed
    assert versus.sentence.startswith("Nothing can be compared: ")


def test_more_trials_that_break_their_guarantee_and_lose_nothing_are_worse(
    tmp_path: Path,
) -> None:
    """The audit finds a flush that is missing where a cut need not have met it."""
    records = intact_records(TRIALS, cells=PAIR)
    one, nine = ([*map(accused, records[:count]), *records[count:]] for count in (1, 9))
    old, new = runs_of(tmp_path, old=one, new=nine)
    versus = compare_runs([old], [new])
    assert versus.worse == ()
    assert versus.has_failed
    assert (
        "More trials are worse than theory guarantees, and not by chance: 9/40" in versus.sentence
    )
    assert not compare_runs([old], [old]).has_failed
    assert not compare_runs([new], [old]).has_failed


def test_some_trial_is_always_inconclusive(against: Callable[..., Versus]) -> None:
    versus = against(lambda number, _record: number < 4)
    assert (versus.pooled[1].new.events, versus.has_failed) == (4, False)
    assert "inconclusive" not in versus.sentence


def test_empty_cuts_are_known_to_have_taken_nothing(against: Callable[..., Versus]) -> None:
    versus = against(lambda number, _record: number < 20, is_empty=True)
    assert (versus.pooled[1].new.events, versus.has_failed) == (0, False)


def run_of(folder: Path, losses: dict[str, int], *, trials: int = 10, **more: Any) -> Path:
    """A run of these cells; so many trials of each lost data."""
    records = []
    for cell, lost in losses.items():
        made = intact_records(trials, cells=[Cell.parse(cell)], seed=len(str(folder)))
        back = {"verdict": Verdict.ROLLED_BACK, "lost": 3, "rollback_ms": 100.0}
        records += [*(changed(record, **back) for record in made[:lost]), *made[lost:]]
    return write_run(folder, records, **more)


SAFE_NAME = PAIR[0].name
LOSSY = [
    f"iscsi-disabled-{slog}-{filesystem}-{fate}"
    for slog in ("noslog", "plp", "volatile", "mirror")
    for filesystem in ("ext4", "xfs", "btrfs", "raw")
    for fate in ("bothdie", "nasonly")
]


def test_one_broken_guarantee_is_enough_and_is_named_with_its_trial(tmp_path: Path) -> None:
    others = dict.fromkeys(LOSSY, 5)
    old = run_of(tmp_path / "old", others | {SAFE_NAME: 0})
    new = run_of(tmp_path / "new", others | {SAFE_NAME: 1})
    versus = compare_runs([old], [new])
    assert versus.worse == ()
    assert versus.has_failed
    [(cell, [trial])] = versus.breaches.items()
    assert cell == SAFE_NAME
    assert f"no old trial broke it: {SAFE_NAME}, in {trial}." in versus.sentence
    assert not compare_runs([new], [new]).has_failed, "no news"


def of_qemu(folder: Path, version: str, *, name: str, lost: int) -> Path:
    made = intact_records(6, cells=[Cell.parse(name)], seed=lost)
    made = [*(changed(one, verdict=Verdict.CORRUPTED, lost=1) for one in made[:lost]), *made[lost:]]
    advertised = Advertised(client={"hypervisor_qemu": version})
    return write_run(folder, [replace(record, advertised=advertised) for record in made])


def test_two_versions_of_the_hypervisors_qemu_are_compared(tmp_path: Path) -> None:
    """Its choice is a word of the name, and the same cell of another QEMU did not vanish."""
    name = "nfs4-rawimage-standard-noslog-ext4-bothdie"
    newer = "nfs4-rawimage-qemu111-standard-noslog-ext4-bothdie"
    old = of_qemu(tmp_path / "old", "10.0.13", name=name, lost=0)
    new = of_qemu(tmp_path / "new", "11.1.3", name=newer, lost=6)
    versus = compare_runs([old], [new])
    assert "old: the hypervisor's QEMU 10.0.13; new: 11.1.3" in versus.remarks
    assert (versus.only_old, versus.only_new) == ((), ())
    assert [pair.first.cell for pair in versus.worse] == [name]
    assert list(versus.breaches) == [name]
    assert not compare_runs([new], [new]).breaches, "no news"
    both = compare_runs([old], [old, new])
    assert both.only_new == (newer,)


def test_a_disaster_in_one_lossy_cell_of_many_is_seen(tmp_path: Path) -> None:
    silent = dict.fromkeys(LOSSY, 0)
    old = run_of(tmp_path / "old", silent)
    new = run_of(tmp_path / "new", silent | {LOSSY[3]: 6})
    versus = compare_runs([old], [new])
    assert [pair.first.cell for pair in versus.worse] == [LOSSY[3]]
    assert versus.breaches == {}, "theory allows it"
    assert len(versus.pairs) == len(LOSSY), "one rate per cell"
    back = compare_runs([new], [old])
    assert ([pair.first.cell for pair in back.better], back.has_failed) == ([LOSSY[3]], False)


def test_runs_that_stopped_at_an_answer_are_compared_by_their_own_intervals(
    tmp_path: Path,
) -> None:
    """By Fisher's test these counts would differ."""
    options = {"until": "upper<0.3"}
    old, few, many = (
        run_of(tmp_path / name, {LOSSY[0]: lost}, trials=20, options=options)
        for name, lost in (("old", 0), ("few", 6), ("many", 15))
    )
    fixed = run_of(tmp_path / "fixed", {LOSSY[0]: 0}, trials=20)
    assert not compare_runs([old], [few]).has_failed
    assert compare_runs([fixed], [run_of(tmp_path / "six", {LOSSY[0]: 6}, trials=20)]).has_failed
    for start in (old, fixed):
        versus = compare_runs([start], [many])
        assert [pair.first.cell for pair in versus.worse] == [LOSSY[0]]
        assert versus.pooled == ()
        assert "stopped at an answer" in " ".join(versus.remarks)


def broken_run(folder: Path, ends: dict[Verdict, int], *, broken_audits: int = 0) -> Path:
    """A run of ten trials of a safe cell; so many ended so, in the others nothing was lost."""
    verdicts = [verdict for verdict, count in ends.items() for _ in range(count)]
    records = intact_records(10, cells=PAIR[:1], seed=len(str(folder)))
    for number, verdict in enumerate(verdicts):
        records[number] = changed(records[number], verdict=verdict)
    sound = records[: 10 - broken_audits]
    return write_run(folder, [*sound, *map(accused, records[len(sound) :])])


@pytest.mark.parametrize(
    ("ends", "broken_audits", "has_failed"),
    [
        ({Verdict.REPAIRED: 1}, 0, False),
        ({Verdict.REPAIRED: 2}, 0, False),
        ({Verdict.POOL_LOST: 1}, 0, True),
        ({Verdict.CORRUPTED: 1}, 0, True),
        ({Verdict.REPAIRED: 6}, 0, True),
        ({}, 1, True),
    ],
    ids=str,
)
def test_an_old_breach_hides_no_worse_one_and_no_higher_rate(
    ends: dict[Verdict, int], broken_audits: int, has_failed: bool, tmp_path: Path
) -> None:
    """One of ten trials of the old night was repaired: a documented finding of its cell."""
    old = broken_run(tmp_path / "old", {Verdict.REPAIRED: 1})
    new = broken_run(tmp_path / "new", ends, broken_audits=broken_audits)
    versus = compare_runs([old], [new])
    assert versus.has_failed is has_failed
    if ends == {Verdict.REPAIRED: 6}:
        assert [pair.first.cell for pair in versus.worse] == [f"{SAFE_NAME} (broken guarantees)"]
