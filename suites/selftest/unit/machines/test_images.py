"""The image builder without a mirror and without a VM: mirrors, keys, initrd, root, versions."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from suites.selftest.unit.base_builds import archive_of
from suites.selftest.unit.conftest import APT_CONFIG, INDEX_TARGETS, RECIPE, fake_tool
from torture.errors import HarnessError
from torture.machines.images import assemble, bases, build, recipes
from torture.machines.images.recipes import read_recipe

FOLLOWS = 'follows_zfs = true\npackages = ["udev"]\nfiles = ["one/files"]\n'


class TestMirrors:
    def test_only_debians_own_archives_are_taken_each_pocket_once(self) -> None:
        assert bases.parse_index_targets(INDEX_TARGETS) == [
            ("http://mirror.invalid/debian/", ""),
            ("http://mirror.invalid/debian/", "-updates"),
            ("http://mirror.invalid/debian-security/", "-security"),
        ]

    def test_an_unexpanded_origin_means_the_host_never_ran_an_update(self) -> None:
        line = "$(ORIGIN)|http://mirror.invalid/debian/|sid|main\n"
        assert bases.parse_index_targets(line) == [("http://mirror.invalid/debian/", "")]

    @pytest.mark.usefixtures("tools")
    def test_the_recipes_suite_replaces_the_hosts(self) -> None:
        lines = bases.sources("trixie", ["main", "contrib"])
        assert [line.split()[-4:] for line in lines] == [
            ["http://mirror.invalid/debian/", "trixie", "main", "contrib"],
            ["http://mirror.invalid/debian/", "trixie-updates", "main", "contrib"],
            ["http://mirror.invalid/debian-security/", "trixie-security", "main", "contrib"],
        ]

    @pytest.mark.usefixtures("tools")
    def test_backports_come_from_the_suites_own_archive_on_every_host(self) -> None:
        (line,) = set(bases.sources("trixie", ["main"], with_backports=True)) - set(
            bases.sources("trixie", ["main"])
        )
        assert line.endswith("http://mirror.invalid/debian/ trixie-backports main")

    def test_only_the_named_sources_are_taken_from_backports(self) -> None:
        assert bases.preferences("trixie", ["zfs-linux"]) == (
            "Package: src:zfs-linux\nPin: release n=trixie-backports\nPin-Priority: 990\n"
        )

    def test_a_host_without_debian_gets_the_variable_as_a_hint(self, tools: Path) -> None:
        fake_tool(tools, "apt-get", "echo 'Ubuntu|http://mirror.invalid/ubuntu/|noble|main'")
        with pytest.raises(HarnessError, match=bases.MIRROR_VARIABLE):
            bases.sources("trixie", ["main"])

    def test_the_variable_wins(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(bases.MIRROR_VARIABLE, "http://given.invalid/debian")
        (line,) = bases.sources("trixie", ["main"])
        assert line.endswith("http://given.invalid/debian trixie main")

    def test_only_options_for_reaching_a_mirror_are_passed_on(self) -> None:
        assert bases.parse_transport_options(APT_CONFIG) == [
            'Acquire::Check-Valid-Until "false";',
            'Acquire::http::Proxy "http://proxy.invalid:3128";',
            'Acquire::http::Proxy::local.invalid "DIRECT";',
            'Acquire::https::CaInfo "/etc/ssl/own.pem";',
        ]


class TestKeys:
    def test_our_files_change_the_image_but_not_the_base(self, home: Path) -> None:
        before = read_recipe("one")
        keys = {before.image_key}
        (home / "one/files/etc/hostname").write_text("two\n")
        keys.add(read_recipe("one").image_key)
        (home / "one/files/etc/hostname").chmod(0o755)
        keys.add(read_recipe("one").image_key)
        (home / "boot/init").write_text("#!/bin/sh\nset -eu\n")
        keys.add(read_recipe("one").image_key)
        assert len(keys) == 4
        assert read_recipe("one").base_key == before.base_key

    def test_packages_change_both(self, home: Path) -> None:
        before = read_recipe("one")
        (home / "one/recipe.toml").write_text(RECIPE.replace("udev", "mdevd"))
        after = read_recipe("one")
        assert after.base_key != before.base_key
        assert after.image_key != before.image_key

    def test_backports_change_the_bases_of_that_version_alone(self, home: Path) -> None:
        zfs, nas = home / "zfs/2.3.9.toml", home / "one/recipe.toml"
        nas.write_text(FOLLOWS)
        before = read_recipe("one")
        assert before.kernel is not None
        (home / "zfs/2.4.4.toml").write_text('backports = ["zfs"]\n' + zfs.read_text())
        after = read_recipe("one", zfs="2.4.4")
        assert after.kernel is not None
        assert after.backports == after.kernel.backports == ("zfs",)
        assert after.base_key != before.base_key
        assert after.kernel.base_key != before.kernel.base_key
        assert read_recipe("one") == before

    def test_the_kernels_stage_changes_every_image(self, home: Path) -> None:
        before = read_recipe("one").image_key
        (home / "zfs/stage.sh").write_text("#!/bin/sh\n")
        assert read_recipe("one").image_key != before

    def test_bytecode_lying_about_changes_nothing(self, home: Path) -> None:
        before = read_recipe("one").image_key
        (home / "one/files/__pycache__").mkdir()
        (home / "one/files/__pycache__/x.pyc").write_bytes(b"x")
        assert read_recipe("one").image_key == before

    @pytest.mark.parametrize(
        ("text", "said"),
        [("suite = ", "recipe.toml"), ("suite = 'x'", "components"), (RECIPE + "x=1", "x")],
    )
    def test_a_wrong_recipe_is_named(self, home: Path, text: str, said: str) -> None:
        (home / "one/recipe.toml").write_text(text)
        with pytest.raises(HarnessError, match=said):
            read_recipe("one")

    def test_a_recipe_that_extends_another_adds_to_its_lists_and_keeps_the_rest(
        self, home: Path
    ) -> None:
        (home / "two/files").mkdir(parents=True)
        (home / "two/files/extra").write_text("")
        two = home / "two/recipe.toml"
        two.write_text('extends = "one"\npackages = ["postgresql"]\nfiles = ["two/files"]\n')
        one, more = read_recipe("one"), read_recipe("two")
        assert (more.suite, more.components, more.kernel) == (one.suite, one.components, one.kernel)
        assert more.packages == (*one.packages, "postgresql")
        assert more.files == (*one.files, home / "two/files")
        two.write_text('extends = "one"\nsuite = "forky"\n')
        assert (read_recipe("two").suite, read_recipe("two").packages) == ("forky", one.packages)

    def test_a_recipe_leaves_out_packages_that_conflict_with_its_own(self, home: Path) -> None:
        (home / "two").mkdir()
        left_out = read_recipe("one").packages[0]
        (home / "two/recipe.toml").write_text(
            f'extends = "one"\npackages = ["samba"]\nwithout_packages = ["{left_out}"]\n'
        )
        assert read_recipe("two").packages == (*read_recipe("one").packages[1:], "samba")

    def test_a_change_of_the_extended_recipe_changes_the_image_too(self, home: Path) -> None:
        (home / "two").mkdir()
        (home / "two/recipe.toml").write_text('extends = "one"\n')
        before = read_recipe("two")
        keys = {before.image_key}
        (home / "one/recipe.toml").write_text(RECIPE + 'udev_rules = ["x"]\n')
        assert read_recipe("two").base_key == before.base_key
        keys.add(read_recipe("two").image_key)
        (home / "one/files/etc/hostname").write_text("two\n")
        keys.add(read_recipe("two").image_key)
        assert len(keys) == 3
        (home / "one/recipe.toml").write_text(RECIPE.replace("udev", "mdevd"))
        assert read_recipe("two").base_key != before.base_key

    def test_a_recipe_that_extends_none_is_named(self, home: Path) -> None:
        (home / "one/recipe.toml").write_text('extends = "none"\n')
        with pytest.raises(HarnessError, match=r"none/recipe\.toml"):
            read_recipe("one")

    def test_an_image_on_demand_is_none_of_every_run(self, home: Path) -> None:
        (home / "two").mkdir()
        (home / "two/recipe.toml").write_text('extends = "one"\non_demand = true\n')
        assert recipes.image_names() == ("one", "two")
        assert recipes.images_of_every_run() == ("one",)

    def test_an_unknown_image_is_answered_with_the_known_ones(self, home: Path) -> None:
        with pytest.raises(HarnessError, match="known are: one"):
            read_recipe("none")

    @pytest.mark.parametrize("name", recipes.image_names())
    def test_our_own_recipes_parse_and_the_files_they_name_exist(self, name: str) -> None:
        recipe = read_recipe(name)
        for tree in [*recipe.files, *(tree for tree, _ in recipe.python)]:
            assert recipes.tree_files(tree), f"{tree} is empty"


class TestInitrd:
    DEP = (
        "kernel/c.ko: kernel/b.ko kernel/a-x.ko\nkernel/b.ko: kernel/a-x.ko\n"
        "kernel/a-x.ko:\nkernel/d.ko.xz:\n"
    )

    def test_a_module_comes_once_and_after_the_modules_it_needs(self) -> None:
        order = assemble.module_order(self.DEP, "kernel/e.ko\n", ["b", "e", "c", "d"])
        assert order == ["kernel/a-x.ko", "kernel/b.ko", "kernel/c.ko", "kernel/d.ko.xz"]

    def test_a_module_the_kernel_lacks_is_an_error(self) -> None:
        with pytest.raises(HarnessError, match="'f'"):
            assemble.module_order(self.DEP, "", ["f"])

    def test_the_archive_reads_back(self) -> None:
        archive = assemble.cpio({"bin": None, "bin/sh": b"12345", "init": b""})
        found, at = [], 0
        while at < len(archive):
            assert archive[at : at + 6] == b"070701"
            fields = [int(archive[i : i + 8], 16) for i in range(at + 6, at + 110, 8)]
            mode, size, name_size = fields[1], fields[6], fields[11]
            name = archive[at + 110 : at + 110 + name_size - 1].decode()
            at += -(-(110 + name_size) // 4) * 4
            found.append((name, mode, archive[at : at + size]))
            at += -(-size // 4) * 4
        assert found == [
            ("bin", 0o040755, b""),
            ("bin/sh", 0o100755, b"12345"),
            ("init", 0o100755, b""),
            ("TRAILER!!!", 0, b""),
        ]


class TestRoot:
    def names(self, tmp_path: Path) -> dict[str, bytes]:
        base = archive_of(
            tmp_path / "base.tar",
            {
                "etc/hostname": b"debian\n",
                "etc/machine-id": b"random\n",
                "etc/apt/sources.list": b"a mirror\n",
                "var/log/dpkg.log": b"today\n",
                "usr/sbin/init": b"",
            },
            sbin=(tarfile.SYMTYPE, "usr/sbin"),
        )
        modules = {"usr/lib/modules/6/zfs.ko": b"z", "vmlinuz": b"k"}
        kernel = archive_of(tmp_path / "kernel.tar", modules)
        with tarfile.open(base) as base_tar, tarfile.open(kernel) as kernel_tar:
            entries = assemble._root_entries(read_recipe("one"), base_tar, kernel_tar, tmp_path)
            assert [e.info.name for e in entries] == sorted(e.info.name for e in entries)
            return {e.info.name: e.content for e in entries}

    @pytest.mark.usefixtures("home")
    def test_ours_wins_and_traces_of_the_making_are_gone(self, tmp_path: Path) -> None:
        root = self.names(tmp_path)
        assert root["etc/hostname"] == b"one\n"
        assert root["etc/machine-id"] == b""
        assert "usr/lib/modules/6/zfs.ko" in root
        assert {"sys", "proc", "run", "tmp", "var/log"} <= set(root)
        assert not {"etc/apt/sources.list", "var/log/dpkg.log", "vmlinuz"} & set(root)

    def test_a_file_below_a_link_is_refused(self, home: Path, tmp_path: Path) -> None:
        (home / "one/files/sbin").mkdir()
        (home / "one/files/sbin/x").write_text("")
        with pytest.raises(HarnessError, match="usr/sbin instead"):
            self.names(tmp_path)


class TestVersions:
    def test_tools_and_modules_of_different_versions_are_refused(self, tmp_path: Path) -> None:
        for name, packages in {
            "nas": {"zfsutils-linux": "2.3.9-1"},
            "client": {"fio": "3"},
            "kernel": {"zfs-dkms": "2.3.8-1"},
        }.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / "packages.json").write_text(json.dumps(packages))
        kernel = tmp_path / "kernel"
        with pytest.raises(HarnessError, match="--fresh"):
            build._manifest(tmp_path / "nas", kernel, "6.12")
        assert build._manifest(tmp_path / "client", kernel, "6.12") == {
            "fio": "3",
            "kernel": "6.12",
            "zfs": "2.3.8-1",
        }
