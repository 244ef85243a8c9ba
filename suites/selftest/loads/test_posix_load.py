"""The load of names, sizes, holes and attributes, on a real directory: written, read, tampered with."""

from __future__ import annotations

import json
import os
import subprocess
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suites.selftest.loads.load_host import run_load
from torture.choices.matrix.cells import TRANSPORT
from torture.choices.workloads import AXIS as WORKLOAD
from torture.choices.workloads.protocol import Place, Workload
from torture.facts.evidence.ledger import Begin, Failed
from torture.oracles.verdict.guarantee import Verdict
from torture.oracles.verdict.judgement import Findings
from torture.oracles.verdict.trees.tree_oracle import consult_trees
from torture.oracles.verdict.trees.tree_syncs import parse_trees
from vmimages.client.load import read
from vmimages.client.load.applications import application_of

ACKNOWLEDGEMENTS = 300
POSIX = WORKLOAD.choice("posix").value
CHAINS = WORKLOAD.choice("chains").value


def _copied(old: Path, new: Path) -> None:
    """Links, attributes and times, too."""
    subprocess.run(["cp", "-a", old, new], check=True)


class Written:
    """One finished load, and a copy of its trees from a moment when no writer was writing."""

    def __init__(self, base: Path, workload: Workload = POSIX) -> None:
        self.job = workload.job(seed=11, place=Place(directory=str(base)))
        self.directory, self.earlier = Path(self.job["directory"]), base / "earlier"
        application_of(self.job).prepare()
        self.supported = set(json.loads((self.directory / "supported.json").read_bytes()))
        self.ledger = run_load(
            self.job,
            stop_after=ACKNOWLEDGEMENTS,
            pause_after=ACKNOWLEDGEMENTS // 2,
            meanwhile=lambda: _copied(self.directory, self.earlier),
        )

    def judged(self, directory: Path) -> Findings:
        document = read.run(self.job | {"directory": str(directory)})
        return consult_trees(self.ledger, parse_trees(json.dumps(document)), cut_ms=None)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(tmp_path_factory.mktemp("posix"))


def test_the_load_gets_whether_names_are_stable() -> None:
    """Only files over NFS have it; elsewhere the job stays as it was."""
    traits = {choice.name: choice.value.traits for choice in TRANSPORT.choices}
    assert {name for name, has in traits.items() if has.names_are_stable} == {"nfs3", "nfs4"}
    place = Place(directory="/mnt")
    usual = POSIX.job(seed=11, place=place)
    assert "names_are_stable" not in usual
    stable = POSIX.job(seed=11, place=replace(place, names_are_stable=True))
    assert stable == usual | {"names_are_stable": True}
    application: Any = application_of(stable)
    application._supported = frozenset()
    assert application.planner(0).draw().what["names_are_stable"] is True


def test_completed_operations_read_back_intact(written: Written) -> None:
    events = written.ledger.events
    assert not [event for event in events if isinstance(event, Failed)]
    done = {event.what["do"] for event in events if isinstance(event, Begin)}
    assert done >= {"create", "write", "truncate", "mkdir", "rmdir", "rename", "unlink"}
    assert done >= written.supported - {"mmap", "sparse"}
    findings = written.judged(written.directory)
    assert (findings.verdict, findings.lost, findings.reasons) == (Verdict.INTACT, 0, ())
    assert findings.acknowledged > ACKNOWLEDGEMENTS // 2


def test_completed_chains_read_back_intact_and_an_older_state_does_not(tmp_path: Path) -> None:
    chains = Written(tmp_path, CHAINS)
    assert not [event for event in chains.ledger.events if isinstance(event, Failed)]
    findings = chains.judged(chains.directory)
    assert (findings.verdict, findings.lost, findings.reasons) == (Verdict.INTACT, 0, ())
    assert findings.acknowledged > ACKNOWLEDGEMENTS // 5
    assert chains.judged(chains.earlier).verdict is Verdict.ROLLED_BACK


def test_a_copy_of_it_is_as_good(written: Written, tmp_path: Path) -> None:
    _copied(written.directory, tmp_path / "copy")
    assert written.judged(tmp_path / "copy").verdict is Verdict.INTACT


def test_an_older_state_is_one_that_went_back(written: Written) -> None:
    findings = written.judged(written.earlier)
    assert findings.verdict is Verdict.ROLLED_BACK
    assert findings.lost > 0


def _files(tree: Path) -> Iterator[Path]:
    yield from (
        path for path in sorted(tree.rglob("*")) if path.is_file() and not path.is_symlink()
    )


def _each(change: Callable[[Path], object]) -> Callable[[Path], None]:
    """Done to all files: what is wrong of those that may be so is wrong of others."""

    def changed(tree: Path) -> None:
        for path in list(_files(tree)):
            if path.name != "supported.json":
                change(path)

    return changed


def _rewrite(path: Path, sector: bytes, *, at: int = 0) -> None:
    """Its first sector, with the times that the file had."""
    status = path.stat()
    with path.open("r+b") as file:
        file.seek(at)
        file.write(sector)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _zero_beginning(path: Path) -> None:
    _rewrite(path, bytes(512))


def _flip(path: Path) -> None:
    sector = bytearray(path.read_bytes()[:512])
    sector[100] ^= 1
    _rewrite(path, bytes(sector))


def _repeat_beginning(path: Path) -> None:
    """Where one operation wrote both sectors: its number alone does not tell them apart."""
    data = path.read_bytes()[:1024]
    if any(data[24:32]) and data[24:32] == data[536:544]:
        _rewrite(path, data[:512], at=512)


def _mix_files(tree: Path) -> None:
    """A write of one operation is taken for another file's: by its number alone it is in its place."""
    paths = [path for path in _files(tree) if path.stat().st_size >= 1024]
    for path in paths:
        sector = bytearray(path.read_bytes()[512:1024])
        if any(sector):
            sector[16:24] = (int.from_bytes(sector[16:24], "little") + 3).to_bytes(8, "little")
            sector[-4:] = zlib.crc32(sector[:-4]).to_bytes(4, "little")
            _rewrite(path, bytes(sector), at=512)


def _become_a_copy(path: Path) -> None:
    if path.stat().st_nlink > 1:
        copy = path.with_suffix(".copy")
        _copied(path, copy)
        copy.rename(path)


def _set_xattr(path: Path) -> None:
    os.setxattr(path, "user.a", b"another")


def _remove_xattrs(path: Path) -> None:
    for name in os.listxattr(path):
        os.removexattr(path, name)


def _remove_links(tree: Path) -> list[Path]:
    """Returns where they were."""
    links = [path for path in tree.rglob("*") if path.is_symlink()]
    for path in links:
        path.unlink()
    return links


def _turn_links(tree: Path) -> None:
    for path in _remove_links(tree):
        path.symlink_to("elsewhere")


def _add_a_name(tree: Path) -> None:
    (tree / "0" / "f0").touch()


def _rename_directories(tree: Path) -> None:
    for path in list((tree / "0").iterdir()):
        if path.is_dir():
            path.rename(path.with_name(f"{path.name}-moved"))


def _lose_a_tree(tree: Path) -> None:
    (tree / "1").rename(tree / "one")


TAMPERINGS: dict[str, Callable[[Path], object]] = {
    "names": _each(Path.unlink),
    "other names": _each(lambda path: path.rename(path.with_suffix(".old"))),
    "a new name": _add_a_name,
    "sizes": _each(lambda path: os.truncate(path, path.stat().st_size + 512)),
    "shorter": _each(lambda path: os.truncate(path, path.stat().st_size // 2)),
    "holes": _each(_zero_beginning),
    "content": _each(_flip),
    "places": _each(_repeat_beginning),
    "files": _mix_files,
    "modes": _each(lambda path: path.chmod(0o751)),
    "times": _each(lambda path: os.utime(path, (1, 1))),
    "attributes": _each(_set_xattr),
    "no attributes": _each(_remove_xattrs),
    "hard links": _each(_become_a_copy),
    "symbolic links": _turn_links,
    "no symbolic links": _remove_links,
    "directories": _rename_directories,
    "a whole tree": _lose_a_tree,
}
_NEEDED = {"attributes": "xattr", "no attributes": "xattr", "hard links": "link"}


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_every_manipulation_is_reported(written: Written, tmp_path: Path, tampering: str) -> None:
    if _NEEDED.get(tampering, "mmap") not in written.supported:
        pytest.skip(f"this directory has no {_NEEDED[tampering]}")
    tampered = tmp_path / "tampered"
    _copied(written.directory, tampered)
    TAMPERINGS[tampering](tampered)
    findings = written.judged(tampered)
    assert findings.verdict in (Verdict.CORRUPTED, Verdict.ROLLED_BACK)
    assert findings.lost > 0 or tampering in ("a new name", "a whole tree")
