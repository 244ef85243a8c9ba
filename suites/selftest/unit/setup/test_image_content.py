"""Images by their content: their digest, and that of a copy."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from torture.machines.host.scratch import CACHE_VARIABLE
from torture.machines.images import find
from torture.machines.images.cache import DIGEST, computed_digest, content_digest
from torture.machines.images.recipes import read_recipe

CONTENT = {"root.sqfs": b"root" * 100_000, "vmlinuz": b"kernel", "initrd": b"initrd"}


def built_image(cache: Path) -> Path:
    """A small image of the NAS's recipe in a cache, as one that was built without a digest."""
    folder = cache / "images" / f"nas-{read_recipe('nas').image_key}"
    folder.mkdir(parents=True)
    for name, content in CONTENT.items():
        (folder / name).write_bytes(content)
    (folder / "manifest.json").write_text('{"kernel": "6.12", "zfs": "2.3.9"}')
    return folder


def test_coreutils_print_the_same_digest_and_it_is_kept(tmp_path: Path) -> None:
    folder = built_image(tmp_path)
    shell = "sha256sum initrd root.sqfs vmlinuz | sha256sum"
    done = subprocess.run(["sh", "-c", shell], cwd=folder, capture_output=True, check=True)
    digest = content_digest(folder)
    assert done.stdout.decode().split()[0] == digest == computed_digest(folder)
    (folder / "vmlinuz").write_bytes(b"another")
    assert content_digest(folder) == digest, "a finished image never changes, so none is read twice"
    assert computed_digest(folder) != digest


def test_a_copy_without_its_digest_has_that_of_its_own_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/fleet.md copies images; a damaged copy is another image."""
    built = built_image(tmp_path / "builder")
    digest = content_digest(built)
    copy = tmp_path / "other" / "images" / built.name
    shutil.copytree(built, copy, ignore=shutil.ignore_patterns(DIGEST))
    (copy / "root.sqfs").write_bytes(CONTENT["root.sqfs"][:-1])
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "other"))
    image = find("nas")
    assert image is not None
    assert image.sha256 != digest
