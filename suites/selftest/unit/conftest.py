"""Fixtures of the image builder's tests: recipes, a cache and tools of the test's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torture.facts.zfs import versions
from torture.machines.images import assemble, bases, recipes
from torture.machines.images.cache import Cache

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


KERNEL_RECIPE = """\
suite = "trixie"
components = ["main"]
packages = ["linux"]
[zfs]
has_json_status = true
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Recipes of an image `one` and of the kernel, in a folder of the test's own."""
    folder = tmp_path / "recipes"
    for name, content in {
        "one/recipe.toml": RECIPE,
        "one/files/etc/hostname": "one\n",
        "zfs/2.3.9.toml": KERNEL_RECIPE,
        "boot/init": "#!/bin/sh\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    for module in (recipes, assemble):
        monkeypatch.setattr(module, "RECIPES", folder)
    monkeypatch.setattr(versions, "FOLDER", folder / "zfs")
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
    monkeypatch.delenv(bases.MIRROR_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(bases, "_contained", list)
    monkeypatch.setattr(bases, "_mode", lambda: "root")
    fake_tool(folder, "apt-get", f"cat <<'END'\n{INDEX_TARGETS}END")
    fake_tool(folder, "apt-config", f"cat <<'END'\n{APT_CONFIG}END")
    return folder
