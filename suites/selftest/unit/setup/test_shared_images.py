"""Images by their content: the digest, and images packed on one host and fetched on another."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from torture.errors import HarnessError
from torture.facts.zfs.versions import DEFAULT
from torture.machines.host.scratch import CACHE_VARIABLE
from torture.machines.images import find
from torture.machines.images.content import computed_digest, content_digest
from torture.machines.images.recipes import read_recipe
from torture.setup.shared_images import fetch, pack, shared_folder

CONTENT = {"root.sqfs": b"root" * 100_000, "vmlinuz": b"kernel", "initrd": b"initrd"}


def built_image(cache: Path) -> Path:
    """A small image of the NAS's recipe in a cache, as one that was built without a digest."""
    folder = cache / "images" / f"nas-{read_recipe('nas').image_key}"
    folder.mkdir(parents=True)
    for name, content in CONTENT.items():
        (folder / name).write_bytes(content)
    (folder / "manifest.json").write_text('{"kernel": "6.12", "zfs": "2.3.9"}')
    return folder


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The shared folder, and the cache of the host that fetches: this process's from now on."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "builder"))
    built_image(tmp_path / "builder")
    pack("nas", tmp_path / "share", zfs=DEFAULT)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "other"))
    return tmp_path / "share", tmp_path / "other"


def test_coreutils_print_the_same_digest_and_it_is_kept(tmp_path: Path) -> None:
    folder = built_image(tmp_path)
    shell = "sha256sum initrd root.sqfs vmlinuz | sha256sum"
    done = subprocess.run(["sh", "-c", shell], cwd=folder, capture_output=True, check=True)
    digest = content_digest(folder)
    assert done.stdout.decode().split()[0] == digest == computed_digest(folder)
    (folder / "vmlinuz").write_bytes(b"another")
    assert content_digest(folder) == digest, "a finished image never changes, so none is read twice"
    assert computed_digest(folder) != digest


def test_an_image_is_fetched_whole_and_only_once(hosts: tuple[Path, Path]) -> None:
    share, _ = hosts
    assert find("nas") is None
    image = fetch("nas", share, zfs=DEFAULT)
    assert image.root.read_bytes() == CONTENT["root.sqfs"]
    assert image.sha256 == computed_digest(image.root.parent)
    assert fetch("nas", Path("/nowhere"), zfs=DEFAULT) == image


def test_a_damaged_image_is_refused_and_leaves_nothing(hosts: tuple[Path, Path]) -> None:
    share, cache = hosts
    [archive] = share.iterdir()
    data = archive.read_bytes()
    archive.write_bytes(data.replace(b"rootroot", b"rootroOt", 1))
    with pytest.raises(HarnessError, match="is damaged"):
        fetch("nas", share, zfs=DEFAULT)
    archive.write_bytes(data[: len(data) // 2])
    with pytest.raises(HarnessError, match="is no whole image"):
        fetch("nas", share, zfs=DEFAULT)
    assert find("nas") is None
    assert list((cache / "work").iterdir()) == []


def test_an_archive_cannot_write_elsewhere(hosts: tuple[Path, Path], tmp_path: Path) -> None:
    share, _ = hosts
    [archive] = share.iterdir()
    with tarfile.open(archive, "w") as tar:
        tar.add(share, arcname="../../escaped")
    with pytest.raises(HarnessError, match="does not belong there"):
        fetch("nas", share, zfs=DEFAULT)


def test_a_place_without_the_image_says_who_can_pack_it(hosts: tuple[Path, Path]) -> None:
    with pytest.raises(HarnessError, match="tools/images pack --to"):
        fetch("nas", hosts[0] / "none", zfs=DEFAULT)
    with pytest.raises(HarnessError, match="is a URL"):
        shared_folder("s3://bucket/images")
