"""The operations on names, sizes and attributes that the load draws, and their system calls."""

from __future__ import annotations

import errno
import mmap
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from vmimages.client.load import read
from vmimages.client.load.applications import TRANSACTION, Transaction
from vmimages.client.load.applications.posix import performing
from vmimages.client.load.applications.posix.chains import CHAINS, Chains
from vmimages.client.load.applications.posix.drawing import _WEIGHTS, OPTIONAL, Drawing


def test_every_sync_that_is_announced_is_called_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []

    class Mapping(mmap.mmap):
        def flush(self, *arguments: Any) -> None:
            called.append("msync")
            super().flush(*arguments)

    class Libc:
        fallocate = performing._LIBC.fallocate

        @staticmethod
        def syncfs(_descriptor: int) -> int:
            called.append("syncfs")
            return 0

    opened = os.open

    def opening(path: str, flags: int, *arguments: Any, **more: Any) -> int:
        if how := {os.O_DSYNC: "dsync", os.O_SYNC: "osync"}.get(flags & os.O_SYNC):
            called.append(how)
        return opened(path, flags, *arguments, **more)

    supported = frozenset(performing.supported_in(str(tmp_path)))
    drawing = Drawing({"seed": 4, "writers": 3}, 0, supported)
    performer = performing.Performing(1, str(tmp_path), 0)
    monkeypatch.setattr(performing, "_LIBC", Libc)
    monkeypatch.setattr(mmap, "mmap", Mapping)
    monkeypatch.setattr(os, "open", opening)
    monkeypatch.setattr(os, "fsync", lambda _descriptor: called.append("fsync"))
    monkeypatch.setattr(os, "fdatasync", lambda _descriptor: called.append("fdatasync"))
    seen = set()
    for seq in range(1, 400):
        drawn = drawing.draw()
        performer.perform(drawn, seq)
        what = drawn.what
        by_itself = {"mmap": "msync", "dsync": "dsync", "osync": "osync"}.get(what.get("how", ""))
        before = [by_itself] if by_itself else ["fsync"] if what["do"] == "utimens" else []
        assert called == [*before, *(call for call, _ in what["syncs"])], what
        seen.update(called)
        called.clear()
    assert seen >= {"fsync", "fdatasync", "syncfs", "dsync", "osync"}


def test_a_file_stays_open_until_its_last_name_is_gone(tmp_path: Path) -> None:
    """An error of write-back is reported to every process that has the file open."""
    performer = performing.Performing(1, str(tmp_path), 0)

    def opened() -> set[str]:
        links = [Path(f"/proc/self/fd/{number}") for number in range(256)]
        paths = [link.readlink() for link in links if link.is_symlink()]
        return {path.name for path in paths if path.parent == tmp_path}

    def done(seq: int, **what: Any) -> set[str]:
        performer.perform(Transaction(kind=TRANSACTION, what={"syncs": [], **what}), seq)
        return opened()

    assert done(1, do="create", whom=3, at=[0, "f"], runs=[[0, 1]]) == {"f"}
    assert done(2, do="link", whom=3, at=[0, "l"]) == {"f"}
    assert done(3, do="rename", whom=3, was=[0, "f"], at=[0, "r"]) == {"r"}
    assert done(4, do="unlink", whom=3, at=[0, "r"]) == {"l"}
    assert done(5, do="unlink", whom=3, at=[0, "l"]) == set()


def test_an_operation_that_a_filesystem_refuses_is_never_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_arguments: Any, **_more: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, "not here")

    monkeypatch.setattr(performing, "_fallocate", refused)
    monkeypatch.setattr(os, "setxattr", refused)
    supported = performing.supported_in(str(tmp_path))
    assert OPTIONAL - set(supported) == {"punch", "zero", "xattr"}
    assert list(tmp_path.iterdir()) == []
    drawing = Drawing({"seed": 3, "writers": 3}, 0, frozenset(supported))
    assert not {drawing.draw().what["do"] for _ in range(500)} & {"punch", "zero", "xattr"}


def test_a_disk_that_fails_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(*_arguments: Any, **_more: Any) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "setxattr", failed)
    with pytest.raises(OSError, match="broken"):
        performing.supported_in(str(tmp_path))


def test_where_o_direct_is_refused_the_page_cache_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refusing(path: str, flags: int, *arguments: Any, **more: Any) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "no O_DIRECT")
        return opened(path, flags, *arguments, **more)

    monkeypatch.setattr(os, "open", refusing)
    performer = performing.Performing(1, str(tmp_path), 0)
    made = {"do": "create", "whom": 3, "at": [0, "f3"], "runs": [[0, 8]], "syncs": [["fsync", 3]]}
    over = {
        "do": "write",
        "how": "direct",
        "whom": 3,
        "runs": [[0, 8]],
        "syncs": [["fdatasync", 3]],
    }
    for seq, what in enumerate((made, over), start=1):
        performer.perform(Transaction(kind=TRANSACTION, what=what), seq)
    tree = read.run(
        {"mode": "application", "application": "posix", "trial": 1, "writers": 0, "directory": ""}
    )
    assert tree["trees"] == []
    assert len(performer.take_times()[0]) == 2
    assert (tmp_path / "f3").stat().st_size == 4096


def test_where_names_are_stable_they_are_acknowledged_without_a_sync() -> None:
    """And syncfs, which Linux's NFS client does not wait for, is not called."""
    drawing = Drawing({"seed": 5, "writers": 3, "names_are_stable": True}, 1, OPTIONAL)
    naming = {"create", "mkdir", "rmdir", "symlink", "link", "rename", "unlink"}
    seen = set()
    for _ in range(3000):
        drawn = drawing.draw()
        what = drawn.what
        does_name = what["do"] in naming
        assert what.get("names_are_stable", False) is does_name
        by_itself = what.get("how") in ("dsync", "osync", "mmap")
        assert drawn.is_durable is bool(does_name or what["syncs"] or by_itself)
        assert "syncfs" not in [call for call, _ in what["syncs"]]
        seen.add((what["do"], bool(what["syncs"])))
    assert {(verb, is_synced) for verb in naming for is_synced in (True, False)} <= seen


def test_a_name_of_a_directory_may_become_a_file_and_no_other_name_is_reused() -> None:
    """The oracle takes a directory that it finds for the only one of that name."""
    drawing = Drawing({"seed": 5, "writers": 3}, 1, OPTIONAL)
    drawing._vacated.append((99, "d98"))  # of a directory that has gone, too: a rare case
    made_by: dict[int, str] = {}
    holders: dict[tuple[int, str], list[str]] = {}
    directories, left_by = {1}, dict[tuple[int, str], str]()
    for what in (drawing.draw().what for _ in range(3000)):
        verb, number = what["do"], what["whom"]
        if verb == "rmdir":
            directories.remove(number)
            left_by[tuple(what["at"])] = verb
        elif verb == "rename" and made_by[number] == "mkdir":
            left_by[tuple(what["was"])] = verb
        elif verb in ("create", "mkdir", "symlink"):
            made_by[number] = verb
            directories |= {number} if verb == "mkdir" else set()
        if verb in ("create", "mkdir", "symlink", "link", "rename") and "instead_of" not in what:
            assert what["at"][0] in directories
            holders.setdefault(tuple(what["at"]), []).append(made_by[number])
    reused = {at: kinds for at, kinds in holders.items() if len(kinds) > 1}
    assert all(kinds == ["mkdir", "create"] for kinds in reused.values())
    assert min(Counter(left_by[at] for at in reused).values()) > 15
    assert {left_by[at] for at in reused} == {"rmdir", "rename"}


def test_every_verb_goes_on_being_drawn() -> None:
    """Directories fill, and what is full is never removed: some have to stay empty."""
    drawing = Drawing({"seed": 5, "writers": 3}, 1, OPTIONAL)
    drawn = [drawing.draw().what for _ in range(3000)][1000:]
    times = Counter(what["do"] for what in drawn)
    said_otherwise = {"direct", "dsync", "osync", "mmap", "sparse", "replace"}
    assert times.keys() == {verb for verb, _ in _WEIGHTS} - said_otherwise
    assert min(times.values()) > 20
    moved = (what for what in drawn if what["do"] == "rename" and "instead_of" not in what)
    assert {what["at"][1][0] for what in moved} == {"r", "d", "s"}  # files, directories, links


def test_an_acknowledged_operation_always_has_something_to_sync() -> None:
    """Truncated to the same length, or punched where nothing is, nothing would reach the NAS."""
    drawing = Drawing({"seed": 5, "writers": 3}, 1, OPTIONAL)
    sizes: dict[int, int] = {}
    data: dict[int, set[int]] = {}
    seen = set()
    for _ in range(3000):
        drawn = drawing.draw()
        what = drawn.what
        assert drawn.is_durable is bool(
            what["syncs"] or what.get("how") in ("dsync", "osync", "mmap")
        )
        seen.add((what["do"], drawn.kind))
        file = what.get("whom", -1)
        if what["do"] in ("create", "write"):
            written = {s for first, count in what["runs"] for s in range(first, first + count)}
            data.setdefault(file, set()).update(written)
            sizes[file] = max(sizes.get(file, 0), 1 + max(written))
        elif what["do"] == "truncate":
            assert what["sectors"] != sizes[file]
            sizes[file] = what["sectors"]
            data[file] = {sector for sector in data[file] if sector < sizes[file]}
        elif what["do"] in ("punch", "zero"):
            first, count = what["run"]
            assert first in data[file]
            assert first + count <= sizes[file]
            data[file] -= set(range(first, first + count))
    assert len(seen) > 25


def _rounds_of_chains(count: int, **job: Any) -> list[dict[str, Any]]:
    drawing = Chains({"seed": 6, "writers": 1, **job}, 0, OPTIONAL)
    drawn: list[dict[str, Any]] = []
    while count >= 0:
        drawn.append(drawing.draw().what)
        count -= "closes" in drawn[-1]
    return drawn[:-1]


def test_a_chain_is_carried_out_between_two_commits_and_ends_with_a_sync() -> None:
    drawn = _rounds_of_chains(20)
    begun = [at for at, what in enumerate(drawn) if "closes" in what]
    commits = [at for at, what in enumerate(drawn) if ["syncfs", 0] in what["syncs"]]
    assert len(commits) == 20
    assert {call for what in drawn for call, _ in what["syncs"]} == {"fsync", "syncfs"}
    for begin, end in zip(begun, commits, strict=True):
        assert {what["do"] for what in drawn[begin : end + 1]} == {"mkdir", "create"}
    assert drawn[-1]["syncs"]
    assert sum(what["do"] == "rmdir" for what in drawn) == 20, "each chain once in a round"
    verbs = {step.split()[0] for chain in CHAINS for step in chain.split("; ")}
    said = {"move": "rename", "replace": "rename"}
    assert {what["do"] for what in drawn} == {said.get(verb, verb) for verb in verbs} - {"sync"}


def test_a_sync_of_a_chain_has_a_change_of_its_own_to_store() -> None:
    """XFS stores its whole log with each sync: one without a change since then would store nothing."""
    changed: set[int] = set()
    for what in _rounds_of_chains(400):
        changed |= {what["whom"], what["at"][0]} if "at" in what else {what["whom"]}
        changed |= {what["was"][0]} if "was" in what else set()
        if what["syncs"]:
            assert changed & {whom for _, whom in what["syncs"]}, what
            changed.clear()


def test_no_directory_takes_a_name_that_a_directory_had() -> None:
    """The oracle takes a directory that it finds for the only one of that name."""
    drawn = _rounds_of_chains(20)
    directories = {what["whom"] for what in drawn if what["do"] == "mkdir"}
    taken = [tuple(what["at"]) for what in drawn
             if what["do"] in ("mkdir", "rename") and what["whom"] in directories]  # fmt: skip
    assert len(taken) == len(set(taken)) > 20 * 3 * len(CHAINS)


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_chains_keep_no_more_open_than_those_of_a_round(tmp_path: Path) -> None:
    """A load of a minute makes some thousand directories."""
    drawing = Chains({"seed": 6, "writers": 1}, 0, OPTIONAL)
    performer = performing.Performing(1, str(tmp_path), 0)
    before, most = _open_files(), 0
    for seq in range(1, 600):
        performer.perform(drawing.draw(), seq)
        most = max(most, _open_files() - before)
    assert 25 < most < 60


def test_chains_without_links_where_there_are_none() -> None:
    drawing = Chains({"seed": 6, "writers": 1}, 0, OPTIONAL - {"symlink", "link"})
    verbs = {drawing.draw().what["do"] for _ in range(500)}
    assert verbs == {"mkdir", "create", "rename", "write"}


def test_where_names_are_stable_chains_call_no_syncfs() -> None:
    drawn = _rounds_of_chains(5, names_are_stable=True)
    assert {call for what in drawn for call, _ in what["syncs"]} == {"fsync"}
    assert {what["do"] for what in drawn if "names_are_stable" not in what} == {"write"}
