"""The pure parts of a host's OCI image: its commands, its configuration, and the checkout in it."""

from __future__ import annotations

import platform
import shutil
import tarfile
from pathlib import Path

import pytest

from torture.errors import HarnessError
from torture.machines.host.fleet import SETTINGS, commands
from torture.machines.images.mirrors import MIRROR_VARIABLE
from torture.setup.oci_image import (
    HOME,
    image_settings,
    layout_commands,
    make_image,
    pack_checkout,
    root_command,
)
from torture.setup.provision import wanted_packages


def test_the_root_has_the_hosts_packages_and_is_furnished_after_its_parts_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, "file:///srv/debian")
    command = root_command("trixie", tmp_path)
    [included] = [word for word in command if word.startswith("--include=")]
    assert set(included.removeprefix("--include=").split(",")) == {
        "ca-certificates", *wanted_packages(),
    }  # fmt: skip
    assert command[-3:-1] == ["trixie", str(tmp_path / "root.tar")]
    assert "file:///srv/debian trixie main" in command[-1]
    hooks = [word for word in command if "customize-hook=" in word]
    order = ("mkdir -p", "tar-in", "copy-in", "furnish", "rm -r")
    assert [part in hook for part, hook in zip(order, hooks, strict=True)] == [True] * 5


def test_a_container_is_a_worker_unless_its_user_gives_a_command() -> None:
    settings = image_settings()
    assert settings["entrypoint"] == ["tini", "--"]
    assert settings["cmd"][:2] == ["dask", "worker"]
    variables = dict(word.split("=", 1) for word in settings["env"])
    assert variables["PATH"].startswith(f"{HOME}/.venv/bin:")
    assert len([name for name in variables if name.startswith("DASK_")]) == len(SETTINGS)


def test_a_container_works_as_a_worker_of_the_printed_commands_does() -> None:
    printed = commands("nas", Path("/certificates"), workers=4)
    [worker] = [line for line in printed if "/dask worker" in line]
    by_hand, by_image = worker.split(), image_settings()["cmd"]
    assert set(by_image) - set(by_hand) == {"dask", "-1"}
    assert {word for word in image_settings()["env"] if "DASK_" in word} <= set(by_hand)


def test_the_image_is_a_layer_and_its_configuration() -> None:
    made = layout_commands(Path("/w/layout"), Path("/w/root.tar"))
    assert [command[1] for command in made] == ["init", "new", "raw", "config"]
    assert made[2][-3:] == ["--image", "/w/layout:latest", "/w/root.tar"]
    pairs = list(zip(made[3], made[3][1:], strict=False))
    words = [value for option, value in pairs if option == "--config.cmd"]
    assert words == image_settings()["cmd"]


def test_the_checkout_in_it_is_without_ignored_files_and_belongs_to_root(tmp_path: Path) -> None:
    pack_checkout(tmp_path / "checkout.tar")
    with tarfile.open(tmp_path / "checkout.tar") as tar:
        members = {member.name: member for member in tar}
    assert {"tools/run", "torture/setup/oci_image.py", "vmimages/boot/init"} <= members.keys()
    assert not [name for name in members if name.startswith((".venv", ".git/"))]
    assert {(member.uid, member.gid) for member in members.values()} == {(0, 0)}
    assert members["tools/run"].mode & 0o100


def test_no_image_is_begun_that_could_not_be_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make() -> None:
        make_image(tmp_path, with_images=False, say=print)

    release = {"VERSION_CODENAME": "noble"}
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    with pytest.raises(HarnessError, match="this one is noble"):
        make()
    release["VERSION_CODENAME"] = "trixie"
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(HarnessError, match="umoci is not installed"):
        make()
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(HarnessError, match="is there already"):
        make()
