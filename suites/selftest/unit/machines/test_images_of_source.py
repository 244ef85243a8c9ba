"""Images with a ZFS that was built from a source tree, without a mirror and without building one."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from suites.selftest.unit.base_builds import build_in
from suites.selftest.unit.conftest import fake_tool
from torture.errors import HarnessError
from torture.machines.images import assemble, bases, build
from torture.machines.images.recipes import Recipe, read_recipe
from torture.machines.images.sources.zfs_trees import SourceTree

VERSION = "2.4.99-0123456789ab"


def member(tar: tarfile.TarFile, name: str, *, link: tuple[bytes, str] | None = None) -> None:
    info = tarfile.TarInfo(name)
    if link is None:
        info.size = len(name)
        tar.addfile(info, io.BytesIO(name.encode()))
    else:
        info.type, info.linkname = link
        tar.addfile(info)


@pytest.fixture
def archives(tmp_path: Path) -> tuple[Path, Path]:
    """A base, and what a stage leaves that built a kernel's modules and tools."""
    base, kernel = tmp_path / "base.tar", tmp_path / "kernel.tar"
    with tarfile.open(base, "w") as tar:
        member(tar, "./usr/sbin/udevd")
    with tarfile.open(kernel, "w") as tar:
        member(tar, "./usr/lib/modules/6/zfs.ko")
        member(tar, "./vmlinuz")
        member(tar, "./nas/usr/sbin/zpool")
        member(tar, "./nas/usr/sbin/zstream")
        member(tar, "./nas/usr/sbin/zstreamdump", link=(tarfile.LNKTYPE, "./nas/usr/sbin/zstream"))
        member(tar, "./nas/usr/sbin/zinject", link=(tarfile.SYMTYPE, "./zstream"))
    return base, kernel


@pytest.mark.usefixtures("home")
def test_the_tools_lie_in_the_root_of_the_nas_and_of_no_other(
    archives: tuple[Path, Path], tmp_path: Path
) -> None:
    with tarfile.open(archives[0]) as base, tarfile.open(archives[1]) as kernel:
        nas = replace(read_recipe("one"), follows_zfs=True)
        found = {
            entry.info.name: entry.info
            for entry in assemble._root_entries(nas, base, kernel, tmp_path)
        }
    with tarfile.open(archives[0]) as base, tarfile.open(archives[1]) as kernel:
        others = {
            entry.info.name
            for entry in assemble._root_entries(read_recipe("one"), base, kernel, tmp_path)
        }
    assert "usr/sbin/zpool" in found
    assert found["usr/sbin/zstreamdump"].linkname == "usr/sbin/zstream"
    assert found["usr/sbin/zinject"].linkname == "./zstream"
    assert not any(name.startswith("nas") for name in {*found, *others})
    assert not any("zpool" in name for name in others)
    assert "usr/lib/modules/6/zfs.ko" in others & found.keys()


def test_its_image_says_the_version_that_was_built(tmp_path: Path) -> None:
    for name in ("nas", "kernel"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "packages.json").write_text(json.dumps({"kmod": "34"}))
    found = build._manifest(tmp_path / "nas", tmp_path / "kernel", "6.12", built=VERSION)
    assert found == {"kmod": "34", "kernel": "6.12", "zfs": VERSION}


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    root = tmp_path / "zfs"
    (root / "contrib/debian").mkdir(parents=True)
    (root / "META").write_text("Name: zfs\nVersion: 2.4.99\n")
    (root / "contrib/debian/rules.in").write_text("")
    return SourceTree.read(root)


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
    build_in(tmp_path, recipe, tree=tree)


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
