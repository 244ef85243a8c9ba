"""Drawing `constraints.txt` anew: the newest version of every Python package, to be tested next.

Run it by the oldest Python that the project supports, since its packages suit the newer ones:

    python3.11 -m torture.setup.constraints

Then run `tools/run suites/selftest` on every host that the README names. Standard library only.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from torture.errors import HarnessError
from torture.files import write_whole
from torture.machines.host.commands import run_host
from torture.setup.provision import CONSTRAINTS, make_environment, read_project

OLDEST_PYTHON = (3, 11)
"""`requires-python` of `pyproject.toml`."""

_HEADER = """\
# What the project was tested with, on Python 3.11 to 3.13; tools/run installs just this.
# To go on to newer ones: python3.11 -m torture.setup.constraints
"""
_FREEZE_DEADLINE_S = 60


def main() -> int:
    """Replace `constraints.txt`; the exit code."""
    if sys.version_info[:2] != OLDEST_PYTHON:
        oldest = ".".join(str(number) for number in OLDEST_PYTHON)
        print(f"newer versions may lack Python {oldest}; next: use that Python", file=sys.stderr)
        return 2
    project = read_project()
    with TemporaryDirectory(prefix="torture-newest-") as folder:
        environment = Path(folder) / "venv"
        try:
            wanted = (*project.dependencies, *project.builders)
            make_environment(environment, wanted, python=sys.executable)
        except HarnessError as error:
            print(error, file=sys.stderr)
            return 1
        write_whole(CONSTRAINTS, in_words(frozen(environment)).encode())
    print(f"wrote {CONSTRAINTS}; next: tools/run suites/selftest")
    return 0


def frozen(environment: Path) -> Sequence[str]:
    """Every package in an environment as `name==version`, but for pip itself."""
    freeze = [str(environment / "bin" / "pip"), "freeze", "--all", "--exclude", "pip"]
    return run_host(*freeze, deadline_s=_FREEZE_DEADLINE_S).splitlines()


def in_words(pins: Sequence[str]) -> str:
    """The text of `constraints.txt`.

    A pin is a name and a version and never a place: each machine chooses its own package sources.
    Raises `HarnessError` for any other pin.
    """
    for pin in pins:
        if "@" in pin or "==" not in pin:
            raise HarnessError(f"{pin} is not a version in a package index", hint="use plain pip")
    return _HEADER + "".join(f"{pin}\n" for pin in sorted(pins, key=str.lower))


if __name__ == "__main__":
    sys.exit(main())
