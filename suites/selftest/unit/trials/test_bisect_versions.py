"""The versions of a search: packaged ones by their numbers, and commits of a real repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from torture.errors import HarnessError
from torture.trials.bisect.searched_versions import CommitVersions, packaged_between


def _git(folder: Path, *arguments: str) -> str:
    author = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ("git", "-C", folder, *author, *arguments), check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def _commit(tree: Path, number: int, *, file: str = "module.c") -> str:
    (tree / file).write_text(f"{number}\n")
    _git(tree, "add", file)
    _git(tree, "commit", "--quiet", "--message", f"change {number}")
    return _git(tree, "rev-parse", "HEAD")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "zfs"
    folder.mkdir()
    _git(folder, "init", "--quiet", "--initial-branch=master")
    return folder


def test_commits_lie_between_the_ends_and_are_checked_out(tree: Path, tmp_path: Path) -> None:
    commits = [_commit(tree, number) for number in range(6)]
    (tmp_path / "clone.part" / ".git").mkdir(parents=True)  # an interrupted one
    versions = CommitVersions.between(tree, good=commits[1], bad="HEAD", clone=tmp_path / "clone")
    assert list(versions.names) == commits[1:]
    assert not versions.is_of_a_fix
    for number in (2, 0, 4):
        (tmp_path / "clone" / "built.o").write_text("left by a build")
        folder = Path(versions.choice(number))
        assert (folder / "module.c").read_text() == f"{number + 1}\n"
        assert not (folder / "built.o").exists()
    assert versions.words(0).endswith("change 1")
    assert _git(tree, "status", "--porcelain", "--branch") == "## master"
    assert _git(tree, "worktree", "list").count("\n") == 0


def test_a_newer_good_one_is_a_search_for_the_fix(tree: Path, tmp_path: Path) -> None:
    commits = [_commit(tree, number) for number in range(4)]
    versions = CommitVersions.between(
        tree, good=commits[3], bad=commits[0], clone=tmp_path / "clone"
    )
    assert list(versions.names) == commits[::-1]
    assert versions.is_of_a_fix


def test_only_commits_of_a_part_of_the_tree_are_candidates(tree: Path, tmp_path: Path) -> None:
    commits = [
        _commit(tree, number, file=file)
        for number, file in enumerate(("module.c", "README", "module.c", "README", "README"))
    ]
    versions = CommitVersions.between(
        tree, good=commits[0], bad=commits[4], clone=tmp_path / "clone", paths=["module.c"]
    )
    assert list(versions.names) == [commits[0], commits[2], commits[4]]


def test_a_merge_is_one_commit(tree: Path, tmp_path: Path) -> None:
    first = _commit(tree, 0)
    _git(tree, "checkout", "--quiet", "-b", "side")
    _commit(tree, 1, file="side.c")
    _git(tree, "checkout", "--quiet", "master")
    second = _commit(tree, 2)
    _git(tree, "merge", "--quiet", "--no-edit", "side")
    merge = _git(tree, "rev-parse", "HEAD")
    versions = CommitVersions.between(tree, good=first, bad="master", clone=tmp_path / "clone")
    assert list(versions.names) == [first, second, merge]


def test_ends_that_are_no_line_are_refused(tree: Path, tmp_path: Path) -> None:
    first = _commit(tree, 0)
    second = _commit(tree, 1)
    _git(tree, "checkout", "--quiet", "-b", "side", first)
    side = _commit(tree, 2)
    with pytest.raises(HarnessError, match="ancestor"):
        CommitVersions.between(tree, good=second, bad=side, clone=tmp_path / "clone")
    with pytest.raises(HarnessError, match="rev-parse"):
        CommitVersions.between(tree, good="nothing", bad=side, clone=tmp_path / "clone")


def test_packaged_versions_are_in_the_order_of_their_numbers() -> None:
    assert packaged_between("zfs", good="2.1.11", bad="2.4.4").names == (
        "2.1.11", "2.3.2", "2.3.9", "2.4.4",
    )  # fmt: skip
    back = packaged_between("linux-client", good="trixie-backports", bad="bookworm")
    assert back.names == ("trixie-backports", "trixie", "bookworm-backports", "bookworm")
    assert back.is_of_a_fix
    with pytest.raises(HarnessError, match=r"no version 9\.9"):
        packaged_between("zfs", good="9.9", bad="2.4.4")
    with pytest.raises(HarnessError, match="both ends"):
        packaged_between("zfs", good="2.4.4", bad="2.4.4")
