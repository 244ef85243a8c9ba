"""The kernels of the guests: their recipes, and the versions of OpenZFS that fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.errors import HarnessError
from torture.facts.linux import kernels
from torture.facts.linux.kernels import (
    DEFAULT,
    DEFAULT_KERNELS,
    Kernels,
    linux_names,
    linux_version,
    why_unfit,
)
from torture.facts.zfs.versions import version_names, zfs_version

_OF_TREE = "2.4.99-0123456789ab"


def test_the_default_is_the_first_name() -> None:
    assert linux_names()[0] == DEFAULT == DEFAULT_KERNELS.client


@pytest.mark.parametrize("zfs", version_names())
def test_each_zfs_runs_in_the_kernel_of_its_own_suite(zfs: str) -> None:
    version = zfs_version(zfs)
    assert why_unfit(version, linux_version(version.suite)) == ""


@pytest.mark.parametrize(
    ("zfs", "linux", "fits"),
    [
        ("2.1.11", "bookworm", True),
        ("2.1.11", "bookworm-backports", False),
        ("2.1.11", "trixie", False),
        ("2.3.2", "trixie", True),
        ("2.3.9", "bookworm", True),
        ("2.3.9", "bookworm-backports", True),
        ("2.3.9", "trixie-backports", False),
        ("2.3.9+log_not_claimed", "trixie-backports", False),
        ("2.4.4", "trixie-backports", False),
        (_OF_TREE, "trixie-backports", True),
        (_OF_TREE, "bookworm", False),
    ],
)
def test_a_pair_fits_by_the_bounds_of_zfs(zfs: str, linux: str, fits: bool) -> None:
    assert (why_unfit(zfs_version(zfs), linux_version(linux)) == "") is fits


def test_the_reason_names_both_versions() -> None:
    why = why_unfit(zfs_version("2.1.11"), linux_version("bookworm-backports"))
    assert why == "OpenZFS 2.1.11 supports Linux 3.10 to 6.2, and bookworm-backports has 6.12"


def test_an_unknown_kernel_is_refused_with_the_known_ones() -> None:
    for name in ("6.12", "../zfs/2.3.9", ""):
        with pytest.raises(HarnessError) as caught:
            linux_version(name)
        assert "trixie-backports" in caught.value.hint


@pytest.mark.parametrize("text", ["", "[linux]", "[linux]\nseries = 6", '[linux]\nseries = "six"'])
def test_a_garbled_recipe_is_named(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.toml").write_text(text)
    monkeypatch.setattr(kernels, "FOLDER", tmp_path)
    with pytest.raises(HarnessError, match=r"own\.toml"):
        linux_version("own")


def test_only_another_kernel_than_the_default_is_an_option() -> None:
    assert DEFAULT_KERNELS.option_of("nas") == DEFAULT_KERNELS.option_of("client") == ""
    both = Kernels.same("bookworm")
    assert both.option_of("nas") == both.option_of("client_git") == " --linux bookworm"
    assert Kernels.same(None) == DEFAULT_KERNELS
    nas = Kernels(nas="trixie-backports")
    assert nas.option_of("nas_samba") == " --linux trixie-backports"
    assert nas.option_of("client_git") == ""
