"""Patches to the modules of a kernel: their parser, their name, and their modules in an image."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from suites.selftest.unit.base_builds import build_in
from suites.selftest.unit.conftest import fake_tool
from torture.errors import HarnessError
from torture.facts.linux.kernels import Kernels, choose_kernels, linux_version, why_unfit
from torture.facts.zfs.versions import zfs_version
from torture.machines.images.recipes import Recipe, read_recipe
from torture.machines.images.source_trees import NO_PATCHES, PatchSeries, patched_modules

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


def archive_of(folder: Path, *names: str) -> Path:
    path = folder / "modules.tar"
    with tarfile.open(path, "w") as tar:
        for name in ("./release", *names):
            info = tarfile.TarInfo(name)
            info.size = len(name)
            tar.addfile(info, io.BytesIO(name.encode()))
    return path


NETFS = "usr/lib/modules/6.12/kernel/fs/netfs/netfs.ko"


def test_patched_modules_take_the_places_of_the_kernels_own(tmp_path: Path) -> None:
    archive = archive_of(tmp_path, f"./{NETFS}")
    known = {NETFS, "usr/bin/sh"}
    assert patched_modules(archive, release="6.12", known=known) == {NETFS: f"./{NETFS}".encode()}


@pytest.mark.parametrize(
    ("names", "release", "known", "why"),
    [
        ((f"./{NETFS}",), "6.12.1", {NETFS}, "is not of the kernel"),
        ((f"./{NETFS}",), "6.12", set[str](), "has no usr/lib"),
        ((), "6.12", {NETFS}, "has no module"),
    ],
)
def test_modules_that_do_not_belong_to_the_kernel_are_refused(
    names: tuple[str, ...], release: str, known: set[str], why: str, tmp_path: Path
) -> None:
    with pytest.raises(HarnessError, match=why):
        patched_modules(archive_of(tmp_path, *names), release=release, known=known)
