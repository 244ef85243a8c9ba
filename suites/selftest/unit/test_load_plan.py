"""The load's plan: drawn from the seed, and always possible."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from vmimages.client.load import plan
from vmimages.client.load.plan import Dice, Operation, Planner, busy_files, keepsakes

OPERATIONS = 8000


def job(**changes: object) -> dict[str, Any]:
    made: dict[str, Any] = {
        "seed": 99,
        "mode": "files",
        "writers": 3,
        "files_per_writer": 4,
        "blocks_per_file_max": 12,
        "keepsakes_per_writer": 100,
    }
    return made | changes


def draw(writer: int = 0, **changes: object) -> list[Operation]:
    planner = Planner(job(**changes), writer)
    return [planner.draw() for _ in range(OPERATIONS)]


def as_tuples(operations: list[Operation]) -> list[tuple[object, ...]]:
    return [(o.kind, o.file, o.blocks, o.size_blocks, o.sync) for o in operations]


def test_the_dice_are_splitmix64() -> None:
    # The first outputs for seed 1234567, as published with the algorithm.
    dice = Dice(1234567)
    assert [dice.roll() for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    assert as_tuples(draw()) == as_tuples(draw())
    assert as_tuples(draw()) != as_tuples(draw(seed=100))
    assert as_tuples(draw(writer=0)) != as_tuples(draw(writer=1))


@pytest.mark.parametrize("mode", ["files", "raw"])
def test_every_operation_is_possible_on_what_the_earlier_ones_left(mode: str) -> None:
    sizes: dict[int, int] = {}
    for operation in draw(mode=mode):
        size = sizes.get(operation.file)
        if operation.kind == plan.CREATE:
            assert size is None
            assert operation.blocks == tuple(range(operation.size_blocks))
        else:
            assert size is not None, operation.kind
        if operation.kind == plan.APPEND:
            assert operation.blocks == tuple(range(size or 0, operation.size_blocks))
        if operation.kind in (plan.OVERWRITE, plan.DSYNC, plan.SCRIBBLE):
            assert operation.size_blocks == size
            assert operation.blocks
            assert max(operation.blocks) < operation.size_blocks
            assert list(operation.blocks) == sorted(set(operation.blocks))
        assert operation.size_blocks <= 12
        sizes[operation.file] = operation.size_blocks
        if operation.kind == plan.UNLINK:
            del sizes[operation.file]


def test_each_kind_of_operation_has_its_share() -> None:
    kinds = Counter(operation.kind for operation in draw())
    assert set(kinds) == {
        plan.OVERWRITE,
        plan.DSYNC,
        plan.APPEND,
        plan.REPLACE,
        plan.CREATE,
        plan.UNLINK,
        plan.SCRIBBLE,
    }
    assert min(kinds.values()) > OPERATIONS * 0.005


@pytest.mark.parametrize("mode", ["files", "raw"])
def test_writers_share_no_file_and_the_busy_ones_are_all_used(mode: str) -> None:
    touched = [{operation.file for operation in draw(writer=w, mode=mode)} for w in range(3)]
    assert not touched[0] & touched[1]
    assert not touched[0] & touched[2]
    assert not touched[1] & touched[2]
    assert set(busy_files(job())) <= set.union(*touched)


@pytest.mark.parametrize("mode", ["files", "raw"])
def test_a_keepsake_is_made_scribbled_on_synced_and_left_alone(mode: str) -> None:
    kinds: dict[int, list[str]] = {}
    for operation in draw(mode=mode):
        if operation.file in keepsakes(job()):
            kinds.setdefault(operation.file, []).append(operation.kind)
            assert operation.is_last == (len(kinds[operation.file]) == 3)
    assert len(kinds) == 100
    whole = [plan.CREATE, plan.SCRIBBLE, plan.OVERWRITE]
    assert all(life == whole[: len(life)] for life in kinds.values())
    assert sum(life == whole for life in kinds.values()) > 80


def test_in_a_quiet_phase_nobody_syncs() -> None:
    operations = draw()
    cycle = plan.LOUD_OPERATIONS + plan.QUIET_OPERATIONS
    for first in range(0, OPERATIONS, cycle):
        quiet = operations[first + plan.LOUD_OPERATIONS : first + cycle]
        synced = [o for o in quiet if o.kind != plan.SCRIBBLE]
        # Only a busy file that does not exist must be made before it can be scribbled on.
        assert all(o.kind == plan.CREATE for o in synced)
        assert len(synced) <= 4
