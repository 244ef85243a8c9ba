"""What is read back of dpkg's packages, with programs that say what those of a damaged root would say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vmimages.client.load.applications import application_of
from vmimages.client.load.applications.rows import payload_of

TRIAL = 7
SIZE = 600
GOOD = json.dumps({"before": [1, 2], "sizes": [SIZE]})


class Root:
    """One installed package, and the two programs that are asked about it."""

    def __init__(self, base: Path) -> None:
        self.programs = base / "programs"
        self.programs.mkdir()
        self.job = {
            "application": "dpkg",
            "trial": TRIAL,
            "seed": 1,
            "directory": str(base / "roots"),
            "writers": 1,
        }
        application_of(self.job).prepare()
        self.file = base / "roots/0/usr/share/load0-0/f0"
        self.file.parent.mkdir()
        self.file.write_bytes(payload_of(TRIAL, 3, 0, SIZE))
        self.described(GOOD)
        self.program("dpkg", "exit 0")

    def program(self, name: str, script: str) -> None:
        """A program of this name that is this script."""
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)

    def described(self, description: str) -> None:
        """What dpkg says the package was described as."""
        said = self.programs / "said"
        said.write_text(f"load0-0\t3\tinstalled\t{description}\n")
        self.program("dpkg-query", f"cat {said}")

    def read(self) -> dict[str, Any]:
        return application_of(self.job).read()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    made = Root(tmp_path)
    monkeypatch.setenv("PATH", str(made.programs), prepend=":")
    return made


def test_a_package_is_there_with_all_before_it(root: Root) -> None:
    read = root.read()
    assert read["whole"] == [1, 2, 3]
    assert not any(read[name] for name in ("parts", "complaints", "refused"))


@pytest.mark.parametrize(
    "description",
    ["", "[1, 2]", "3", '{"before": [1, 2, 600]}', '{"sizes": [600]}', '{"before": 1, "sizes": 2}'],
)
def test_a_description_that_nobody_wrote_is_refused(root: Root, description: str) -> None:
    """So a status file reads of which a sector is gone, or is older."""
    root.described(description)
    assert root.read()["refused"].startswith("root 0: ")


def test_a_size_that_no_file_has_is_compared_with_that_of_the_file(root: Root) -> None:
    """Two numbers that a torn sector made one: nobody holds such a file in memory."""
    root.described(GOOD.replace(str(SIZE), f"{SIZE}99999999999999"))
    read = root.read()
    assert read["parts"] == {"3": "load0-0: f0 holds something else"}
    assert read["whole"] == [1, 2]


def test_other_content_of_the_same_size_is_told(root: Root) -> None:
    root.file.write_bytes(payload_of(TRIAL, 4, 0, SIZE))
    assert list(root.read()["parts"]) == ["3"]


@pytest.mark.parametrize("check", ["--audit", "--verify"])
@pytest.mark.parametrize("ending", ["exit 2", "kill -ABRT $$"])
def test_a_check_that_could_not_look_is_refused(root: Root, check: str, ending: str) -> None:
    root.program("dpkg", f'case "$*" in *{check}*) {ending};; esac')
    assert f"dpkg {check}" in root.read()["refused"]


def test_a_check_that_found_something_is_a_complaint(root: Root) -> None:
    root.program("dpkg", 'case "$*" in *--audit*) echo " load0-9 is broken"; exit 1;; esac')
    assert root.read()["complaints"] == ["dpkg --audit: load0-9 is broken"]
