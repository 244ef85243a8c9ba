"""The outcome of an administration, by real outputs of ZFS's tools before and after cuts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from suites.selftest.unit.administered import (
    ALL,
    CASES,
    HOME,
    OPERATIONS,
    outputs_of,
    read,
    with_pool,
)
from suites.selftest.unit.status_as_text import in_text
from torture.choices.administration import AXIS
from torture.choices.administration.protocol import Moment, Outcome
from torture.choices.matrix.cells import ADMINISTRATION, Cell, cells_of
from torture.facts.axes.sweeps import Matrix
from torture.facts.zfs.versions import zfs_version
from torture.machines.nas.pool import create_script, pool_disks
from torture.oracles.verdict.guarantee import UnreadableError


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


@pytest.mark.parametrize("case", CASES)
def test_a_text_cut_off_amid_a_line_or_garbled_is_never_read_as_anything(case: str) -> None:
    answers = [in_text(output) for output in outputs_of(case)]
    for place, answer in enumerate(answers):
        for stdout in _spoilt(answer.stdout):
            spoilt = [*answers]
            spoilt[place] = replace(answer, stdout=stdout)
            with pytest.raises(UnreadableError):
                read(case, spoilt)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_was_seen_undone_and_done(name: str) -> None:
    assert {f"{name}-undone", f"{name}-done"} <= set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_an_output_cut_off_or_garbled_is_never_read_as_anything(case: str) -> None:
    outputs = outputs_of(case)
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


def test_an_operation_that_a_pool_does_not_allow_is_refused() -> None:
    with pytest.raises(ValueError, match="'expand' cannot run on a pool of mirrored data disks"):
        Cell.parse(HOME).but(layout="mirrored", administration="expand")
