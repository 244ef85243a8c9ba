"""The outcome of operations on datasets, properties and features, and of checkpoints."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from suites.selftest.unit.administered import HOME, cut, outputs_of, read
from suites.selftest.unit.good_evidence import SCRUB, evidence
from torture.choices.administration.protocol import Outcome
from torture.choices.matrix.cells import Cell
from torture.facts.evidence.folder import ToolOutput
from torture.oracles.verdict.unreadable import UnreadableError
from torture.oracles.verdict.verdicts import Verdict
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
