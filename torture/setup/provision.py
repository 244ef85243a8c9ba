"""Setting a machine up: system packages, virtual environment, shelf, images. Standard library only.

Each part is examined first and made only when it is missing, so a second call is quick. Each
machine chooses its own package sources: apt's and pip's configuration are used as they are.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from torture.errors import HarnessError
from torture.files import CHECKOUT, locked
from torture.machines.host.native import find_shelf_plugin, shelf_plugin
from torture.machines.images import IMAGES, ensure_all, find

ENVIRONMENT = CHECKOUT / ".venv"
CONSTRAINTS = CHECKOUT / "constraints.txt"
"""The versions of all Python packages with which the project was tested."""

_PACKAGES_FILE = CHECKOUT / "vmimages" / "host-packages.txt"
_SELFTEST_PACKAGES_FILE = CHECKOUT / "vmimages" / "selftest-packages.txt"
_DEBIAN_MODULES = Path("/usr/lib/python3/dist-packages")
_LOCK_DEADLINE_S = 3600
_APT_DEADLINE_S = 1200
_FORMER_VARIABLE = "TORTURE_IMAGES"
"""It named a folder from which images were fetched."""
_PIP_DEADLINE_S = 900

Say = Callable[[str], None]


def provision(*, say: Say, for_selftest: bool = False, for_dask: bool = False) -> bool:
    """Set up every missing part; True when one was missing. Raises `HarnessError` with the next step.

    `for_selftest`: also the parts that only the project's own tests need, such as a browser.
    `for_dask`: also Dask, for workers on many hosts. An environment that has it keeps it.

    One process does it while others wait, so that two starts at once do not disturb each other.
    """
    with locked(CHECKOUT / ".provision.lock", deadline_s=_LOCK_DEADLINE_S):
        made = (
            _packages(say, for_selftest=for_selftest),
            _environment(say, with_dask=for_selftest or for_dask),
            _shelf(say),
            _images(say),
        )
        return any(made)


def wanted_packages(*, for_selftest: bool = False) -> tuple[str, ...]:
    """The system packages of `vmimages/host-packages.txt`; comments begin with a hash."""
    files = [_PACKAGES_FILE, *([_SELFTEST_PACKAGES_FILE] if for_selftest else [])]
    lines = [line for file in files for line in file.read_text().splitlines()]
    names = (line.split("#")[0].strip() for line in lines)
    return tuple(name for name in names if name)


def missing_packages(*, for_selftest: bool = False) -> tuple[str, ...]:
    """The wanted packages that dpkg does not know as installed.

    Raises `HarnessError` where there is no dpkg: the suite is set up by itself on Debian only.
    """
    wanted = wanted_packages(for_selftest=for_selftest)
    query = ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\\n"]
    try:
        output = subprocess.run(
            [*query, *wanted], capture_output=True, text=True, timeout=30, check=False
        ).stdout
    except OSError as error:
        raise HarnessError(
            "there is no dpkg here", hint=f"install by hand: {' '.join(wanted)}"
        ) from error
    installed = {line.split()[0] for line in output.splitlines() if line.endswith(" installed")}
    return tuple(package for package in wanted if package not in installed)


def _packages(say: Say, *, for_selftest: bool) -> bool:
    missing = missing_packages(for_selftest=for_selftest)
    if not missing:
        return False
    say(f"installing system packages: {' '.join(missing)}")
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    if sudo and shutil.which("sudo") is None:
        raise HarnessError(
            f"system packages are missing: {' '.join(missing)}",
            hint=f"as root: apt-get install --no-install-recommends {' '.join(missing)}",
        )
    install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *missing]
    # a service of libvirt is not needed: the suite has its driver embedded
    for argv in (["apt-get", "update", "--quiet"], install):
        _run([*sudo, "env", "DEBIAN_FRONTEND=noninteractive", *argv], deadline_s=_APT_DEADLINE_S)
    return True


def environment_stamp() -> str:
    """A hash of everything the virtual environment depends on; written into it once it is complete."""
    wanted = (CHECKOUT / "pyproject.toml").read_bytes() + CONSTRAINTS.read_bytes()
    return hashlib.sha256(wanted + str(ENVIRONMENT).encode()).hexdigest()


def environment_is_complete() -> bool:
    """Whether the virtual environment was made from today's `pyproject.toml` and constraints."""
    stamp = ENVIRONMENT / "torture-stamp"
    return stamp.exists() and stamp.read_text() == environment_stamp()


def has_dask() -> bool:
    """Whether the virtual environment has Dask, which is not installed for all."""
    return any((ENVIRONMENT / "lib").glob("python3*/site-packages/distributed/__init__.py"))


def _environment(say: Say, *, with_dask: bool) -> bool:
    project = read_project()
    if environment_is_complete():
        if has_dask() or not with_dask:
            return False
        say("adding Dask to .venv")
        _install(ENVIRONMENT, project.dask, constraints=CONSTRAINTS)
        return True
    say("making the virtual environment .venv")
    # `.[selftest]` would build the checkout; only its dependencies are wanted
    wanted = project.dependencies if with_dask or has_dask() else project.slim
    make_own_environment(wanted, python=_python())
    return True


def make_own_environment(requirements: Sequence[str], *, python: str) -> None:
    """Make `.venv` anew, and mark it as complete; raises `HarnessError` as `make_environment`."""
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    make_environment(ENVIRONMENT, requirements, python=python, constraints=CONSTRAINTS)
    _borrow_libnbd()
    (ENVIRONMENT / "torture-stamp").write_text(environment_stamp())


def make_environment(
    folder: Path, requirements: Sequence[str], *, python: str, constraints: Path
) -> None:
    """A virtual environment of a Python, with these packages at the versions of the constraints.

    The constraints also bind the tools that build a package. Raises `HarnessError` when pip fails,
    which has printed the reason.
    """
    _run([python, "-m", "venv", str(folder)], deadline_s=120)
    _install(folder, requirements, constraints=constraints)


def _install(folder: Path, requirements: Sequence[str], *, constraints: Path) -> None:
    listed = folder / "requirements.txt"
    listed.write_text("\n".join(requirements) + "\n")
    # Python compiles a module at its first import; pip would compile thousands that a run never imports
    options = ("install", "--quiet", "--no-compile", "--requirement", str(listed))
    _run(
        [str(folder / "bin" / "pip"), *options],
        deadline_s=_PIP_DEADLINE_S,
        environment=_constraint_variables(constraints),
    )


def _constraint_variables(constraints: Path) -> dict[str, str]:
    """Variables for pip: an option would not reach the pip that it starts to build a package."""
    # pip splits the variables at blanks, which a checkout's path may have; it is run in its folder
    name = str(constraints.relative_to(CHECKOUT))
    # the second is the one for builds since pip 25.3
    variables = ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT")
    return {variable: f"{os.environ.get(variable, '')} {name}".strip() for variable in variables}


def _borrow_libnbd() -> None:
    """Let the environment import Debian's libnbd module, which no index has, and nothing else."""
    [site] = (ENVIRONMENT / "lib").glob("python3*/site-packages")
    modules = (*_DEBIAN_MODULES.glob("nbd.py"), *_DEBIAN_MODULES.glob("libnbdmod.*.so"))
    for module in modules:
        (site / module.name).symlink_to(module)
    python = str(ENVIRONMENT / "bin" / "python")
    try:
        _run([python, "-c", "import nbd"], deadline_s=60)
    except HarnessError as error:
        raise HarnessError(
            "the environment's Python cannot use libnbd's module, which is made for Debian's own",
            hint="install python3-libnbd and use the distribution's Python, 3.11 or newer",
        ) from error


def use_environment() -> None:
    """Continue in the virtual environment, for tools that need more than the standard library.

    Prints the next command and raises `SystemExit` with 2 when there is none yet. A message as its
    code would exit with 1, which means a bad result in several tools.
    """
    python = ENVIRONMENT / "bin" / "python"
    if Path(sys.prefix) == ENVIRONMENT:
        return
    if not python.exists():
        print("the virtual environment is missing\n  next: tools/run --setup-only", file=sys.stderr)
        raise SystemExit(2)
    os.execv(python, [str(python), *sys.argv])


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """The requirements of `pyproject.toml`, as pip reads them."""

    dependencies: tuple[str, ...]
    """The project's own requirements and those of every extra."""
    dask: tuple[str, ...]
    """Those of the extra for workers on many hosts."""

    @property
    def slim(self) -> tuple[str, ...]:
        """All requirements but Dask's, for a host on which no run asked for it."""
        return tuple(name for name in self.dependencies if name not in self.dask)


def read_project() -> Project:
    """The requirements in `pyproject.toml`."""
    document = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    project = document["project"]
    extras = project["optional-dependencies"]
    return Project(
        dependencies=(*project["dependencies"], *chain.from_iterable(extras.values())),
        dask=tuple(extras["dask"]),
    )


def _python() -> str:
    """Debian's own Python where it is new enough: its headers are a Debian package."""
    system = Path("/usr/bin/python3")
    if system.exists():
        probe = "import sys; sys.exit(sys.version_info < (3, 11))"
        if subprocess.run([system, "-c", probe], check=False, timeout=20).returncode == 0:
            return str(system)
    return sys.executable


def _shelf(say: Say) -> bool:
    if find_shelf_plugin() is not None:
        return False
    say("building the disk shelf")
    shelf_plugin()
    return True


def _images(say: Say) -> bool:
    if all(find(name) is not None for name in IMAGES):
        return False
    if _FORMER_VARIABLE in os.environ:
        raise HarnessError(
            f"{_FORMER_VARIABLE} is no more", hint="copy them: docs/fleet.md, Images"
        )
    ensure_all(IMAGES, progress=say)
    return True


def _run(
    argv: list[str], *, deadline_s: float, environment: Mapping[str, str] | None = None
) -> None:
    try:
        subprocess.run(
            argv,
            cwd=CHECKOUT,
            env=os.environ | (environment or {}),
            check=True,
            timeout=deadline_s,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
        )
    except subprocess.CalledProcessError as error:
        raise HarnessError(
            f"{' '.join(argv)} returned {error.returncode}", hint="repair that and start again"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise HarnessError(f"{' '.join(argv)} did not end within {deadline_s:.0f} s") from error
