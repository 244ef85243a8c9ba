"""The mark of a tree of files, by which a walk knows equal contents (`vmimages/zfs/recovery/tree.c`)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from torture.facts.zfs.versions import FOLDER

_MAIN = r"""
#include "tree.h"
#include <inttypes.h>
#include <stdio.h>
int main(int count, char **words) {
  mark_t content = MARK_OF_NOTHING;
  const int error = mark_tree(words[count - 1], &content);
  printf("%d %016" PRIx64 "%016" PRIx64 "\n", error, content.a, content.b);
  return 0;
}
"""
_SET_S = 1_000_000_000
_DEADLINE_S = 60


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    sources = FOLDER / "recovery"
    (folder / "main.c").write_text(_MAIN)
    made = folder / "tree"
    strict = ("-std=gnu17", "-Wall", "-Wextra", "-Werror", f"-I{sources}")
    files = (sources / "tree.c", folder / "main.c")
    subprocess.run(["gcc", *strict, "-o", made, *files], check=True, timeout=_DEADLINE_S)
    return made


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "a").write_bytes(b"content" * 1000)
    (root / "b").write_bytes(b"")
    (root / "link").symlink_to("b")
    os.link(root / "b", root / "folder" / "c")
    os.utime(root / "b", (_SET_S, _SET_S))
    return root


def _mark(program: Path, root: Path) -> str:
    run = [program, root]
    answer = subprocess.run(run, check=True, timeout=_DEADLINE_S, capture_output=True, text=True)
    error, mark = answer.stdout.split()
    assert error == "0"
    return mark


def _rename(root: Path) -> None:
    (root / "folder" / "a").rename(root / "folder" / "aa")


def _replace(root: Path) -> None:
    """By a file of the same content, with another inode."""
    shutil.copy2(root / "folder" / "a", root.parent / "copied")
    (root.parent / "copied").replace(root / "folder" / "a")


def _point_elsewhere(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("a")


def _set_attribute(root: Path) -> None:
    os.setxattr(root / "b", "user.a", b"1")


_CHANGES: dict[str, Callable[[Path], object]] = {
    "data": lambda root: (root / "folder" / "a").write_bytes(b"content" * 999 + b"c0ntent"),
    "size": lambda root: (root / "folder" / "a").write_bytes(b"content" * 1000 + bytes(4)),
    "name": _rename,
    "mode": lambda root: (root / "b").chmod(0o600),
    "time that was set": lambda root: os.utime(root / "b", (_SET_S + 1, _SET_S + 1)),
    "links": lambda root: os.link(root / "b", root.parent / "outside"),
    "target": _point_elsewhere,
    "folder": lambda root: (root / "empty").mkdir(),
    "inode": _replace,
    "attribute": _set_attribute,
}


@pytest.mark.parametrize("name", _CHANGES)
def test_each_change_changes_the_mark(name: str, program: Path, tree: Path) -> None:
    before = _mark(program, tree)
    assert before == _mark(program, tree)
    try:
        _CHANGES[name](tree)
    except OSError as error:
        pytest.skip(f"not on this filesystem: {error}")
    assert _mark(program, tree) != before


def test_the_time_of_a_write_does_not_change_it(program: Path, tree: Path) -> None:
    """The log's replay writes at its own time: two recoveries of one state would differ."""
    file = tree / "folder" / "a"
    os.utime(file, ns=(1, _SET_S * 10**9 + 1))
    before = _mark(program, tree)
    os.utime(file, ns=(1, _SET_S * 10**9 + 5 * 10**9 + 2))
    assert _mark(program, tree) == before


def test_a_tree_that_cannot_be_read_is_an_error(program: Path, tmp_path: Path) -> None:
    run = [program, tmp_path / "absent"]
    answer = subprocess.run(run, check=True, timeout=_DEADLINE_S, capture_output=True, text=True)
    assert not answer.stdout.startswith("0 ")
