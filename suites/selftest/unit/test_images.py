"""The image builder without a mirror and without a VM: keys, mirrors, locks, interrupted builds."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Timer

import pytest

from torture.errors import DeadlineExceeded, HarnessError
from torture.lab.images import assemble, bases, build, cache, initrd, mirrors, recipes
from torture.lab.images.cache import Cache
from torture.lab.images.recipes import Recipe, read_recipe

INDEX_TARGETS = """\
Debian|http://mirror.invalid/debian/|bookworm|main
Debian|http://mirror.invalid/debian/|bookworm|contrib
Debian|http://mirror.invalid/debian/|bookworm-updates|main
Debian|http://mirror.invalid/debian/|bookworm-backports|main
Debian|http://mirror.invalid/debian-security/|bookworm-security|main
HashiCorp|https://third.invalid/|bookworm|main
PostgreSQL|https://third.invalid/pgdg/|bookworm-pgdg|main
. nodistro|https://third.invalid/node/|nodistro|main
Docker|https://third.invalid/docker/|bookworm|stable
"""

APT_CONFIG = """\
APT::Update::Post-Invoke:: "rm -f /var/cache/apt/archives/*.deb || true";
Acquire "";
Acquire::Check-Valid-Until "false";
Acquire::http::Proxy "http://proxy.invalid:3128";
Acquire::http::Proxy::local.invalid "DIRECT";
Acquire::https::CaInfo "/etc/ssl/own.pem";
Acquire::Languages "none";
Dir::Cache "var/cache/apt";
"""

RECIPE = """\
suite = "trixie"
components = ["main"]
packages = ["udev"]
files = ["one/files"]
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Recipes of an image `one` and of the kernel, in a folder of the test's own."""
    folder = tmp_path / "recipes"
    for name, content in {
        "one/recipe.toml": RECIPE,
        "one/files/etc/hostname": "one\n",
        "kernel/recipe.toml": 'suite = "trixie"\ncomponents = ["main"]\npackages = ["linux"]\n',
        "boot/init": "#!/bin/sh\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    for module in (recipes, assemble):
        monkeypatch.setattr(module, "RECIPES", folder)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Cache:
    made = Cache(tmp_path / "cache")
    made.prepare()
    return made


def fake_tool(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder before all others in PATH, where apt knows one mirror."""
    folder = tmp_path / "bin"
    monkeypatch.delenv(mirrors.MIRROR_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(bases, "_contained", list)
    monkeypatch.setattr(bases, "_mode", lambda: "root")
    fake_tool(folder, "apt-get", f"cat <<'END'\n{INDEX_TARGETS}END")
    fake_tool(folder, "apt-config", f"cat <<'END'\n{APT_CONFIG}END")
    return folder


class TestMirrors:
    def test_only_debians_own_archives_are_taken_each_pocket_once(self) -> None:
        assert mirrors.parse_index_targets(INDEX_TARGETS) == [
            ("http://mirror.invalid/debian/", ""),
            ("http://mirror.invalid/debian/", "-updates"),
            ("http://mirror.invalid/debian-security/", "-security"),
        ]

    def test_an_unexpanded_origin_means_the_host_never_ran_an_update(self) -> None:
        line = "$(ORIGIN)|http://mirror.invalid/debian/|sid|main\n"
        assert mirrors.parse_index_targets(line) == [("http://mirror.invalid/debian/", "")]

    @pytest.mark.usefixtures("tools")
    def test_the_recipes_suite_replaces_the_hosts(self) -> None:
        lines = mirrors.sources("trixie", ["main", "contrib"])
        assert [line.split()[-4:] for line in lines] == [
            ["http://mirror.invalid/debian/", "trixie", "main", "contrib"],
            ["http://mirror.invalid/debian/", "trixie-updates", "main", "contrib"],
            ["http://mirror.invalid/debian-security/", "trixie-security", "main", "contrib"],
        ]

    def test_a_host_without_debian_is_told_of_the_variable(self, tools: Path) -> None:
        fake_tool(tools, "apt-get", "echo 'Ubuntu|http://mirror.invalid/ubuntu/|noble|main'")
        with pytest.raises(HarnessError, match=mirrors.MIRROR_VARIABLE):
            mirrors.sources("trixie", ["main"])

    def test_the_variable_wins(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(mirrors.MIRROR_VARIABLE, "http://given.invalid/debian")
        (line,) = mirrors.sources("trixie", ["main"])
        assert line.endswith("http://given.invalid/debian trixie main")

    def test_only_what_decides_how_a_mirror_is_reached_is_passed_on(self) -> None:
        assert mirrors.parse_transport_options(APT_CONFIG) == [
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

    def test_the_kernels_stage_changes_every_image(self, home: Path) -> None:
        before = read_recipe("one").image_key
        (home / "kernel/stage.sh").write_text("#!/bin/sh\n")
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

    def test_an_unknown_image_is_answered_with_the_known_ones(self, home: Path) -> None:
        with pytest.raises(HarnessError, match="known are: kernel, one"):
            read_recipe("none")

    @pytest.mark.parametrize("name", [recipes.KERNEL, *build.IMAGES])
    def test_our_own_recipes_parse_and_what_they_name_exists(self, name: str) -> None:
        recipe = read_recipe(name)
        for tree in [*recipe.files, *(tree for tree, _ in recipe.python)]:
            assert recipes.tree_files(tree), f"{tree} is empty"


class TestInitrd:
    DEP = (
        "kernel/c.ko: kernel/b.ko kernel/a-x.ko\nkernel/b.ko: kernel/a-x.ko\n"
        "kernel/a-x.ko:\nkernel/d.ko.xz:\n"
    )

    def test_a_module_comes_after_what_it_needs_and_once(self) -> None:
        order = initrd.module_order(self.DEP, "kernel/e.ko\n", ["b", "e", "c", "d"])
        assert order == ["kernel/a-x.ko", "kernel/b.ko", "kernel/c.ko", "kernel/d.ko.xz"]

    def test_a_module_the_kernel_lacks_is_an_error(self) -> None:
        with pytest.raises(HarnessError, match="'f'"):
            initrd.module_order(self.DEP, "", ["f"])

    def test_the_archive_reads_back(self) -> None:
        archive = initrd.cpio({"bin": None, "bin/sh": b"12345", "init": b""})
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


def archive_of(path: Path, files: dict[str, bytes], links: dict[str, str]) -> tarfile.TarFile:
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for name, target in links.items():
            info = tarfile.TarInfo(f"./{name}")
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return tarfile.open(path)


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
            {"sbin": "usr/sbin"},
        )
        kernel = archive_of(
            tmp_path / "kernel.tar", {"usr/lib/modules/6/zfs.ko": b"z", "vmlinuz": b"k"}, {}
        )
        with base, kernel:
            entries = assemble._root_entries(read_recipe("one"), base, kernel, tmp_path)
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


# Begins a build as another process would, and stays in the middle of it.
UNDER_WAY = """
import sys, time
from pathlib import Path
from torture.lab.images.cache import Cache
store = Cache(Path(sys.argv[1]))
with store.locked("one-1", deadline_s=1, progress=print), store.workspace("one-1") as (work, _):
    (work / "made").mkdir()
    print("under way", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def builder(store: Cache) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", UNDER_WAY, str(store.root)],
        cwd=recipes.CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout
        assert process.stdout.readline() == "under way\n"
        yield process
        process.kill()


class TestCache:
    def test_a_dead_builders_leftovers_go_a_living_ones_stay(
        self, store: Cache, builder: subprocess.Popen[str]
    ) -> None:
        store.prepare()
        assert len(list((store.root / "work").iterdir())) == 1
        builder.send_signal(signal.SIGKILL)
        builder.wait()
        store.prepare()
        assert not list((store.root / "work").iterdir())
        assert store.find("images", "one-1") is None

    @pytest.mark.usefixtures("builder")
    def test_a_second_builder_says_that_it_waits_and_gives_up(self, store: Cache) -> None:
        said: list[str] = []
        with (
            pytest.raises(DeadlineExceeded, match="fuser"),
            store.locked("one-1", deadline_s=0.1, progress=said.append),
        ):
            pass
        assert said == ["one-1: another process builds it, waiting for it"]

    def test_a_second_builder_goes_on_when_the_first_is_gone(
        self, store: Cache, builder: subprocess.Popen[str]
    ) -> None:
        said: list[str] = []
        timer = Timer(0.1, builder.kill)
        timer.start()
        with store.locked("one-1", deadline_s=10, progress=said.append):
            timer.join()
        assert said

    def test_a_finished_folder_appears_whole_and_the_workspace_is_gone(self, store: Cache) -> None:
        with store.workspace("one-1") as (work, _):
            (work / "made").mkdir()
            (work / "made/root.sqfs").write_bytes(b"root")
            assert store.find("images", "one-1") is None
            store.publish(work / "made", "images", "one-1")
        found = store.find("images", "one-1")
        assert found
        assert (found / "root.sqfs").read_bytes() == b"root"
        assert not list((store.root / "work").iterdir())

    def test_what_nobody_uses_for_days_goes(self, store: Cache) -> None:
        for slot in ("one-1", "one-2"):
            store.place("images", slot).mkdir()
        long_ago = time.time() - 86400 * 100
        os.utime(store.place("images", "one-1"), (long_ago, long_ago))
        store.prepare()
        assert store.find("images", "one-1") is None
        assert store.find("images", "one-2")

    def test_too_little_room_is_said_before_the_build(
        self, store: Cache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cache, "ROOM_BYTES", 1 << 60)
        with pytest.raises(HarnessError, match="free"):
            store.require_room()

    def test_a_folder_that_cannot_be_written_is_said_with_the_variable(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(HarnessError, match=cache.CACHE_VARIABLE):
            Cache(tmp_path / "file" / "cache").prepare()


class TestBase:
    RECIPE = Recipe(
        name="one", suite="trixie", components=("main",), packages=("udev",), stage=None
    )

    def build(self, tmp_path: Path, *, stop: Event | None = None) -> list[str]:
        said: list[str] = []
        with (tmp_path / "keep").open("w") as keep:
            bases.build_base(
                self.RECIPE,
                tmp_path,
                log=tmp_path / "one.log",
                progress=said.append,
                stop=stop or Event(),
                keep=keep.fileno(),
            )
        return said

    def test_a_failing_build_is_told_with_the_log_and_its_end(
        self, tools: Path, tmp_path: Path
    ) -> None:
        fake_tool(tools, "mmdebstrap", "seq 100; echo 'E: no such package' >&2; exit 25")
        with pytest.raises(HarnessError, match="E: no such package") as caught:
            self.build(tmp_path)
        assert "exit code 25" in caught.value.message
        assert str(tmp_path / "one.log") in caught.value.message
        assert "| 50" not in caught.value.message
        assert "tools/images build" in caught.value.hint

    def test_a_full_disk_is_told_as_such(self, tools: Path, tmp_path: Path) -> None:
        fake_tool(tools, "mmdebstrap", "echo 'tar: x: No space left on device'; exit 1")
        with pytest.raises(HarnessError, match="make room"):
            self.build(tmp_path)

    def test_a_build_gives_versions_and_says_its_steps(self, tools: Path, tmp_path: Path) -> None:
        status = (
            "Package: udev\nStatus: install ok installed\nVersion: 257-1\n\n"
            "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n"
        )
        fake_tool(
            tools,
            "mmdebstrap",
            f"echo 'I: extracting archives...'; echo noise\nprintf '{status}' > {tmp_path}/status",
        )
        (step,) = self.build(tmp_path)
        assert step.startswith("one: extracting archives (")
        assert json.loads((tmp_path / "packages.json").read_text()) == {"udev": "257-1"}

    def test_mmdebstrap_is_told_the_mirrors_and_the_hosts_proxy(
        self, tools: Path, tmp_path: Path
    ) -> None:
        fake_tool(tools, "mmdebstrap", f'printf "%s\\n" "$@" > {tmp_path}/said; exit 1')
        with pytest.raises(HarnessError):
            self.build(tmp_path)
        said = (tmp_path / "said").read_text()
        assert '--aptopt=Acquire::http::Proxy "http://proxy.invalid:3128";' in said
        assert "http://mirror.invalid/debian/ trixie main\n" in said

    def test_a_stopped_build_leaves_no_process(self, tools: Path, tmp_path: Path) -> None:
        fake_tool(tools, "mmdebstrap", f"echo $$ > {tmp_path}/pid; exec sleep 60")
        stop = Event()
        Timer(0.2, stop.set).start()
        with pytest.raises(HarnessError, match="stopped"):
            self.build(tmp_path, stop=stop)
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)

    def test_a_user_without_a_range_is_told_how_to_get_one(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(os, "getuid", lambda: 65534)
        (tmp_path / "subuid").write_text("somebody:100000:65536\n")
        monkeypatch.setattr(bases, "_SUBUID", tmp_path / "subuid")
        with pytest.raises(HarnessError, match="usermod --add-subuids"):
            bases._mode()
        (tmp_path / "subuid").write_text("nobody:100000:65536\n")
        assert bases._mode() == "unshare"


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
