"""The place where a load works, by the cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.choices.filesystems.protocol import MOUNT_POINT
from torture.choices.matrix.cells import Cell
from torture.choices.workloads.protocol import Brought, Place
from torture.records.record.specs import TrialSpec
from torture.trials.trial.shared.trial import Trial

_BROUGHT = (Brought(load="fio_own", path="/job", sha256="0"),)


def trial_of(cell: str, brought: tuple[Brought, ...] = ()) -> Trial:
    spec = TrialSpec(cell=Cell.parse(cell), index=0, seed=1, load_ms=1, brought=brought)
    return Trial.begin(spec, folder=Path(), scratch=Path(), nas_host="nas")


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
def test_a_load_gets_the_traits_of_its_transport(
    name: str, device: str | None, place: Place
) -> None:
    trial = trial_of(name)
    assert (trial.attachment.device, trial.place) == (device, place)


def test_a_load_gets_the_files_that_users_brought() -> None:
    trial = trial_of("iscsi-always-noslog-ext4-bothdie", _BROUGHT)
    assert trial.place.brought == _BROUGHT


@pytest.mark.parametrize(
    ("name", "images"),
    [
        ("iscsi-always-noslog-ext4-bothdie", {"nas": "nas", "client": "client"}),
        ("samba-always-noslog-files-bothdie", {"nas": "nas_samba", "client": "client"}),
        (
            "samba-always-noslog-files-postgres-bothdie",
            {"nas": "nas_samba", "client": "client_databases"},
        ),
    ],
)
def test_machines_are_of_the_images_that_server_and_load_need(
    name: str, images: dict[str, str]
) -> None:
    assert trial_of(name).images == images
