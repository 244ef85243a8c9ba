"""Source trees of OpenZFS and of Linux as versions: recognized, refused, named and packed."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from fixtures.early_options import asked_linux_trees, refuse_before_setup
from torture.errors import HarnessError
from torture.facts.linux.kernels import Kernels, linux_names, linux_version, why_unfit
from torture.facts.zfs.versions import DEFAULT, version_names, zfs_version
from torture.machines.images.recipes import read_recipe
from torture.machines.images.source_trees import (
    ChosenSource,
    choose_linux,
    choose_zfs,
    read_linux_tree,
    read_zfs_tree,
)

META = "Meta:          1\nName:          zfs\nVersion:       2.4.99\nRelease:       1\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with the files that this suite looks at, and a module."""
    root = tmp_path / "zfs"
    for name, content in {
        "META": META,
        "contrib/debian/rules.in": "#!/usr/bin/make -f\n",
        "module/zil.c": "int zil;\n",
        "autogen.sh": "#!/bin/sh\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    (root / "module/link.c").symlink_to("zil.c")
    return root


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, timeout=60)


def test_its_name_is_the_version_that_it_says_and_a_hash(tree: Path) -> None:
    chosen = choose_zfs(str(tree))
    version, _, digest = chosen.version.partition("-")
    assert (version, len(digest)) == ("2.4.99", 12)
    assert chosen.tree is not None
    assert chosen.tree.root == tree
    assert choose_zfs(chosen.version).tree is None


def test_any_change_of_its_content_is_another_version(tree: Path) -> None:
    names = {read_zfs_tree(tree).version}
    (tree / "module/zil.c").write_text("int zil = 1;\n")
    names.add(read_zfs_tree(tree).version)
    (tree / "autogen.sh").chmod(0o755)
    names.add(read_zfs_tree(tree).version)
    (tree / "module/zil.c").rename(tree / "module/zio.c")
    names.add(read_zfs_tree(tree).version)
    (tree / "module/link.c").unlink()
    (tree / "module/link.c").symlink_to("zio.c")
    names.add(read_zfs_tree(tree).version)
    (tree / "module/link.c").unlink()
    (tree / "module/link.c").write_text("zio.c")
    names.add(read_zfs_tree(tree).version)
    (tree / "META").write_text(META.replace("Release:       1", "Release:       2"))
    names.add(read_zfs_tree(tree).version)
    assert len(names) == 7


def test_the_same_content_elsewhere_is_the_same_version(tree: Path) -> None:
    before = read_zfs_tree(tree).version
    assert read_zfs_tree(tree.rename(tree.with_name("moved"))).version == before


def test_in_a_checkout_files_that_git_ignores_do_not_belong_to_it(tree: Path) -> None:
    (tree / ".gitignore").write_text("*.o\n.gitignore\n")
    plain = read_zfs_tree(tree).version
    git(tree, "init", "--quiet")
    git(tree, "add", "META", "contrib", "module")
    inside = read_zfs_tree(tree)
    (tree / "module/zil.o").write_bytes(b"built")
    assert read_zfs_tree(tree) == inside
    assert inside.version != plain, "the ignored file that is there does not count"
    (tree / "module/new.c").write_text("int unknown_to_git;\n")
    assert read_zfs_tree(tree).version != inside.version
    (tree / "module/new.c").unlink()
    (tree / "module/zil.c").write_text("int not_committed;\n")
    assert read_zfs_tree(tree).version != inside.version
    (tree / "module/zil.c").unlink()
    assert read_zfs_tree(tree).version != inside.version


def test_the_packed_files_are_those_that_were_named(tree: Path, tmp_path: Path) -> None:
    git(tree, "init", "--quiet")
    (tree / "autogen.sh").chmod(0o755)
    read_zfs_tree(tree).pack(tmp_path / "source.tar")
    with tarfile.open(tmp_path / "source.tar") as tar:
        found = {info.name: info for info in tar}
    assert sorted(found) == [
        "META",
        "autogen.sh",
        "contrib/debian/rules.in",
        "module/link.c",
        "module/zil.c",
    ]
    assert found["autogen.sh"].mode & 0o100
    assert found["module/link.c"].linkname == "zil.c"


def test_a_tree_that_changed_meanwhile_is_not_built(tree: Path, tmp_path: Path) -> None:
    read = read_zfs_tree(tree)
    (tree / "module/zil.c").write_text("int zil = 1;\n")
    with pytest.raises(HarnessError, match=f"was {read.version} and is"):
        read.pack(tmp_path / "source.tar")


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        (None, "cannot be read"),
        ("Name: zfs\n", "names no version"),
        ("Version: 2.4.99\n", "names no version"),
        (META.replace("zfs", "spl"), "names no version"),
        (META.replace("2.4.99", "../../etc"), "names no version"),
    ],
)
def test_a_folder_that_is_no_tree_is_refused(tree: Path, meta: str | None, said: str) -> None:
    (tree / "META").unlink() if meta is None else (tree / "META").write_text(meta)
    with pytest.raises(HarnessError, match=said):
        choose_zfs(str(tree))


def test_a_tree_that_cannot_package_itself_is_refused(tree: Path) -> None:
    (tree / "contrib/debian/rules.in").unlink()
    with pytest.raises(HarnessError, match=r"came with 2\.2"):
        choose_zfs(str(tree))


@pytest.mark.parametrize(
    "unknown", ["2.3", "2.3.99", "nothing", "/nowhere", "2.4.99-xyz", "../zfs/2.3.9", ""]
)
def test_an_unknown_version_is_answered_with_the_known_ones(unknown: str) -> None:
    with pytest.raises(HarnessError) as caught:
        choose_zfs(unknown)
    for name in version_names():
        assert name in caught.value.hint
    assert "source tree" in caught.value.hint


@pytest.mark.parametrize("path", ["/nowhere", "../zfs/2.3.9", "~/nothing"])
def test_a_path_without_a_folder_is_answered_with_the_folder(path: str) -> None:
    with pytest.raises(HarnessError, match=f"there is no folder {Path(path).expanduser()}"):
        choose_zfs(path)


def test_the_tree_is_part_of_the_names_of_its_kernel_and_image() -> None:
    one, other = (read_recipe("nas", zfs=f"2.4.99-{digest}") for digest in ("0" * 12, "1" * 12))
    assert one.kernel is not None
    assert other.kernel is not None
    assert one.kernel.base_key != other.kernel.base_key
    assert one.image_key != other.image_key
    assert one.base_key == other.base_key, "the tools lie in the kernel's stage"
    assert "zfsutils-linux" not in one.packages
    assert "zfsutils-linux" in read_recipe("nas", zfs=DEFAULT).packages
    assert (
        read_recipe("client", zfs="2.4.99-" + "0" * 12).image_key == read_recipe("client").image_key
    )


def test_its_number_says_how_its_status_is_read() -> None:
    assert zfs_version("2.2.99-0123456789ab").status_command("tank") == (
        "zpool",
        "status",
        "-p",
        "tank",
    )
    assert "-j" in zfs_version("2.3.0-0123456789ab").status_command("tank")
    assert "-j" in zfs_version("2.10.0-0123456789ab").status_command("tank")


# A source tree of Linux is a version by its content, and is built with the guests'
# configuration.

MAKEFILE = "# SPDX\nVERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION = -rc1\nNAME = x\n"
BUILT = "7.3.4-0123456789ab"


@pytest.fixture
def linux(tmp_path: Path) -> Path:
    root = tmp_path / "linux"
    (root / "fs/netfs").mkdir(parents=True)
    (root / "Makefile").write_text(MAKEFILE)
    (root / "Kconfig").write_text("")
    (root / "fs/netfs/main.c").write_text("int netfs;\n")
    return root


def test_its_name_is_its_version_and_its_content(linux: Path) -> None:
    chosen = choose_linux(str(linux))
    assert chosen.tree is not None
    assert chosen.version == chosen.tree.version == read_linux_tree(linux).version
    assert chosen.version.startswith("7.3.4-")
    (linux / "fs/netfs/main.c").write_text("int changed;\n")
    assert choose_linux(str(linux)).version != chosen.version
    assert linux_version(chosen.version).is_built
    assert choose_linux(chosen.version) == ChosenSource(version=chosen.version), (
        "found in the cache"
    )


def test_the_packed_files_of_linux_are_those_that_were_named(linux: Path, tmp_path: Path) -> None:
    read_linux_tree(linux).pack(tmp_path / "linux.tar")
    with tarfile.open(tmp_path / "linux.tar") as tar:
        assert tar.getnames() == ["Kconfig", "Makefile", "fs/netfs/main.c"]
    read = read_linux_tree(linux)
    (linux / "Kconfig").write_text("changed")
    with pytest.raises(HarnessError, match=f"was {read.version} and is"):
        read.pack(tmp_path / "linux.tar")


@pytest.mark.parametrize(
    "makefile", [None, "all:\n", MAKEFILE.replace("SUBLEVEL = 4\n", ""), "VERSION = 2.4.99\n"]
)
def test_a_folder_that_is_no_tree_of_linux_is_refused(linux: Path, makefile: str | None) -> None:
    (linux / "Makefile").unlink() if makefile is None else (linux / "Makefile").write_text(makefile)
    with pytest.raises(HarnessError, match="no source tree of Linux"):
        choose_linux(str(linux))


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


def test_trees_come_from_the_options_that_name_one(linux: Path) -> None:
    said = {"--linux": None, "--linux-nas": choose_linux("trixie")}
    said["--linux-client"] = choose_linux(str(linux))
    assert asked_linux_trees(said.__getitem__) == (read_linux_tree(linux),)


def test_patches_of_a_tree_are_refused(linux: Path, tmp_path: Path) -> None:
    patch = tmp_path / "a.patch"
    patch.write_text("--- a/fs/netfs/main.c\n+++ b/fs/netfs/main.c\n@@ -1 +1 @@\n")
    refuse_before_setup(["--linux", str(linux)])
    refuse_before_setup(["--linux-client", "trixie", "--patch", str(patch)])
    with pytest.raises(ValueError, match="apply it to that tree"):
        refuse_before_setup(["--linux-client", BUILT, "--patch", str(patch)])
