"""The output of a shelf's server is where an error says it is, when the recordings are gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from torture.errors import HarnessError
from torture.facts.recording.disks import ShelfDisk
from torture.machines.shelf.server import Shelf


def test_a_server_that_cannot_start_leaves_its_reason_in_a_file(folder: Path) -> None:
    logs = folder / "evidence"
    logs.mkdir()
    shelf = Shelf(directory=folder / "shelf", socket=folder / "s", logs=logs)
    with pytest.raises(HarnessError, match="the shelf ended at once") as failure:
        shelf.start([ShelfDisk(serial="d", size_mib=64)], view=folder / "no.view.json")
    shelf.stop()
    shutil.rmtree(shelf.directory)
    name = failure.value.hint.removeprefix("read ")
    assert Path(name).parent == logs
    assert "no.view.json" in Path(name).read_text()
