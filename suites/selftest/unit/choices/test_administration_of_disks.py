"""The outcome of operations by which disks join and leave a pool."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suites.selftest.unit.administered import HOME, outputs_of, read, with_pool
from torture.choices.administration.protocol import Outcome
from torture.choices.matrix.cells import Cell


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
