"""Images of source trees and of kernels.

Patches to the modules of a kernel: their parser, their name, and their modules in an image.
"""

from __future__ import annotations

import json
import shlex
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from suites.selftest.unit.base_builds import archive_of, build_in
from suites.selftest.unit.conftest import fake_tool
from torture.errors import HarnessError
from torture.facts.linux.kernels import (
    Kernels,
    choose_kernels,
    linux_names,
    linux_version,
    why_unfit,
)
from torture.facts.zfs.versions import version_names, zfs_version
from torture.machines.images import assemble, bases, build
from torture.machines.images.recipes import Recipe, read_kernel_recipe, read_recipe
from torture.machines.images.source_trees import (
    NO_PATCHES,
    PatchSeries,
    SourceTree,
    patched_modules,
    read_zfs_tree,
)

VERSION = "2.4.99-0123456789ab"


@pytest.fixture
def archives(tmp_path: Path) -> tuple[Path, Path]:
    """A base, and what a stage leaves that built a kernel's modules and tools."""
    tools = ("zpool", "zstream")
    built = ("usr/lib/modules/6/zfs.ko", "vmlinuz", *(f"nas/usr/sbin/{tool}" for tool in tools))
    links = {
        "nas/usr/sbin/zstreamdump": (tarfile.LNKTYPE, "./nas/usr/sbin/zstream"),
        "nas/usr/sbin/zinject": (tarfile.SYMTYPE, "./zstream"),
    }
    return (
        archive_of(tmp_path / "base.tar", {"usr/sbin/udevd": b""}),
        archive_of(tmp_path / "kernel.tar", dict.fromkeys(built, b"built"), **links),
    )


@pytest.mark.usefixtures("home")
def test_the_tools_lie_in_the_root_of_the_nas_and_of_no_other(
    archives: tuple[Path, Path], tmp_path: Path
) -> None:
    def entries_of(recipe: Recipe) -> dict[str, tarfile.TarInfo]:
        with tarfile.open(archives[0]) as base, tarfile.open(archives[1]) as kernel:
            entries = assemble._root_entries(recipe, base, kernel, tmp_path)
            return {entry.info.name: entry.info for entry in entries}

    one = read_recipe("one")
    found, others = entries_of(replace(one, follows_zfs=True)), entries_of(one)
    assert "usr/sbin/zpool" in found
    assert found["usr/sbin/zstreamdump"].linkname == "usr/sbin/zstream"
    assert found["usr/sbin/zinject"].linkname == "./zstream"
    assert not any(name.startswith("nas") for name in {*found, *others})
    assert not any("zpool" in name for name in others)
    assert "usr/lib/modules/6/zfs.ko" in others.keys() & found.keys()


@pytest.mark.parametrize(("built", "zfs"), [(VERSION, VERSION), ("", "none")])
def test_its_image_says_the_version_that_was_built_or_none(
    built: str, zfs: str, tmp_path: Path
) -> None:
    for name in ("own", "kernel"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "packages.json").write_text(json.dumps({"kmod": "34"}))
    found = build._manifest(tmp_path / "own", tmp_path / "kernel", "7.3", built=built)
    assert found == {"kmod": "34", "kernel": "7.3", "zfs": zfs}


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    root = tmp_path / "zfs"
    (root / "contrib/debian").mkdir(parents=True)
    (root / "META").write_text("Name: zfs\nVersion: 2.4.99\n")
    (root / "contrib/debian/rules.in").write_text("")
    return read_zfs_tree(root)


def built_with(tree: SourceTree | None, *, source: str, tmp_path: Path) -> None:
    """Build the kernel of this version, with that tree."""
    recipe = Recipe(
        name="kernel",
        suite="trixie",
        components=("main",),
        packages=("linux",),
        stages=(Path("/recipes/build.sh"), Path("/recipes/stage.sh")),
        source=source,
        path=Path("/recipes/recipe.toml"),
    )
    build_in(tmp_path, recipe, trees=[tree] if tree else [])


@pytest.mark.parametrize("earlier", ["", "of an earlier tree"])
def test_the_build_gets_the_tree_before_the_first_of_its_stages_and_keeps_no_copy(
    earlier: str, tools: Path, tree: SourceTree, tmp_path: Path
) -> None:
    compiled = tmp_path / "compiled.tar"
    if earlier:
        compiled.write_text(earlier)
    fake_tool(
        tools,
        "mmdebstrap",
        f'printf "%s\n" "$@" > {tmp_path}/said; cp {tmp_path}/made/source.tar {tmp_path}\n'
        f"cd {tmp_path}/made; touch status base.tar; echo of this tree > compiled.tar",
    )
    built_with(tree, source=tree.version, tmp_path=tmp_path)
    hooks = [line for line in (tmp_path / "said").read_text().splitlines() if "hook=" in line]
    assert [hook.partition("=")[2] for hook in hooks] == [
        f"upload {tmp_path}/made/source.tar /source.tar",
        bases._WITH_CCACHE,
        *([f"tar-in {compiled} /"] if earlier else []),
        "upload /recipes/build.sh /stage.sh",
        "sh /stage.sh",
        "upload /recipes/stage.sh /stage.sh",
        "sh /stage.sh",
        f"tar-out /compiled {tmp_path}/made/compiled.tar",
        f"download /stage.tar {tmp_path}/made/base.tar",
        f"download /var/lib/dpkg/status {tmp_path}/made/status",
    ]
    with tarfile.open(tmp_path / "source.tar") as tar:
        assert tar.getnames() == ["META", "contrib/debian/rules.in"]
    assert {path.name for path in (tmp_path / "made").iterdir()} == {"base.tar", "packages.json"}
    assert compiled.read_text() == "of this tree\n"


@pytest.mark.parametrize("has_tree", [False, True])
def test_without_its_tree_a_version_is_not_built(
    has_tree: bool, tools: Path, tree: SourceTree, tmp_path: Path
) -> None:
    fake_tool(tools, "mmdebstrap", f"touch {tmp_path}/called; exit 1")
    with pytest.raises(HarnessError, match="is built from a source tree") as caught:
        built_with(tree if has_tree else None, source=VERSION, tmp_path=tmp_path)
    assert "--zfs PATH" in caught.value.hint
    assert not (tmp_path / "called").exists()


# Images with another kernel than the default, without a mirror and without building one.


def kernel_of(image: str, *, zfs: str = "2.3.9", linux: str) -> Recipe:
    recipe = read_recipe(image, zfs=zfs, linux=Kernels.same(linux))
    assert recipe.kernel is not None
    return recipe.kernel


def test_the_default_kernel_by_its_name_is_the_same_build() -> None:
    for image in ("nas", "client"):
        usual, named = read_recipe(image), read_recipe(image, linux=Kernels.same("trixie"))
        assert usual == named
        assert usual.image_key == named.image_key


@pytest.mark.parametrize("zfs", version_names())
def test_the_kernel_of_its_own_suite_stays_the_build_that_it_was(zfs: str) -> None:
    version = zfs_version(zfs)
    assert read_kernel_recipe(version) == read_kernel_recipe(version, version.suite)


def test_both_machines_share_the_build_of_a_kernel_that_the_default_zfs_fits() -> None:
    for linux in ("bookworm", "bookworm-backports"):
        assert kernel_of("nas", linux=linux) == kernel_of("client", linux=linux)


def test_each_pair_is_a_build_of_its_own() -> None:
    keys = {
        kernel_of("nas", zfs=zfs, linux=linux).base_key
        for zfs in ("2.3.2", "2.3.9", "2.4.4")
        for linux in ("bookworm", "bookworm-backports", "trixie")
    }
    assert len(keys) == 9


def test_a_kernel_is_built_in_the_suite_that_it_is_from() -> None:
    pair = kernel_of("nas", linux="bookworm-backports")
    assert (pair.suite, pair.zfs_from) == ("bookworm", "trixie")
    assert [stage.name for stage in pair.stages] == ["old-kmod.sh", "stage.sh"]
    pair = kernel_of("nas", zfs="2.3.2", linux="trixie")
    assert (pair.suite, pair.zfs_from) == ("trixie", "bookworm-backports")
    assert [stage.name for stage in pair.stages] == ["stage.sh"]


def test_the_userland_of_the_nas_stays_that_of_its_zfs() -> None:
    usual, other = read_recipe("nas"), read_recipe("nas", linux=Kernels(nas="bookworm"))
    assert usual.base_key == other.base_key
    assert usual.image_key != other.image_key


def test_a_planted_bug_is_planted_for_each_kernel() -> None:
    pair = kernel_of("nas", zfs="2.3.9+log_not_claimed", linux="bookworm")
    assert pair.patch is not None
    assert len(pair.stages) == 3


def test_a_nas_whose_zfs_does_not_fit_is_refused_and_a_client_has_no_zfs() -> None:
    with pytest.raises(HarnessError, match=r"2\.3\.9 supports Linux 4\.18 to 7\.2"):
        kernel_of("nas", linux="trixie-backports")
    alone = kernel_of("client", linux="trixie-backports")
    assert "zfs-dkms" not in alone.packages
    assert alone.stages[-1].parent.name == "linux"


def test_every_kernel_names_scripts_that_are_there() -> None:
    for linux in linux_names():
        assert all(stage.exists() for stage in kernel_of("client", linux=linux).stages)


@pytest.mark.parametrize(
    ("release", "package", "patches", "words"),
    [
        ("6.12.118+deb13-cloud-amd64", "6.12.118-1", "", "6.12.118+deb13-cloud-amd64"),
        ("6.12.95+deb12-cloud-amd64", "6.12.95-1~bpo12+1", "a1", "6.12.95+deb12-cloud-amd64+a1"),
        ("6.1.0-56-cloud-amd64", "6.1.192-2", "", "6.1.0-56-cloud-amd64 (6.1.192-2)"),
        ("6.1.0-56-cloud-amd64", "6.1.192-2", "a1", "6.1.0-56-cloud-amd64+a1 (6.1.192-2)"),
        ("7.3.4-cloud-amd64", "", "", "7.3.4-cloud-amd64"),
    ],
)
def test_a_kernel_is_named_by_its_point_release(
    release: str, package: str, patches: str, words: str
) -> None:
    assert build.kernel_in_words(release, package, patches) == words


@pytest.mark.parametrize(
    ("pocket", "wanted"), [("trixie", "trixie*"), ("trixie-backports", "trixie-backports")]
)
def test_only_zfs_and_its_builder_come_from_another_suite(pocket: str, wanted: str) -> None:
    text = bases.preferences_of_other_suite(pocket, "zfs-linux", newest=("dkms",))
    assert text.split("\n\n") == [
        "Package: *\nPin: release n=trixie*\nPin-Priority: -1",
        f"Package: src:zfs-linux\nPin: release n={wanted}\nPin-Priority: 990",
        "Package: src:dkms\nPin: release n=trixie*\nPin-Priority: 500\n",
    ]


def test_the_build_of_a_pair_has_the_sources_of_both_suites(tools: Path, tmp_path: Path) -> None:
    fake_tool(
        tools,
        "mmdebstrap",
        f'printf "%s\\n" "$@" > {tmp_path}/said; touch {tmp_path}/made/status {tmp_path}/made/base.tar',
    )
    build_in(tmp_path, kernel_of("nas", zfs="2.4.4", linux="bookworm"))
    said = (tmp_path / "said").read_text()
    lines = [line for line in said.splitlines() if line.startswith("deb ")]
    suites = [line.partition(".invalid/")[2].split()[1] for line in lines]
    assert suites == [
        "bookworm", "bookworm-updates", "bookworm-security",
        "trixie", "trixie-updates", "trixie-security", "trixie-backports",
    ]  # fmt: skip
    pins = bases.preferences_of_other_suite("trixie-backports", "zfs-linux", newest=("dkms",))
    assert shlex.quote(pins) in said


GIT = """\
From 0123 Mon Sep 17 00:00:00 2001
Subject: [PATCH] netfs: a change

diff --git a/fs/netfs/write_issue.c b/fs/netfs/write_issue.c
index 993cc6def38e..c186221b45c0 100644
--- a/fs/netfs/write_issue.c
+++ b/fs/netfs/write_issue.c
@@ -1,1 +1,1 @@
-a
+b
diff --git a/fs/smb/client/file.c b/fs/smb/client/file.c
--- a/fs/smb/client/file.c
+++ b/fs/smb/client/file.c
@@ -1,1 +1,1 @@
-a
+b
"""
PLAIN = "--- old/fs/netfs/main.c\t2026-01-01 00:00:00\n+++ new/fs/netfs/main.c\t2026-01-02\n@@ -1 +1 @@\n"


def written(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"{number}.patch" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def test_the_files_that_patches_touch_are_named_as_in_the_tree(tmp_path: Path) -> None:
    series = PatchSeries.read(written(tmp_path, GIT, PLAIN))
    assert series.touched == ("fs/netfs/main.c", "fs/netfs/write_issue.c", "fs/smb/client/file.c")


def test_the_name_of_patches_is_that_of_their_content_and_order(tmp_path: Path) -> None:
    one, other = written(tmp_path, GIT, PLAIN)
    again = tmp_path / "again"
    again.write_text(GIT)
    digest = PatchSeries.read([one]).digest
    assert PatchSeries.read([again]).digest == digest
    orders = {PatchSeries.read(paths).digest for paths in ([one], [one, other], [other, one])}
    assert len(orders) == 3
    assert linux_version(f"trixie+{digest}").patches == digest
    assert PatchSeries.read([]) == NO_PATCHES
    assert NO_PATCHES.digest == ""


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("b/include/linux/netfs.h", "only sources of modules"),
        ("b/kernel/fork.c", "only sources of modules"),
        ("b/fs/netfs/Makefile", "only sources of modules"),
        ("b/fs/open.txt", "only sources of modules"),
        ("b/fs/../kernel/fork.c", "no file of Linux's tree"),
        ("b/fs/it's.c", "no file of Linux's tree"),
        ("write_issue.c", "no file of Linux's tree"),
        ("/dev/null", "removes a file"),
    ],
)
def test_a_patch_that_modules_cannot_have_is_refused(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=why):
        PatchSeries.read(written(tmp_path, f"--- a/x\n+++ {name}\n@@ -1 +1 @@\n"))


def test_no_patch_and_no_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="is no patch"):
        PatchSeries.read(written(tmp_path, "hello\n"))
    with pytest.raises(HarnessError, match="cannot be read"):
        PatchSeries.read([tmp_path / "none"])


@pytest.mark.parametrize(
    ("both", "nas", "client", "expected"),
    [
        (None, None, None, Kernels(nas="bookworm+p", client="trixie+p")),
        ("trixie", None, None, Kernels(nas="trixie+p", client="trixie+p")),
        (None, "trixie", None, Kernels(nas="trixie+p", client="trixie")),
        (None, None, "bookworm", Kernels(nas="", client="bookworm+p")),
        ("trixie", "bookworm", None, Kernels(nas="bookworm+p", client="trixie+p")),
    ],
)
def test_patches_are_of_the_named_kernels_or_of_both(
    both: str | None, nas: str | None, client: str | None, expected: Kernels
) -> None:
    zfs = zfs_version("2.1.11")
    assert choose_kernels(zfs, both=both, nas=nas, client=client, patches="p") == expected
    for kernels in (choose_kernels(zfs, both=both, nas=nas, client=client),):
        assert "+" not in kernels.nas + kernels.client


def test_patches_leave_the_kernel_and_its_zfs_as_they_were(tmp_path: Path) -> None:
    digest = PatchSeries.read(written(tmp_path, GIT)).digest
    for linux in ("trixie", "bookworm-backports"):
        plain = read_recipe("client", linux=Kernels.same(linux))
        changed = read_recipe("client", linux=Kernels.same(f"{linux}+{digest}"))
        assert (plain.kernel, plain.modules) == (changed.kernel, None)
        assert changed.modules is not None
        assert changed.image_key != plain.image_key
        assert changed.modules.stages[0].exists()
        assert {"linux-source", "linux-headers-cloud-amd64"} <= {*changed.modules.packages}
        other = read_recipe("client", linux=Kernels.same(f"{linux}+{'0' * 12}"))
        assert other.modules is not None
        assert other.modules.base_key != changed.modules.base_key


def test_a_patched_kernel_fits_as_the_kernel_does() -> None:
    name = f"trixie+{'0' * 12}"
    assert why_unfit(zfs_version("2.3.9"), linux_version(name)) == ""
    assert why_unfit(zfs_version("2.1.11"), linux_version(name))
    with pytest.raises(HarnessError, match="no recipe"):
        linux_version("trixie+x")


def modules_build(tmp_path: Path, *, digest: str, patches: PatchSeries) -> None:
    recipe = Recipe(
        name="modules",
        suite="trixie",
        components=("main",),
        packages=("linux-source",),
        stages=(Path("/recipes/patched.sh"),),
        patches=digest,
        path=Path("/recipes/trixie.toml"),
    )
    build_in(tmp_path, recipe, patches=patches)


def test_the_build_gets_the_patches_in_their_order(tools: Path, tmp_path: Path) -> None:
    series = PatchSeries.read(written(tmp_path, GIT, PLAIN))
    fake_tool(
        tools,
        "mmdebstrap",
        f'printf "%s\\n" "$@" > {tmp_path}/said; cp -r {tmp_path}/made/patches {tmp_path}\n'
        f"touch {tmp_path}/made/status {tmp_path}/made/base.tar",
    )
    modules_build(tmp_path, digest=series.digest, patches=series)
    assert f"copy-in {tmp_path}/made/patches /" in (tmp_path / "said").read_text()
    found = {path.name: path.read_text() for path in (tmp_path / "patches").iterdir()}
    assert found == {
        "0000.patch": GIT,
        "0001.patch": PLAIN,
        "touched": "fs/netfs/main.c\nfs/netfs/write_issue.c\nfs/smb/client/file.c\n",
    }
    assert {path.name for path in (tmp_path / "made").iterdir()} == {"base.tar", "packages.json"}


def test_other_patches_than_the_named_ones_are_not_built(tools: Path, tmp_path: Path) -> None:
    fake_tool(tools, "mmdebstrap", f"touch {tmp_path}/called; exit 1")
    with pytest.raises(HarnessError, match="is not built yet"):
        modules_build(tmp_path, digest="0" * 12, patches=NO_PATCHES)
    assert not (tmp_path / "called").exists()


NETFS = "usr/lib/modules/6.12/kernel/fs/netfs/netfs.ko"


def test_patched_modules_take_the_places_of_the_kernels_own(tmp_path: Path) -> None:
    archive = archive_of(tmp_path / "modules.tar", {"release": b"6.12", NETFS: b"netfs"})
    known = {NETFS, "usr/bin/sh"}
    assert patched_modules(archive, release="6.12", known=known) == {NETFS: b"netfs"}


@pytest.mark.parametrize(
    ("names", "release", "known", "why"),
    [
        ((NETFS,), "6.12.1", {NETFS}, "is not of the kernel"),
        ((NETFS,), "6.12", set[str](), "has no usr/lib"),
        ((), "6.12", {NETFS}, "has no module"),
    ],
)
def test_modules_that_do_not_belong_to_the_kernel_are_refused(
    names: tuple[str, ...], release: str, known: set[str], why: str, tmp_path: Path
) -> None:
    archive = archive_of(tmp_path / "modules.tar", dict.fromkeys(("release", *names), b"built"))
    with pytest.raises(HarnessError, match=why):
        patched_modules(archive, release=release, known=known)
