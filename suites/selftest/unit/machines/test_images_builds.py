"""Builds without a mirror: locks, two builders, interrupted and failing ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread, Timer

import pytest

from suites.selftest.unit.base_builds import build_in
from suites.selftest.unit.conftest import fake_tool
from torture.deadlines import wait_until_true
from torture.errors import DeadlineExceeded, HarnessError
from torture.files import CHECKOUT
from torture.machines.host.scratch import CACHE_VARIABLE
from torture.machines.images import bases, cache
from torture.machines.images.build import GuestImage
from torture.machines.images.cache import Cache
from torture.machines.images.recipes import Recipe

# Begins a build as another process would, and stays in the middle of it.
UNDER_WAY = """
import sys, time
from pathlib import Path
from torture.machines.images.build import GuestImage
from torture.machines.images.cache import Cache
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
        cwd=CHECKOUT,
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

    def test_entries_unused_for_days_are_removed(self, store: Cache) -> None:
        for slot in ("one-1", "one-2"):
            store.place("images", slot).mkdir()
        long_ago = time.time() - 86400 * 100
        os.utime(store.place("images", "one-1"), (long_ago, long_ago))
        store.prepare()
        assert store.find("images", "one-1") is None
        assert store.find("images", "one-2")

    def test_an_image_that_a_run_of_days_marked_as_used_stays(self, store: Cache) -> None:
        """Another start's build tidies up, and finds the run's images as old as the run."""
        place = store.place("images", "one-1")
        place.mkdir()
        long_ago = time.time() - 86400 * 100
        os.utime(place, (long_ago, long_ago))
        image = GuestImage(
            name="one",
            key="1",
            kernel=place / "k",
            initrd=place / "i",
            root=place / "r",
            manifest={},
        )
        image.mark_used()
        store.prepare()
        assert store.find("images", "one-1")

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
        with pytest.raises(HarnessError, match=CACHE_VARIABLE):
            Cache(tmp_path / "file" / "cache").prepare()


class TestBase:
    RECIPE = Recipe(
        name="one",
        suite="trixie",
        components=("main",),
        packages=("udev",),
        path=Path("one/recipe.toml"),
    )

    def test_a_failing_build_is_reported_with_the_end_of_its_log(
        self, tools: Path, tmp_path: Path
    ) -> None:
        fake_tool(tools, "mmdebstrap", "seq 100; echo 'E: no such package' >&2; exit 25")
        with pytest.raises(HarnessError, match="E: no such package") as caught:
            build_in(tmp_path, self.RECIPE)
        assert "exit code 25" in caught.value.message
        assert str(tmp_path / "log") in caught.value.message
        assert "| 50" not in caught.value.message
        assert "tools/images build" in caught.value.hint

    def test_a_full_disk_is_named_as_the_reason(self, tools: Path, tmp_path: Path) -> None:
        fake_tool(tools, "mmdebstrap", "echo 'tar: x: No space left on device'; exit 1")
        with pytest.raises(HarnessError, match="make room"):
            build_in(tmp_path, self.RECIPE)

    def test_a_build_gives_versions_and_says_its_steps(self, tools: Path, tmp_path: Path) -> None:
        status = (
            "Package: udev\nStatus: install ok installed\nVersion: 257-1\n\n"
            "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n"
        )
        fake_tool(
            tools,
            "mmdebstrap",
            f"echo 'I: extracting archives...'; echo noise\nprintf '{status}' > {tmp_path}/made/status",
        )
        (step,) = build_in(tmp_path, self.RECIPE)
        assert step.startswith("one: extracting archives (")
        assert json.loads((tmp_path / "made/packages.json").read_text()) == {"udev": "257-1"}

    def test_mmdebstrap_gets_the_mirrors_and_the_hosts_proxy(
        self, tools: Path, tmp_path: Path
    ) -> None:
        fake_tool(tools, "mmdebstrap", f'printf "%s\\n" "$@" > {tmp_path}/said; exit 1')
        with pytest.raises(HarnessError):
            build_in(tmp_path, self.RECIPE)
        said = (tmp_path / "said").read_text()
        assert '--aptopt=Acquire::http::Proxy "http://proxy.invalid:3128";' in said
        assert "http://mirror.invalid/debian/ trixie main\n" in said

    def test_apt_prefers_backports_only_where_the_recipe_says_so(
        self, tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The hook is run as mmdebstrap does: `sh -c HOOK`, with the root as its first argument."""
        hook = 'case $word in --setup-hook=*) sh -c "${word#*=}" exec "$ROOT";; esac'
        said = f'printf "%s\\n" "$@" > {tmp_path}/said'
        fake_tool(tools, "mmdebstrap", f"{said}; for word; do {hook}; done; exit 1")
        pins = tmp_path / "root/etc/apt/preferences.d/backports"
        pins.parent.mkdir(parents=True)
        monkeypatch.setenv("ROOT", str(tmp_path / "root"))
        with pytest.raises(HarnessError):
            build_in(tmp_path, self.RECIPE)
        assert not pins.exists()
        assert "-backports" not in (tmp_path / "said").read_text()
        with pytest.raises(HarnessError):
            build_in(tmp_path, replace(self.RECIPE, backports=("zfs-linux",)))
        assert pins.read_text() == bases.preferences("trixie", ("zfs-linux",))
        assert (
            "http://mirror.invalid/debian/ trixie-backports main\n"
            in (tmp_path / "said").read_text()
        )

    def test_a_stopped_build_leaves_no_process(self, tools: Path, tmp_path: Path) -> None:
        fake_tool(tools, "mmdebstrap", f"echo $$ > {tmp_path}/pid; exec sleep 60")
        pid, stop = tmp_path / "pid", Event()

        def stop_once_begun() -> None:
            wait_until_true(
                lambda: pid.exists() and bool(pid.read_text()), deadline_s=20, poll_s=0.01
            )
            stop.set()

        Thread(target=stop_once_begun).start()
        with pytest.raises(HarnessError, match="stopped"):
            build_in(tmp_path, self.RECIPE, stop=stop)
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)

    def test_a_user_without_a_range_gets_the_command_for_one(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(os, "getuid", lambda: 65534)
        (tmp_path / "subuid").write_text("somebody:100000:65536\n")
        monkeypatch.setattr(bases, "_SUBUID", tmp_path / "subuid")
        with pytest.raises(HarnessError, match="usermod --add-subuids"):
            bases._mode()
        (tmp_path / "subuid").write_text("nobody:100000:65536\n")
        assert bases._mode() == "unshare"
