"""What a load is told of where it works, by the cell."""

from __future__ import annotations

import pytest

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.cells import Cell
from torture.choices.workloads.protocol import Brought, Place
from torture.trials.trial.client_load.place import place_of

_BROUGHT = (Brought(load="fio_own", path="/job", sha256="0"),)


@pytest.mark.parametrize(
    ("name", "device", "place"),
    [
        ("iscsi-always-noslog-ext4-bothdie", "/dev/vdb", Place(directory=MOUNT_POINT)),
        ("iscsi-always-noslog-raw-bothdie", "/dev/vdb", Place(device="/dev/vdb")),
        ("nfs_image-always-noslog-btrfs-bothdie", "/dev/vdb", Place(directory=MOUNT_POINT)),
        (
            "nfs3-always-noslog-files-bothdie",
            None,
            Place(directory=MOUNT_POINT, names_are_stable=True),
        ),
        (
            "smb-always-noslog-files-bothdie",
            None,
            Place(directory=MOUNT_POINT),
        ),
    ],
)
def test_a_load_is_told_what_its_road_is_like(name: str, device: str | None, place: Place) -> None:
    assert place_of(Cell.parse(name), device=device, brought=()) == place


def test_a_load_is_told_what_was_brought_for_it() -> None:
    cell = Cell.parse("iscsi-always-noslog-ext4-bothdie")
    assert place_of(cell, device="/dev/vdb", brought=_BROUGHT).brought == _BROUGHT
