"""Files at URLs of fsspec, by its filesystem in memory: whole or absent, and errors of one kind."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from torture.errors import HarnessError
from torture.machines.host.places import opened_place

CONTENT = b"image" * 1000


class OwnError(Exception):
    """As paramiko's, which is no `OSError`."""


@pytest.fixture
def place() -> str:
    return f"memory://{secrets.token_hex(4)}/folder/file.tar"


def write(place: str) -> None:
    with opened_place(place, "wb") as file:
        file.write(CONTENT)


def read(place: str) -> bytes:
    with opened_place(place, "rb") as file:
        return file.read()


def test_a_file_goes_to_a_url_and_back(place: str) -> None:
    with pytest.raises(HarnessError, match="is not there"):
        read(place)
    write(place)
    assert read(place) == CONTENT


def test_a_writer_that_fails_leaves_nothing_at_the_url(place: str) -> None:
    def fail() -> None:
        with opened_place(place, "wb") as file:
            file.write(CONTENT)
            raise OSError("no room")

    with pytest.raises(HarnessError, match="no room"):
        fail()
    with pytest.raises(HarnessError, match="is not there"):
        read(place)


def test_a_failure_of_the_protocol_is_the_machinerys_and_leaves_nothing(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_midway(self: Any, source: str, target: str) -> None:
        self.pipe_file(target, Path(source).read_bytes()[:100])
        raise OwnError("the connection is lost")

    monkeypatch.setattr(MemoryFileSystem, "put_file", fail_midway)
    with pytest.raises(HarnessError, match="the connection is lost"):
        write(place)
    with pytest.raises(HarnessError, match="is not there"):
        read(place)


def test_a_url_of_no_protocol_is_refused() -> None:
    with pytest.raises(HarnessError, match="Protocol not known"):
        read("nothing://host/file")
