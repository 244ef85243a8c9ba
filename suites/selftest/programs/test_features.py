"""Each feature can be taken out: a copy without its folders and its files still tests the core.

Here every module of the pure tier loads in each copy, and the default matrix is collected. By hand,
`python -m suites.selftest.programs.test_features FEATURE FOLDER` makes a copy whose pure tier runs.
Only tests of documents, of README's map and of the schemas fail there, as these name all features.
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from suites.selftest.programs.launcher import run_program
from torture.files import CHECKOUT

FEATURES = sorted(
    path.name
    for path in (CHECKOUT / "torture" / "features").iterdir()
    if (path / "__init__.py").exists()
)
OF_DOCUMENTS = "suites/selftest/unit/test_documents.py"
_CELLS = 62


def copy_without(feature: str, folder: Path) -> None:
    """Copy the checkout, without all that is the feature's."""
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    brings = importlib.import_module(f"torture.features.{feature}").BRINGS
    for name in filter(None, files.stdout.split("\0")):
        path = Path(name)
        is_own = feature in path.parts[:-1] and path.parts[0] in {"torture", "suites"}
        is_own |= path.parts[:2] == ("fixtures", "features") and path.stem == feature
        if is_own or any(path.is_relative_to(brought) for brought in brings):
            continue
        if (CHECKOUT / path).is_file():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / path, folder / path)
    for arguments in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)


_LOAD = """\
import contextlib, importlib, pathlib, pytest

for path in sorted(pathlib.Path("suites/selftest/unit").rglob("*.py")):
    if str(path) != "OF_DOCUMENTS":
        with contextlib.suppress(pytest.skip.Exception):
            importlib.import_module(".".join(path.with_suffix("").parts))
""".replace("OF_DOCUMENTS", OF_DOCUMENTS)
"""A module makes the cases of its tests as it loads; a collection by pytest takes twice as long."""


def said(folder: Path, *arguments: str) -> str:
    done = run_program(sys.executable, *arguments, cwd=folder)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return done.stdout


@pytest.mark.parametrize("feature", FEATURES)
def test_the_core_does_without(feature: str, tmp_path: Path) -> None:
    copy_without(feature, tmp_path)
    assert not (tmp_path / "torture" / "features" / feature).exists()
    said(tmp_path, "-c", _LOAD)
    matrix = said(tmp_path, "-m", "pytest", "--collect-only", "-q", "suites/powercut")
    assert f"{_CELLS} tests collected" in matrix


def test_the_core_names_no_feature() -> None:
    """But for discovery, which finds their package."""
    core = [path for path in (CHECKOUT / "torture").rglob("*.py") if "features" not in path.parts]
    named = [str(path) for path in core if "torture.features" in path.read_text()]
    assert named == [str(CHECKOUT / "torture" / "discovery.py")]


if __name__ == "__main__":
    copy_without(sys.argv[1], Path(sys.argv[2]))
