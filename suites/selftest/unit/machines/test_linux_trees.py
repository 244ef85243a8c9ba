"""A source tree of Linux is a version by its content, and is built with the guests' configuration."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from fixtures.asked import asked_linux_trees, refuse_before_setup
from torture.errors import HarnessError
from torture.facts.linux.kernels import Kernels, linux_names, linux_version, why_unfit
from torture.facts.zfs.versions import zfs_version
from torture.machines.images.recipes import read_recipe
from torture.machines.images.sources.linux_trees import ChosenLinux, LinuxTree, choose_linux

MAKEFILE = "# SPDX\nVERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION = -rc1\nNAME = x\n"
BUILT = "7.3.4-0123456789ab"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "linux"
    (root / "fs/netfs").mkdir(parents=True)
    (root / "Makefile").write_text(MAKEFILE)
    (root / "Kconfig").write_text("")
    (root / "fs/netfs/main.c").write_text("int netfs;\n")
    return root


def test_its_name_is_its_version_and_its_content(tree: Path) -> None:
    chosen = choose_linux(str(tree))
    assert chosen.tree is not None
    assert chosen.name == chosen.tree.version == LinuxTree.read(tree).version
    assert chosen.name.startswith("7.3.4-")
    (tree / "fs/netfs/main.c").write_text("int changed;\n")
    assert choose_linux(str(tree)).name != chosen.name
    assert linux_version(chosen.name).is_built
    assert choose_linux(chosen.name) == ChosenLinux(name=chosen.name), "found in the cache"


def test_the_packed_files_are_those_that_were_named(tree: Path, tmp_path: Path) -> None:
    LinuxTree.read(tree).pack(tmp_path / "linux.tar")
    with tarfile.open(tmp_path / "linux.tar") as tar:
        assert tar.getnames() == ["Kconfig", "Makefile", "fs/netfs/main.c"]
    read = LinuxTree.read(tree)
    (tree / "Kconfig").write_text("changed")
    with pytest.raises(HarnessError, match=f"was {read.version} and is"):
        read.pack(tmp_path / "linux.tar")


@pytest.mark.parametrize(
    "makefile", [None, "all:\n", MAKEFILE.replace("SUBLEVEL = 4\n", ""), "VERSION = 2.4.99\n"]
)
def test_a_folder_that_is_no_tree_is_refused(tree: Path, makefile: str | None) -> None:
    (tree / "Makefile").unlink() if makefile is None else (tree / "Makefile").write_text(makefile)
    with pytest.raises(HarnessError, match="no source tree of Linux"):
        choose_linux(str(tree))


@pytest.mark.parametrize("unknown", ["6.12", "7.3.4-xyz", "7.3-0123456789ab", "nothing", ""])
def test_an_unknown_kernel_is_answered_with_the_known_ones(unknown: str) -> None:
    with pytest.raises(HarnessError) as caught:
        choose_linux(unknown)
    assert all(name in caught.value.hint for name in linux_names())
    with pytest.raises(HarnessError, match="there is no folder"):
        choose_linux("/nowhere")


def test_its_number_decides_which_zfs_fits() -> None:
    linux = linux_version(BUILT)
    assert (linux.series, linux.suite) == ("7.3", "trixie")
    assert "supports Linux 4.18 to 7.2" in why_unfit(zfs_version("2.3.9"), linux)
    assert why_unfit(zfs_version("2.4.99-0123456789ab"), linux) == ""
    assert why_unfit(zfs_version("2.3.9"), linux_version("7.2.12-0123456789ab")) == ""


def test_the_tree_is_part_of_the_names_of_its_kernel() -> None:
    one, other = (
        read_recipe("client", linux=Kernels(client=f"7.2.1-{digest * 12}")).kernel
        for digest in "01"
    )
    assert one is not None
    assert other is not None
    assert one.base_key != other.base_key
    assert [stage.name for stage in one.stages] == ["build.sh", "stage.sh"]
    assert "zfs-dkms" in one.packages
    assert "linux-headers-cloud-amd64" not in one.packages, "ZFS would be built for it, too"
    assert all(stage.exists() for stage in one.stages)
    alone = read_recipe("client", linux=Kernels(client=BUILT)).kernel
    assert alone is not None
    assert alone.linux_source == BUILT
    assert alone.stages[-1].resolve().parent.name == "linux"


def test_trees_come_from_the_options_that_name_one(tree: Path) -> None:
    said = {"--linux": None, "--linux-nas": choose_linux("trixie")}
    said["--linux-client"] = choose_linux(str(tree))
    assert asked_linux_trees(said.__getitem__) == (LinuxTree.read(tree),)


def test_patches_of_a_tree_are_refused(tree: Path, tmp_path: Path) -> None:
    patch = tmp_path / "a.patch"
    patch.write_text("--- a/fs/netfs/main.c\n+++ b/fs/netfs/main.c\n@@ -1 +1 @@\n")
    refuse_before_setup(["--linux", str(tree)])
    refuse_before_setup(["--linux-client", "trixie", "--patch", str(patch)])
    with pytest.raises(ValueError, match="apply it to that tree"):
        refuse_before_setup(["--linux-client", BUILT, "--patch", str(patch)])
