"""Which cells a session of suites/powercut runs: a matrix's or those named, by mark and by shard."""

from __future__ import annotations

import subprocess

import pytest

from fixtures.plugin import cell_param
from suites.selftest.programs.collecting import cells_in, collect
from suites.selftest.programs.launcher import LAUNCHER
from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.zfs.versions import version_names

IN_NO_MATRIX = "iscsi-always-mirror-sas-raidz1-lyingdisks-xfs-bothdie"
IN_QUICK = "iscsi-always-noslog-btrfs-bothdie"


def test_cells_that_are_named_replace_the_matrix_each_once() -> None:
    arguments = [f"--cell={name}" for name in (IN_NO_MATRIX, IN_QUICK, IN_NO_MATRIX)]
    assert cells_in(collect("--matrix", "full", *arguments)) == [IN_NO_MATRIX, IN_QUICK]


def test_named_cells_are_narrowed_by_mark_too() -> None:
    arguments = [f"--cell={name}" for name in (IN_NO_MATRIX, IN_QUICK)]
    assert cells_in(collect(*arguments, "-m", "sas")) == [IN_NO_MATRIX]


def test_a_mark_selects_its_choice_and_nothing_that_only_sounds_like_it() -> None:
    chosen = [cell.name for cell in cells_of(Matrix.FULL) if cell.axes["slog"] == "plp"]
    assert cells_in(collect("--matrix", "full", "-m", "plp")) == chosen
    assert len(chosen) > 1


REFUSED = {
    "an impossible cell": (
        ("--cell=iscsi-always-noslog-optane-btrfs-bothdie",),
        "ERROR: --cell: 'optane' is the class of a SLOG",
    ),
    "a log device that looks like nvme": (
        ("--cell=iscsi-always-plp-nvdimm-btrfs-bothdie",),
        "the SLOG class nvdimm cannot be distinguished from nvme",
    ),
    "a cell that this zfs does not know": (
        ("--matrix", "quick", "--tunable", "zvol_use_blk_mq=1", "--zfs", "2.1.11"),
        "ERROR: --zfs: OpenZFS 2.1.11 has no zvol_use_blk_mq",
    ),
    "an unknown axis": (
        (f"--cell={IN_QUICK}", "--axis=logbais=throughput"),
        "--axis: no axis is called 'logbais'; there are transport, nfs_export,",
    ),
    "an unknown choice": (
        (f"--cell={IN_QUICK}", "--axis=recordsize=record4k"),
        "'recordsize=4K' applies to a dataset, and 'iscsi' is on a zvol; possib",
    ),
    "a cell whose client has no wire to its nas": (
        ("--network=usermode", "--cell=nfs4-standard-noslog-files-nasonly"),
        "needs a bridge, and the network is usermode (set by --network)",
    ),
    "an invalid question": (
        ("--until=upper>0.01",),
        "--until: ask 'upper<', not 'upper>'; say e.g. 'upper<0.01'",
    ),
    **{f"shard {text}": (("--shard", text), "--shard 3/12") for text in ("0/3", "4/3", "three")},
    "an unknown schedule": (
        ("--schedule=sometimes",),
        "--schedule: there is no schedule 'sometimes'",
    ),
    "two schedules": (
        ("--schedule=fixed", "--until=upper<0.1"),
        "--until is a schedule: use either",
    ),
    **{
        f"zfs {unknown}": (
            ("--zfs", unknown),
            f"known are: {', '.join(version_names())}, and folders with",
        )
        for unknown in ("2.9", "/nowhere", "/usr")
    },
    "no trials": (("--trials", "0"), "--trials and --jobs must be at least 1"),
    "crash states": (("--states", "3"), "--states: these tests"),
}


@pytest.mark.parametrize(("arguments", "why"), REFUSED.values(), ids=REFUSED)
def test_a_session_that_cannot_be_ends_before_anything_starts(
    arguments: tuple[str, ...], why: str
) -> None:
    must_refuse(collect(*arguments), why)


def must_refuse(done: subprocess.CompletedProcess[str], why: str) -> None:
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert why in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_choice_on_an_axis_is_every_cells() -> None:
    done = collect("--matrix", "quick", "--property", "logbias=throughput", "-m", "nasonly")
    assert cells_in(done) == [
        "iscsi-standard-noslog-logbias=throughput-btrfs-nasonly",
        "iscsi-always-noslog-logbias=throughput-btrfs-nasonly",
        "nfs_image-standard-noslog-logbias=throughput-btrfs-nasonly",
        "nfs4-standard-noslog-logbias=throughput-files-nasonly",
    ]
    assert (
        "--property logbias=throughput: 2 of 10 cells are impossible, e.g. iscsi-d" in done.stdout
    )


def test_a_cell_that_needs_no_wire_runs_without_a_bridge() -> None:
    assert cells_in(collect("--network=usermode", f"--cell={IN_QUICK}")) == [IN_QUICK]


def test_in_a_matrix_such_a_cell_is_skipped_with_the_reason() -> None:
    marks = cell_param(Cell.parse(IN_QUICK), why_skipped="no wire").marks
    (skip,) = (mark for mark in marks if mark.name == "skip")
    assert skip.kwargs == {"reason": "no wire"}
    assert "skip" not in {mark.name for mark in cell_param(Cell.parse(IN_QUICK)).marks}


def test_the_shards_of_a_session_are_the_session() -> None:
    whole = cells_in(collect())
    shards = [cells_in(collect("--shard", f"{number}/3")) for number in (1, 2, 3)]
    assert sorted(name for shard in shards for name in shard) == sorted(whole)
    assert {len(shard) for shard in shards} <= {len(whole) // 3, len(whole) // 3 + 1}
    for shard in shards:
        assert shard == [name for name in whole if name in shard], "the order has changed"


def test_only_the_tests_that_k_and_m_chose_are_dealt_out() -> None:
    """Were all cells dealt out first, one shard would have twice as many of these as the other."""
    chosen = ("-m", "ext4", "-k", "plp")
    whole = cells_in(collect(*chosen))
    halves = [cells_in(collect(*chosen, "--shard", f"{number}/2")) for number in (1, 2)]
    assert len(whole) == 6
    assert [len(half) for half in halves] == [3, 3]
    assert sorted(halves[0] + halves[1]) == sorted(whole)


def test_the_others_are_reported_as_deselected() -> None:
    done = collect("--matrix", "quick", "--shard", "2/3")
    assert "3/10 tests collected (7 deselected)" in done.stdout


def test_a_shard_without_cells_ends_well_and_says_so() -> None:
    done = collect("--matrix", "quick", "--shard", "11/11")
    assert done.returncode == 0, done.stdout
    assert "shard 11/11 has none of the 10 selected cells" in done.stdout


def test_a_selection_of_nothing_is_still_a_mistake() -> None:
    done = collect("-k", "nosuchcell", "--shard", "1/2")
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED


def test_help_lists_the_options() -> None:
    done = collect("--help")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--zfs=VERSION|PATH" in done.stdout


def test_a_fault_that_cannot_be_planted_there_is_skipped_with_the_reason() -> None:
    chosen = ("--axis", "filesystem=xfs", "-k", "no-barriers")
    done = LAUNCHER.run("-m", "pytest", "suites/sensitivity", *chosen)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no-barriers works only with the filesystem of iscsi-standard-noslog-ext4" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ("suites/sensitivity", "--cell", "iscsi-always-noslog-btrfs-bothdie"),
            "--cell: these tests",
        ),
        (("suites/knownbugs", "--axis=filesystem=xfs", "--shard", "1/2"), "--axis, --shard: these"),
        (("suites/knownbugs", "--engine=native"), "--engine: these tests"),
        (("suites/chaos", "--minutes", "3"), "--minutes: these tests"),
        (("suites/replay", "--coverage"), "the last with --coverage"),
        (("suites/sensitivity", "--fresh", "3"), "--fresh: these tests"),
    ],
)
def test_an_option_that_makes_no_sense_there_ends_the_session_in_a_line(
    arguments: tuple[str, ...], why: str
) -> None:
    done = LAUNCHER.run("-m", "pytest", "--collect-only", "-q", *arguments)
    must_refuse(done, why)
