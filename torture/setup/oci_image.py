"""A host of a fleet as one OCI image: packages, checkout, environment, shelf, and guest images if asked.

mmdebstrap makes the root, and umoci the image (https://github.com/opencontainers/image-spec). Neither
needs a registry, and no root where this user may have a range of user IDs. Standard library only.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from torture.checkout import CHECKOUT
from torture.errors import HarnessError
from torture.facts.zfs.versions import DEFAULT
from torture.files import whole_file
from torture.machines.host.cache_root import CACHE_VARIABLE
from torture.machines.host.commands import run_host
from torture.machines.host.fleet import (
    CERTIFICATES_VARIABLE,
    SETTINGS,
    WORKER_OPTIONS,
    tls_options,
    variable_of,
)
from torture.machines.host.native import shelf_plugin
from torture.machines.images import IMAGES, mirrors
from torture.setup.provision import (
    CONSTRAINTS,
    ENVIRONMENT,
    Say,
    make_own_environment,
    read_project,
    wanted_packages,
)
from torture.setup.shared_images import fetch, pack

HOME = "/opt/powercut-torture"
"""The checkout in the image."""
CERTIFICATES = "/certificates"
"""The folder where a container finds the fleet's certificates."""
SUITES = ("bookworm", "trixie")
"""The releases of Debian on which the suite was tested."""
_CACHE = "/var/cache/powercut-torture"
_WHEELS, _IMAGES = "/wheels", "/images"
_TAG = "latest"
_DEADLINE_S = 3600
_CONTAINED = ("unshare", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child", "--")
"""As root: a killed build loses all its processes and mounts."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FURNISH = "from torture.setup.oci_image import furnish; furnish()"


def make_image(place: Path, *, with_images: bool, say: Say) -> None:
    """Make an OCI layout in the folder `place`, or an archive of one where it is called `*.tar`.

    It has the release of this host, whose Python made the wheels. Raises `HarnessError` where a tool
    is missing or fails, and for a place that is there already.
    """
    place = place.absolute()
    suite = _suite()
    if shutil.which("umoci") is None:
        raise HarnessError(
            "umoci is not installed", hint="apt-get install --no-install-recommends umoci"
        )
    if place.exists():
        raise HarnessError(f"{place} is there already", hint="name another place")
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".fleet-") as folder:
        work = Path(folder)
        work.chmod(0o755)  # the users of mmdebstrap's namespace read there
        pack_checkout(work / "checkout.tar")
        say("collecting the wheels of the environment")
        _collect_wheels(work / "wheels")
        (work / "images").mkdir()
        for name in IMAGES if with_images else ():
            say(f"packing the image {name}")
            pack(name, str(work / "images"), zfs=DEFAULT)
        say(f"making a root of {suite}")
        _run(root_command(suite, work), work)
        say("packing the layer")
        for command in layout_commands(work / "layout", work / "root.tar"):
            _run(command, work)
        _publish(work / "layout", place)


def root_command(suite: str, work: Path) -> list[str]:
    """The command that makes `root.tar` of what lies in `work`."""
    inside = {"PYTHONPATH": HOME, CACHE_VARIABLE: _CACHE}
    furnish_there = [*_assignments(inside), "/usr/bin/python3", "-c", _FURNISH]
    hooks = [
        f'--customize-hook=mkdir -p "$1{HOME}"',
        _hook("tar-in", str(work / "checkout.tar"), HOME),
        _hook("copy-in", str(work / "wheels"), str(work / "images"), "/"),
        f"--chrooted-customize-hook=env -u XDG_CACHE_HOME {shlex.join(furnish_there)}",
        f'--customize-hook=rm -r "$1{_WHEELS}" "$1{_IMAGES}"',
    ]
    return [
        *(_CONTAINED if os.getuid() == 0 else ()),
        "mmdebstrap",
        "--variant=essential",
        f"--include={','.join(('ca-certificates', *wanted_packages()))}",
        '--aptopt=APT::Install-Recommends "false"',
        *(f"--aptopt={option}" for option in mirrors.transport_options()),
        *hooks,
        suite,
        str(work / "root.tar"),
        *mirrors.sources(suite, ("main",)),
    ]


def furnish() -> None:
    """The rest, inside the new root: environment, shelf and guest images. It reaches no network."""
    project = read_project()
    os.environ.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=_WHEELS, PIP_NO_CACHE_DIR="1")
    make_own_environment((*project.own, *project.dask), python="/usr/bin/python3")
    shelf_plugin()
    if any(Path(_IMAGES).iterdir()):
        for name in IMAGES:
            fetch(name, _IMAGES, zfs=DEFAULT)


def layout_commands(layout: Path, layer: Path) -> list[list[str]]:
    """The commands that make an OCI layout with one image of one layer."""
    image = f"{layout}:{_TAG}"
    config = [
        option
        for name, values in image_settings().items()
        for value in values
        for option in (f"--config.{name}", value)
    ]
    return [
        ["umoci", "init", "--layout", str(layout)],
        ["umoci", "new", "--image", image],
        ["umoci", "raw", "add-layer", "--image", image, str(layer)],
        ["umoci", "config", "--image", image, *config],
    ]


def image_settings() -> dict[str, list[str]]:
    """The image's configuration: a Dask worker by default, or the command that a user gives.

    The worker finds its scheduler in `DASK_SCHEDULER_ADDRESS`. Without certificates it does not start:
    it would run the code of whoever connects.
    """
    variables = {
        "PATH": f"{HOME}/.venv/bin:{_PATH}",
        "PYTHONPATH": HOME,
        "LANG": "C.UTF-8",
        CACHE_VARIABLE: _CACHE,
        CERTIFICATES_VARIABLE: CERTIFICATES,
    } | {variable_of(name): str(value) for name, value in SETTINGS.items()}
    return {
        "workingdir": [HOME],
        "env": _assignments(variables),
        "entrypoint": ["tini", "--"],
        "cmd": [
            *("dask", "worker", "--nworkers", "-1", *WORKER_OPTIONS),
            *tls_options(Path(CERTIFICATES)),
        ],
    }


def pack_checkout(archive: Path) -> None:
    """The checkout's files as they are now, without those that git ignores."""
    listed = run_host(
        "git", "-c", "safe.directory=*", "-C", str(CHECKOUT),
        "ls-files", "-z", "--cached", "--others", "--exclude-standard",
        hint="make the image in a checkout of git",
    )  # fmt: skip

    def as_root(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        return info

    with tarfile.open(archive, "w") as tar:
        for name in sorted({name for name in listed.split("\0") if name}):
            if (CHECKOUT / name).exists():  # else it is removed, and git does not know yet
                tar.add(CHECKOUT / name, arcname=name, recursive=False, filter=as_root)


def _collect_wheels(folder: Path) -> None:
    """All packages of the environment, made by this host's pip and its configuration."""
    project = read_project()
    pip = str(ENVIRONMENT / "bin" / "pip")
    if not Path(pip).exists():
        raise HarnessError("there is no .venv", hint="tools/run --setup-only --workers dask")
    requirements = (*project.own, *project.dask)
    _run([pip, "wheel", "--quiet", "--wheel-dir", str(folder), "--constraint", str(CONSTRAINTS),
          *requirements], CHECKOUT)  # fmt: skip


def _suite() -> str:
    try:
        codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    except OSError:
        codename = ""
    if codename not in SUITES:
        raise HarnessError(
            f"an image has the release of its host, and this one is {codename or 'no Debian'}",
            hint=f"make the image on Debian {' or '.join(SUITES)}, in a container of it too",
        )
    return codename


def _hook(*words: str) -> str:
    return f"--customize-hook={shlex.join(words)}"


def _assignments(variables: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in variables.items()]


def _publish(layout: Path, place: Path) -> None:
    if place.suffix != ".tar":
        layout.rename(place)
        return
    with whole_file(place) as partial, tarfile.open(partial, "w") as tar:
        for part in sorted(layout.iterdir()):
            tar.add(part, arcname=part.name)


def _run(command: Sequence[str], work: Path) -> None:
    """A command whose output the user sees; raises `HarnessError` when it fails."""
    variables = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    # rootless, mmdebstrap unpacks where other users may pass
    variables["TMPDIR"] = str(work) if os.getuid() == 0 else "/var/tmp"
    try:
        subprocess.run(
            command,
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            timeout=_DEADLINE_S,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise HarnessError(
            f"{command[0]} returned {error.returncode}", hint="repair that and start again"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise HarnessError(f"{command[0]} did not end within {_DEADLINE_S} s") from error
