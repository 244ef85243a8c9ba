"""Which cells a session of suites/powercut runs: a matrix's or those named, by mark and by shard.

The mark of a tree of files, by which a walk knows equal contents (`vmimages/zfs/recovery/tree.c`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.plugin import cell_param
from suites.selftest.programs.collecting import cells_in, collect
from suites.selftest.programs.launcher import LAUNCHER
from torture.choices.matrix.cells import Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.zfs.versions import FOLDER, version_names

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
        "--axis: no axis is called 'logbais'; there are transport, image,",
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
    "no trials": (("--trials", "0"), "must be a whole number, at least 1"),
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
        (("suites/knownbugs", "--axis=filesystem=xfs", "--shard", "1/2"), "--shard, --axis: these"),
        (("suites/knownbugs", "--engine=native"), "--engine: these tests"),
        (("suites/chaos", "--minutes", "3"), "--minutes: these tests"),
        (("suites/replay", "--coverage"), "the last with --coverage"),
        (("suites/speed", "--fresh", "3"), "--fresh: these tests"),
    ],
)
def test_an_option_that_makes_no_sense_there_ends_the_session_in_a_line(
    arguments: tuple[str, ...], why: str
) -> None:
    done = LAUNCHER.run("-m", "pytest", "--collect-only", "-q", *arguments)
    must_refuse(done, why)


_MAIN = r"""
#include "tree.h"
#include <inttypes.h>
#include <stdio.h>
int main(int count, char **words) {
  mark_t content = MARK_OF_NOTHING;
  const int error = mark_tree(words[count - 1], &content);
  printf("%d %016" PRIx64 "%016" PRIx64 "\n", error, content.a, content.b);
  return 0;
}
"""
_SET_S = 1_000_000_000
_DEADLINE_S = 60


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    sources = FOLDER / "recovery"
    (folder / "main.c").write_text(_MAIN)
    made = folder / "tree"
    strict = ("-std=gnu17", "-Wall", "-Wextra", "-Werror", f"-I{sources}")
    files = (sources / "tree.c", folder / "main.c")
    subprocess.run(["gcc", *strict, "-o", made, *files], check=True, timeout=_DEADLINE_S)
    return made


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "a").write_bytes(b"content" * 1000)
    (root / "b").write_bytes(b"")
    (root / "link").symlink_to("b")
    os.link(root / "b", root / "folder" / "c")
    os.utime(root / "b", (_SET_S, _SET_S))
    return root


def _mark(program: Path, root: Path) -> str:
    run = [program, root]
    answer = subprocess.run(run, check=True, timeout=_DEADLINE_S, capture_output=True, text=True)
    error, mark = answer.stdout.split()
    assert error == "0"
    return mark


def _rename(root: Path) -> None:
    (root / "folder" / "a").rename(root / "folder" / "aa")


def _replace(root: Path) -> None:
    """By a file of the same content, with another inode."""
    shutil.copy2(root / "folder" / "a", root.parent / "copied")
    (root.parent / "copied").replace(root / "folder" / "a")


def _point_elsewhere(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("a")


def _set_attribute(root: Path) -> None:
    os.setxattr(root / "b", "user.a", b"1")


_CHANGES: dict[str, Callable[[Path], object]] = {
    "data": lambda root: (root / "folder" / "a").write_bytes(b"content" * 999 + b"c0ntent"),
    "size": lambda root: (root / "folder" / "a").write_bytes(b"content" * 1000 + bytes(4)),
    "name": _rename,
    "mode": lambda root: (root / "b").chmod(0o600),
    "time that was set": lambda root: os.utime(root / "b", (_SET_S + 1, _SET_S + 1)),
    "links": lambda root: os.link(root / "b", root.parent / "outside"),
    "target": _point_elsewhere,
    "folder": lambda root: (root / "empty").mkdir(),
    "inode": _replace,
    "attribute": _set_attribute,
}


@pytest.mark.parametrize("name", _CHANGES)
def test_each_change_changes_the_mark(name: str, program: Path, tree: Path) -> None:
    before = _mark(program, tree)
    assert before == _mark(program, tree)
    try:
        _CHANGES[name](tree)
    except OSError as error:
        pytest.skip(f"not on this filesystem: {error}")
    assert _mark(program, tree) != before


def test_the_time_of_a_write_does_not_change_it(program: Path, tree: Path) -> None:
    """The log's replay writes at its own time: two recoveries of one state would differ."""
    file = tree / "folder" / "a"
    os.utime(file, ns=(1, _SET_S * 10**9 + 1))
    before = _mark(program, tree)
    os.utime(file, ns=(1, _SET_S * 10**9 + 5 * 10**9 + 2))
    assert _mark(program, tree) == before


def test_a_tree_that_cannot_be_read_is_an_error(program: Path, tmp_path: Path) -> None:
    run = [program, tmp_path / "absent"]
    answer = subprocess.run(run, check=True, timeout=_DEADLINE_S, capture_output=True, text=True)
    assert not answer.stdout.startswith("0 ")
