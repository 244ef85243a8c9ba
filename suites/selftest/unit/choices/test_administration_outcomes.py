"""The outcome of operations on datasets, and of those by which disks join and leave a pool."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from suites.selftest.unit.administered import HOME, cut, outputs_of, read, with_pool
from suites.selftest.unit.good_evidence import SCRUB, evidence
from torture.choices.administration.protocol import Outcome
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.guarantee import UnreadableError, Verdict
from torture.records.scoring.judge import judge

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


def test_files_of_two_times_are_half_a_rollback() -> None:
    (output,) = outputs_of("rollback-done")
    mixed = [replace(output, stdout=output.stdout.replace("old", "new", 1))]
    assert read("rollback-done", mixed) is Outcome.HALF


@pytest.mark.parametrize(
    ("state", "change", "outcome"),
    [
        ("done", ("old", "new"), Outcome.HALF),
        ("undone", ("new", "old"), Outcome.HALF),
        ("done", ("checkpoint -", "checkpoint 4096"), Outcome.HALF),
        ("undone", ("checkpoint 71168", "checkpoint -"), Outcome.HALF),
    ],
)
def test_a_pool_is_rewound_with_all_its_files_and_without_its_checkpoint_or_not_at_all(
    state: str, change: tuple[str, str], outcome: Outcome
) -> None:
    (output,) = outputs_of(f"rewind-{state}")
    changed = replace(output, stdout=output.stdout.replace(*change, 1))
    assert read(f"rewind-{state}", [changed]) is outcome


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


def test_an_operation_without_effect_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a volume with sync=standard"):
        Cell.parse(HOME).but(sync="always", administration="set_sync")


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


@pytest.mark.parametrize("state", ["FAULTED", "UNAVAIL", "REMOVED"])
def test_a_leg_that_is_neither_away_nor_back_is_half(state: str) -> None:
    (output,) = outputs_of("resilver-undone")
    spoilt = replace(output, stdout=output.stdout.replace('"OFFLINE"', f'"{state}"'))
    assert read("resilver-undone", [spoilt]) is Outcome.HALF


def test_a_leg_that_is_no_part_of_the_pool_any_more_is_half() -> None:
    (output,) = outputs_of("resilver-undone")
    gone = replace(output, stdout=output.stdout.replace("virtio-data1", "virtio-other"))
    assert read("resilver-undone", [gone]) is Outcome.HALF


@pytest.mark.parametrize(("layout", "name"), [("mirrored", "remove"), ("raidz1", "attach")])
def test_an_operation_that_this_pool_does_not_allow_is_refused(layout: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' cannot run on a pool"):
        Cell.parse(HOME).but(layout=layout, administration=name)


@pytest.mark.parametrize(("slog", "name"), [("noslog", "log_remove"), ("plp", "log_add")])
def test_a_log_device_is_added_where_there_is_none_and_removed_where_there_is(
    slog: str, name: str
) -> None:
    with pytest.raises(ValueError, match="cannot run on a pool with"):
        Cell.parse(HOME).but(slog=slog, administration=name)


def test_a_disk_and_its_replacement_side_by_side_or_neither_is_half_a_replacement() -> None:
    (output,) = outputs_of("replace-done")
    for stdout in (
        output.stdout.replace("virtio-data1", "virtio-data0"),
        output.stdout.replace("virtio-spare0", "virtio-data1"),
    ):
        assert read("replace-done", [replace(output, stdout=stdout)]) is Outcome.HALF
