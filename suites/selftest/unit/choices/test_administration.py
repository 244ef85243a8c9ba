"""The outcome of an administration, by real outputs of ZFS's tools before and after cuts.

The outcome of operations on datasets, and of those by which disks join and leave a pool.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace

import pytest

from suites.selftest.unit.administered import (
    ALL,
    CASES,
    HOME,
    OPERATIONS,
    cut,
    outputs_of,
    read,
    with_pool,
)
from suites.selftest.unit.good_evidence import SCRUB, evidence
from suites.selftest.unit.status_as_text import in_text
from torture.choices.administration import AXIS
from torture.choices.administration.protocol import Moment, Outcome
from torture.choices.matrix.cells import ADMINISTRATION, Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.evidence.folder import ToolOutput
from torture.facts.zfs.versions import zfs_version
from torture.machines.nas.pool import create_script, pool_disks
from torture.oracles.verdict.guarantee import UnreadableError, Verdict
from torture.records.scoring.judge import judge


@pytest.mark.parametrize("case", CASES)
def test_its_outcome_is_read_from_the_printed_answers(case: str) -> None:
    name, _, outcome = case.partition("-")
    assert read(case, outputs_of(case)) == outcome.replace("-", " ")
    asked = tuple(output.argv for output in outputs_of(case))
    assert asked == OPERATIONS[name].questions


@pytest.mark.parametrize("case", CASES)
def test_its_outcome_is_the_same_in_the_text_of_a_zfs_without_json(case: str) -> None:
    name, _, outcome = case.partition("-")
    answers = [in_text(output) for output in outputs_of(case)]
    assert read(case, answers) == outcome.replace("-", " ")
    old = zfs_version("2.1.11")
    assert tuple(answer.argv for answer in answers) == tuple(
        map(old.question, OPERATIONS[name].questions)
    )
    assert not any("-j" in answer.argv for answer in answers)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_was_seen_undone_and_done(name: str) -> None:
    assert {f"{name}-undone", f"{name}-done"} <= set(CASES)


@pytest.mark.parametrize("form", [copy, in_text], ids=["JSON", "text"])
@pytest.mark.parametrize("case", CASES)
def test_an_output_cut_off_amid_a_line_or_garbled_is_never_read_as_anything(
    case: str, form: Callable[[ToolOutput], ToolOutput]
) -> None:
    outputs = [form(output) for output in outputs_of(case)]
    for place, output in enumerate(outputs):
        for stdout in _spoilt(output.stdout):
            spoilt = [*outputs]
            spoilt[place] = replace(output, stdout=stdout)
            with pytest.raises(UnreadableError):
                read(case, spoilt)


def _spoilt(text: str) -> Iterator[str]:
    whole = text.rstrip()
    for share in (0, 0.3, 0.6, 0.9):
        yield whole[: int(len(whole) * share)]
    yield whole[:-1]
    yield f"{whole[:-1]}\x00"


@pytest.mark.parametrize("case", CASES)
def test_a_question_that_failed_or_was_not_asked_tells_nothing(case: str) -> None:
    outputs = outputs_of(case)
    for place, output in enumerate(outputs):
        failed = replace(output, exit_code=1, stderr="cannot open 'tank'")
        with pytest.raises(UnreadableError):
            read(case, [*outputs[:place], failed, *outputs[place + 1 :]])
        with pytest.raises(UnreadableError):
            read(case, [*outputs[:place], *outputs[place + 1 :]])


def test_a_raidz_with_an_unexplained_extra_disk_is_half_expanded() -> None:
    assert read("expand-done", with_pool("expand-done", raidz_expand_stats=None)) is Outcome.HALF
    canceled = with_pool("expand-done", raidz_expand_stats={"state": "CANCELED"})
    assert read("expand-done", canceled) is Outcome.HALF
    begun = with_pool("expand-undone", raidz_expand_stats={"state": "SCANNING"})
    assert read("expand-undone", begun) is Outcome.HALF


def test_a_resilver_that_took_the_place_of_a_scrub_tells_nothing_of_it() -> None:
    resilver = {"function": "RESILVER", "state": "SCANNING"}
    with pytest.raises(UnreadableError):
        read("scrub-done", with_pool("scrub-done", scan_stats=resilver))
    another = with_pool("scrub-done", scan_stats={"function": "NONE", "state": "NONE"})
    assert read("scrub-done", another) is Outcome.UNDONE


def test_the_matrix_has_each_operation_once_on_a_pool_that_it_can_be_done_to() -> None:
    cells = cells_of(Matrix.ADMINISTRATION)
    assert sorted(cell.axes["administration"] for cell in cells) == sorted(OPERATIONS)
    for cell in cells:
        assert (cell.axes["sync"], cell.axes["disks"]) == ("standard", "volatiledisks")


@pytest.mark.parametrize("name", OPERATIONS)
def test_disks_that_the_pool_gets_later_are_there_and_not_in_it(name: str) -> None:
    (cell,) = [c for c in cells_of(Matrix.ADMINISTRATION) if c.axes["administration"] == name]
    plain = cell.but(administration="none")
    spares = [disk for disk in pool_disks(cell) if disk not in pool_disks(plain)]
    assert len(spares) == OPERATIONS[name].spares
    for disk in spares:
        assert disk.serial not in create_script(cell)
        assert replace(disk, serial="data0") == pool_disks(plain)[0], "as the data disks are"


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_can_be_cut_at_each_moment(name: str) -> None:
    cut_points = OPERATIONS[name].cut_points
    assert set(cut_points) == set(Moment)
    for points in cut_points.values():
        for point in points:
            assert 1 <= point.least <= point.most
            assert point.event is None or not point.is_after_end
    assert all(point.is_after_end for point in cut_points[Moment.END])


def test_the_time_after_a_removal_is_a_removal_with_later_cuts() -> None:
    later = {ALL[name] for name in ALL.keys() - OPERATIONS.keys()}
    assert later == {ALL["removed"]}
    removed, remove = ALL["removed"], ALL["remove"]
    assert (removed.script, removed.prepare, removed.read) == (
        remove.script,
        remove.prepare,
        remove.read,
    )
    for points in removed.cut_points.values():
        assert all(point.is_after_end and point.delay_ms_max >= 10_000 for point in points)


def test_only_cells_with_an_administration_run_one() -> None:
    assert Cell.parse(HOME)[ADMINISTRATION] is None
    assert AXIS.default == "none"


@pytest.mark.parametrize(
    ("pool", "name", "why"),
    [
        ({"layout": "mirrored"}, "expand", "'expand' cannot run on a pool of mirrored data disks"),
        ({"layout": "mirrored"}, "remove", "'remove' cannot run on a pool"),
        ({"layout": "raidz1"}, "attach", "'attach' cannot run on a pool"),
        ({"slog": "noslog"}, "log_remove", "cannot run on a pool with"),
        ({"slog": "plp"}, "log_add", "cannot run on a pool with"),
        ({"sync": "always"}, "set_sync", "needs a volume with sync=standard"),
    ],
)
def test_an_operation_that_a_pool_does_not_allow_is_refused(
    pool: dict[str, str], name: str, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        Cell.parse(HOME).but(**pool, administration=name)


NEW_FEATURES = {
    f"feature@{name}"
    for name in (
        "blake3",
        "block_cloning",
        "vdev_zaps_v2",
        "head_errlog",
        "zilsaxattr",
        "raidz_expansion",
    )
}


def test_some_snapshots_of_a_recursive_one_are_half_of_it() -> None:
    (output,) = outputs_of("snapshot-done")
    document = json.loads(output.stdout)
    snapshots = [name for name in document["datasets"] if "@" in name]
    assert len(snapshots) > 5
    del document["datasets"][snapshots[0]]
    fewer = [replace(output, stdout=json.dumps(document))]
    assert read("snapshot-done", fewer) is Outcome.HALF


@pytest.mark.parametrize(
    ("size", "reserved", "outcome"),
    [
        (64, 67, Outcome.UNDONE),
        (128, 67, Outcome.HALF),
        (64, 134, Outcome.HALF),
        (128, 134, Outcome.DONE),
        (96, 134, Outcome.HALF),
    ],
)
def test_a_volume_that_grew_without_its_reservation_is_half_done(
    size: int, reserved: int, outcome: Outcome
) -> None:
    (output,) = outputs_of("set_volsize-half")
    document = json.loads(output.stdout)
    properties = document["datasets"]["tank/other"]["properties"]
    properties["volsize"]["value"] = str(size << 20)
    properties["refreservation"]["value"] = str(reserved << 20)
    changed = [replace(output, stdout=json.dumps(document))]
    assert read("set_volsize-half", changed) is outcome


def with_features(state: str) -> list[ToolOutput]:
    """The output of a pool that was upgraded in part, were all of the new features like this."""
    (output,) = outputs_of("upgrade-in-part")
    document = json.loads(output.stdout)
    for name, of in document["pools"]["tank"]["properties"].items():
        if name in NEW_FEATURES:
            of["value"] = state
    return [replace(output, stdout=json.dumps(document))]


def test_a_pool_with_all_of_the_features_is_upgraded_and_with_none_is_not() -> None:
    assert read("upgrade-in-part", with_features("enabled")) is Outcome.DONE
    assert read("upgrade-in-part", with_features("disabled")) is Outcome.UNDONE


@pytest.mark.parametrize(
    ("case", "said", "instead", "times"),
    [
        # files of two times
        ("rollback-done", "old", "new", 1),
        ("rewind-done", "old", "new", 1),
        ("rewind-undone", "new", "old", 1),
        # old files with a checkpoint, and new ones without it
        ("rewind-done", "checkpoint -", "checkpoint 4096", 1),
        ("rewind-undone", "checkpoint 71168", "checkpoint -", 1),
        # a leg that is neither away nor back, and one that is no part of the pool any more
        ("resilver-undone", '"OFFLINE"', '"FAULTED"', -1),
        ("resilver-undone", '"OFFLINE"', '"UNAVAIL"', -1),
        ("resilver-undone", '"OFFLINE"', '"REMOVED"', -1),
        ("resilver-undone", "virtio-data1", "virtio-other", -1),
        # a disk and its replacement side by side, and neither
        ("replace-done", "virtio-data1", "virtio-data0", -1),
        ("replace-done", "virtio-spare0", "virtio-data1", -1),
    ],
)
def test_an_answer_between_done_and_undone_is_half(
    case: str, said: str, instead: str, times: int
) -> None:
    (output,) = outputs_of(case)
    changed = output.stdout.replace(said, instead, times)
    assert read(case, [replace(output, stdout=changed)]) is Outcome.HALF


def test_messages_before_a_rewound_pool_is_read_are_no_answer() -> None:
    (output,) = outputs_of("rewind-done")
    with pytest.raises(UnreadableError):
        read("rewind-done", [replace(output, stdout=f"warning: - {output.stdout}")])


def test_a_rewound_pool_that_cannot_be_imported_is_half_rewound() -> None:
    (output,) = outputs_of("rewind-done")
    said = "cannot import 'rewound': I/O error\n\tDestroy and re-create the pool.\nrefused\n"
    assert read("rewind-done", [replace(output, stdout=said)]) is Outcome.HALF


def test_a_received_copy_is_whole_or_not_there() -> None:
    listed, compared = outputs_of("receive-done")
    without = json.loads(listed.stdout)
    del without["datasets"]["tank/other@before"]
    half = [replace(listed, stdout=json.dumps(without)), compared]
    assert read("receive-done", half) is Outcome.HALF
    other = [listed, replace(compared, stdout="otherwise\n")]
    assert read("receive-done", other) is Outcome.HALF


def test_a_part_done_stays_so_and_had_not_returned() -> None:
    cell = "iscsi-standard-noslog-upgrade-btrfs-nasonly"
    part = outputs_of("upgrade-in-part")
    judgement = judge(cut(part, end=part, cell=cell))
    assert (judgement.verdict, judgement.administration) == (Verdict.INTACT, "in part")
    assert judge(cut(part, end=part, cell=cell, returned=0)).verdict is Verdict.ROLLED_BACK


def test_an_operation_done_in_part_or_wholly_is_not_less_after_a_second_cut() -> None:
    cell = "iscsi-standard-noslog-upgrade-btrfs-nasonly"
    undone, part, done = (outputs_of(f"upgrade-{state}") for state in ("undone", "in-part", "done"))
    for before, after in ((done, part), (done, undone), (part, undone)):
        assert judge(cut(before, after, end=after, cell=cell)).verdict is Verdict.ROLLED_BACK
    assert judge(cut(part, part, end=part, cell=cell)).verdict is Verdict.INTACT


def test_a_scrub_may_say_that_it_leaves_a_checkpoint_out_and_nothing_else() -> None:
    said = "warning: will not scrub state that belongs to the checkpoint of pool 'tank'\n"
    assert judge(evidence(replace(SCRUB, stdout=said))).verdict is Verdict.INTACT
    for other in (
        f"{said}cannot scrub tank\n",
        said.replace("checkpoint", "vdev"),
        f"{said[:-1]} or so",
    ):
        assert judge(evidence(replace(SCRUB, stdout=other))).verdict is Verdict.INCONCLUSIVE


def test_the_blocks_of_a_destroyed_dataset_are_freed_behind_it() -> None:
    listed, freeing = outputs_of("destroy-done")
    document = json.loads(freeing.stdout)
    document["pools"]["tank"]["properties"]["freeing"]["value"] = "4096"
    some = replace(freeing, stdout=json.dumps(document))
    assert read("destroy-done", [listed, some]) is Outcome.GOING_ON


# The outcome of operations by which disks join and leave a pool.


def test_a_disk_that_is_attached_is_done_when_it_was_resilvered_to_the_end() -> None:
    going_on = with_pool("attach-done", scan_stats={"function": "RESILVER", "state": "SCANNING"})
    assert read("attach-done", going_on) is Outcome.GOING_ON
    assert read("attach-done", with_pool("attach-done", scan_stats=None)) is Outcome.GOING_ON
    for states in (["ACTIVE"], ["COMPLETE", "ACTIVE"]):
        rebuilds = {str(number): {"state": state} for number, state in enumerate(states)}
        scan = {"function": "SCRUB", "state": "SCANNING", "rebuild_stats": rebuilds}
        sequentially = with_pool("attach_sequential-done", scan_stats=scan)
        assert read("attach_sequential-done", sequentially) is Outcome.GOING_ON


def test_a_leg_that_is_back_is_done_when_it_was_resilvered_to_the_end() -> None:
    for scan in (None, {"function": "RESILVER", "state": "SCANNING"}):
        assert (
            read("resilver-done", with_pool("resilver-done", scan_stats=scan)) is Outcome.GOING_ON
        )
