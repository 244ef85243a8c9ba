"""An image with further modules, which its own stage builds from a source tree for the NAS's kernel."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest

from suites.selftest.unit.base_builds import archive_of
from torture.errors import HarnessError
from torture.facts.linux.kernels import Kernels
from torture.machines.images import assemble
from torture.machines.images.recipes import Recipe, read_recipe
from torture.machines.images.source_trees import read_named_tree, read_scst_tree

ADDED = '[added]\nfrom = "target"\nsource = "scst-1-0123456789ab"\n'


@pytest.fixture
def with_added(home: Path) -> Recipe:
    """The recipe `two`, which adds a stage to `one` and nothing else."""
    (home / "target").mkdir()
    (home / "target/stage.sh").write_text("true\n")
    (home / "two").mkdir()
    (home / "two/recipe.toml").write_text(f'extends = "one"\n{ADDED}')
    return read_recipe("two")


def test_an_added_stage_is_of_the_kernels_suite_and_a_part_of_the_images_key(
    with_added: Recipe, home: Path
) -> None:
    added = with_added.added
    assert added is not None
    assert (added.suite, added.source, added.patch) == ("trixie", "scst-1-0123456789ab", None)
    assert "linux-headers-cloud-amd64" in added.packages
    assert with_added.base_slot == read_recipe("one").base_slot, "it has no packages of its own"
    (home / "target/fix.patch").write_text("a fix")
    (home / "two/recipe.toml").write_text(f'extends = "one"\n{ADDED}patch = "fix.patch"\n')
    patched = read_recipe("two")
    assert patched.added is not None
    assert patched.added.base_key != added.base_key
    assert patched.image_key != with_added.image_key


def test_an_added_stage_names_its_source(with_added: Recipe) -> None:
    with_added.path.write_text('extends = "one"\n[added]\nfrom = "target"\n')
    with pytest.raises(HarnessError, match="added: 'source' is missing"):
        read_recipe("two")


def test_added_files_lie_in_the_root_of_the_kernel_that_they_were_built_for(
    with_added: Recipe, tmp_path: Path
) -> None:
    base_file = archive_of(tmp_path / "base.tar", {"usr/sbin/udevd": b""})
    kernel_file = archive_of(tmp_path / "kernel.tar", {"usr/lib/modules/6/zfs.ko": b"z"})
    files = {"usr/lib/torture/scst/scst.ko": b"m", "usr/sbin/daemon": b"d", "release": b"6.12\n"}
    path = archive_of(tmp_path / "added.tar", files)
    with (
        tarfile.open(base_file) as base,
        tarfile.open(kernel_file) as kernel,
        tarfile.open(path) as added,
    ):
        assemble._must_be_built_for("6.12", added)
        with pytest.raises(HarnessError, match=r"built for the kernel 6\.12"):
            assemble._must_be_built_for("6.13", added)
        entries = assemble._root_entries(with_added, base, kernel, tmp_path, added)
    names = {entry.info.name for entry in entries}
    assert {"usr/lib/torture/scst/scst.ko", "usr/sbin/daemon"} <= names
    assert "release" not in names


def test_a_tree_of_scst_has_its_version_and_a_hash_of_its_content(tmp_path: Path) -> None:
    header = tmp_path / "scst/include/scst_const.h"
    header.parent.mkdir(parents=True)
    header.write_text('#define SCST_VERSION_NAME\t    "3.10.0-pre"\n')
    version = read_scst_tree(tmp_path).version
    assert re.fullmatch(r"scst-3\.10\.0-pre-[0-9a-f]{12}", version)
    header.write_text('#define SCST_VERSION_NAME "3.10.0-pre"\n')
    assert read_scst_tree(tmp_path).version not in ("", version)
    header.write_text("#define SCST_VERSION 1\n")
    with pytest.raises(HarnessError, match="names no version"):
        read_scst_tree(tmp_path)
    with pytest.raises(HarnessError, match="no source tree of SCST"):
        read_named_tree(f"scst={tmp_path}/nowhere")
    with pytest.raises(HarnessError, match="names no source tree"):
        read_named_tree(str(tmp_path))


@pytest.mark.parametrize("name", ["nas_scst", "nas_scst_head", "nas_scst_synced"])
def test_no_kernel_from_a_source_tree_has_scst(name: str) -> None:
    assert read_recipe(name).added is not None
    built = "6.12.1-0123456789ab"
    with pytest.raises(HarnessError, match="is built for kernels of Debian's"):
        read_recipe(name, linux=Kernels(nas=built, client=built))
