"""`constraints.txt` holds every Python package that is used, and never says where one comes from.

Images by their content: their digest, and that of a copy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fixtures.early_options import asks_for_dask
from torture.files import CHECKOUT
from torture.machines.host.scratch import CACHE_VARIABLE
from torture.machines.images import find
from torture.machines.images.cache import DIGEST, computed_digest, content_digest
from torture.machines.images.recipes import read_recipe
from torture.setup import provision
from torture.setup.provision import CONSTRAINTS, ENVIRONMENT, read_project

PIN = re.compile(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.+!]+)(?: ; [a-z_]+ [<>=!]+ '[A-Za-z0-9.]+')?")
"""A name and a version, perhaps with the Pythons that need it, and never a place."""
NEXT = "next: uv pip compile pyproject.toml"


@pytest.fixture(scope="module")
def pins() -> dict[str, str]:
    """Version by name, of every line that is not a comment; a line that says anything else fails."""
    lines = [line for line in CONSTRAINTS.read_text().splitlines() if not line.startswith("#")]
    found = [PIN.fullmatch(line) for line in lines]
    assert None not in found, lines
    return {canonicalize_name(pin[1]): pin[2] for pin in found if pin is not None}


def used(roots: Iterable[str]) -> set[str]:
    """The packages that these are, and all that those need in this environment, however far away."""
    remaining, seen = [Requirement(root) for root in roots], set[tuple[str, str]]()
    while remaining:
        requirement = remaining.pop()
        name = canonicalize_name(requirement.name)
        new = {(name, extra) for extra in ("", *requirement.extras)} - seen
        seen |= new
        for need in map(Requirement, requires(name) or ()) if new else ():
            if need.marker is None or any(
                need.marker.evaluate({"extra": extra}) for _, extra in new
            ):
                remaining.append(need)
    return {name for name, _ in seen}


def test_every_requirement_is_held_at_a_version_that_it_allows(pins: dict[str, str]) -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    builders = project["build-system"]["requires"]
    assert builders == project["dependency-groups"]["build"]
    for requirement in map(Requirement, (*read_project().dependencies, *builders)):
        held = pins.get(canonicalize_name(requirement.name))
        assert held is not None, f"{requirement} is not held; {NEXT}"
        assert requirement.specifier.contains(held), f"{requirement} forbids {held}; {NEXT}"


def test_packages_that_the_requirements_need_have_a_version_too(pins: dict[str, str]) -> None:
    asked_for = read_project().dependencies
    names = used(asked_for)
    assert len(names) > len(asked_for)
    assert names - pins.keys() == set(), NEXT


@pytest.mark.skipif(Path(sys.prefix) != ENVIRONMENT, reason="this environment is not tools/run's")
def test_the_environment_has_the_versions_that_are_held(pins: dict[str, str]) -> None:
    names = used(read_project().dependencies)
    assert {name: version(name) for name in names} == {name: pins[name] for name in names}


def test_they_are_drawn_for_the_oldest_python_of_the_project() -> None:
    """Newer ones have all versions that it has."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    assert (
        project["project"]["requires-python"]
        == f">={project['tool']['uv']['pip']['python-version']}"
    )


def test_other_constraints_are_another_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stamp = provision.environment_stamp()
    other = tmp_path / "constraints.txt"
    other.write_text(CONSTRAINTS.read_text() + "# renewed\n")
    monkeypatch.setattr(provision, "CONSTRAINTS", other)
    assert provision.environment_stamp() != stamp


def test_dask_is_not_installed_for_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only for who asks for it, and for who had it before."""
    project = read_project()
    assert set(project.dependencies) - set(project.slim) == set(project.dask)
    made: list[tuple[str, ...]] = []
    added: list[tuple[str, ...]] = []
    environment = tmp_path / ".venv"
    package = environment / "lib" / "python3.11" / "site-packages" / "distributed"

    def make(folder: Path, requirements: tuple[str, ...], **_: object) -> None:
        made.append(requirements)
        package.mkdir(parents=True)
        if requirements == project.dependencies:
            (package / "__init__.py").touch()

    monkeypatch.setattr(provision, "ENVIRONMENT", environment)
    monkeypatch.setattr(provision, "make_environment", make)
    monkeypatch.setattr(provision, "_install", lambda _folder, names, **_: added.append(names))
    monkeypatch.setattr(provision, "_borrow_libnbd", lambda: None)
    for with_dask in (False, False, True, True):
        provision._environment(lambda _text: None, with_dask=with_dask)
    assert (made, added) == ([project.slim], [project.dask, project.dask])
    (package / "__init__.py").touch()
    provision._environment(lambda _text: None, with_dask=True)
    (environment / "torture-stamp").write_text("of an older one")
    provision._environment(lambda _text: None, with_dask=False)
    assert (made, len(added)) == ([project.slim, project.dependencies], 2)


@pytest.mark.parametrize(
    ("arguments", "asks"),
    [
        (["--workers", "dask"], True),
        (["suites/powercut", "--workers=dask:tls://a:1"], True),
        (["suites/chaos/", "--disturbances", "9"], True),
        (["--workers", "local"], False),
        (["--workers"], False),
        ([], False),
    ],
)
def test_a_run_on_dask_asks_for_it(arguments: list[str], asks: bool) -> None:
    assert asks_for_dask(arguments) is asks


STAND_IN = """\
#!/bin/sh
if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/pip"; exit; fi
pwd >"$CALLED"
env >>"$CALLED"
"""
"""For Python, and for the pip of the environment that it makes."""


def test_pip_obeys_them_beside_the_constraints_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    called = tmp_path / "called"
    monkeypatch.setenv("CALLED", str(called))
    monkeypatch.setenv("PIP_CONSTRAINT", "/etc/theirs.txt")
    monkeypatch.delenv("PIP_BUILD_CONSTRAINT", raising=False)
    python = tmp_path / "python"
    python.write_text(STAND_IN)
    python.chmod(0o755)
    folder = tmp_path / "environment"
    provision.make_environment(folder, ["numpy"], python=str(python), constraints=CONSTRAINTS)
    lines = called.read_text().splitlines()
    assert lines[0] == os.fspath(CHECKOUT)
    assert "PIP_CONSTRAINT=/etc/theirs.txt constraints.txt" in lines
    assert "PIP_BUILD_CONSTRAINT=constraints.txt" in lines


CONTENT = {"root.sqfs": b"root" * 100_000, "vmlinuz": b"kernel", "initrd": b"initrd"}


def built_image(cache: Path) -> Path:
    """A small image of the NAS's recipe in a cache, as one that was built without a digest."""
    folder = cache / "images" / f"nas-{read_recipe('nas').image_key}"
    folder.mkdir(parents=True)
    for name, content in CONTENT.items():
        (folder / name).write_bytes(content)
    (folder / "manifest.json").write_text('{"kernel": "6.12", "zfs": "2.3.9"}')
    return folder


def test_coreutils_print_the_same_digest_and_it_is_kept(tmp_path: Path) -> None:
    folder = built_image(tmp_path)
    shell = "sha256sum initrd root.sqfs vmlinuz | sha256sum"
    done = subprocess.run(["sh", "-c", shell], cwd=folder, capture_output=True, check=True)
    digest = content_digest(folder)
    assert done.stdout.decode().split()[0] == digest == computed_digest(folder)
    (folder / "vmlinuz").write_bytes(b"another")
    assert content_digest(folder) == digest, "a finished image never changes, so none is read twice"
    assert computed_digest(folder) != digest


def test_a_copy_without_its_digest_has_that_of_its_own_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/fleet.md copies images; a damaged copy is another image."""
    built = built_image(tmp_path / "builder")
    digest = content_digest(built)
    copy = tmp_path / "other" / "images" / built.name
    shutil.copytree(built, copy, ignore=shutil.ignore_patterns(DIGEST))
    (copy / "root.sqfs").write_bytes(CONTENT["root.sqfs"][:-1])
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "other"))
    image = find("nas")
    assert image is not None
    assert image.sha256 != digest
